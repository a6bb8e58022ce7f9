"""What is said of a plugin that answers with an error: kube-scheduler's words, at every extension point."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from moorage import NODE, Cache, Engine
from moorage.cluster.pod_table import PodInfo
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.diagnosis import Diagnosis
from moorage.framework.interface.hypothetical_pods import HypotheticalPods
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import SKIP, Code, PluginError, Status, pending, unschedulable, wait
from moorage.framework.runtime.framework import Framework
from tests.builders import make_node, make_pod
from tests.framework.helpers import POD, Log, framework_of, nodes, recorder

ERROR = Status(Code.ERROR, ("no", "disk"))


def _pre_filter(framework: Framework) -> Any:
    return framework.pre_filter(CycleState(), POD, nodes("a", "b"), Diagnosis(2))


def _filter(framework: Framework) -> Any:
    return framework.filter(CycleState(), POD, nodes("a", "b"), Diagnosis(2))


def _filter_one(framework: Framework) -> Any:
    return framework.filter(CycleState(), POD, nodes("a"), Diagnosis(1))


def _score(framework: Framework) -> Any:
    return framework.score(CycleState(), POD, nodes("a", "b"))


def _at_node(point: str) -> Callable[[Framework], Any]:
    def ask(framework: Framework) -> Any:
        answer = getattr(framework, point)(CycleState(), POD, "a")
        return asyncio.run(answer) if asyncio.iscoroutine(answer) else answer

    return ask


SCORE = 'running Score plugins: plugin "B" failed with: '
CASES: dict[str, tuple[dict[str, Any], Callable[[Framework], Any], str]] = {
    "pre_enqueue": (
        {"pre_enqueue": ERROR},
        lambda f: f.pre_enqueue(POD),
        'running PreEnqueue plugin "B": no, disk',
    ),
    "pre_filter": ({"pre_filter": ERROR}, _pre_filter, 'running PreFilter plugin "B": no, disk'),
    "pre_filter, pending": (
        {"pre_filter": pending("soon")},
        _pre_filter,
        'running PreFilter plugin "B": soon',
    ),
    "filter": ({"filter": ERROR}, _filter, 'running "B" filter plugin: no, disk'),
    "filter_node": ({"filter_node": ERROR}, _filter, 'running "B" filter plugin: no, disk'),
    "filter_node, one node": ({"filter_node": ERROR}, _filter_one, 'running "B" filter plugin: no, disk'),
    "filter_node, without words": (
        {"filter_node": Status(Code.ERROR)},
        _filter,
        'running "B" filter plugin: Error',
    ),
    "pre_score": (
        {"pre_score": ERROR, "score": None},
        _score,
        'running PreScore plugin "B": no, disk',
    ),
    "score": ({"score": ERROR}, _score, f"{SCORE}no, disk"),
    "score_node": ({"score_node": ERROR}, _score, f"{SCORE}no, disk"),
    "score, refused": (
        {"score_node": unschedulable("no")},
        _score,
        f"{SCORE}returned {unschedulable('no')!r}; scores are integers",
    ),
    "normalize_score": (
        {"score_node": 1, "normalize_score": ERROR},
        _score,
        'running Normalize on Score plugins: plugin "B" failed with: no, disk',
    ),
    "a score out of bounds": (
        {"score_node": 101},
        _score,
        'applying score defaultWeights on Score plugins: plugin "B" returns an invalid score 101, '
        "it should in the range of [0, 100] after normalizing",
    ),
    "reserve": ({"reserve": ERROR}, _at_node("reserve"), 'running Reserve plugin "B": no, disk'),
    "reserve, skipped": ({"reserve": SKIP}, _at_node("reserve"), 'running Reserve plugin "B": Skip'),
    "permit": ({"permit": ERROR}, _at_node("permit"), 'running Permit plugin "B": no, disk'),
    "pre_bind_pre_flight": (
        {"pre_bind": None, "pre_bind_pre_flight": ERROR},
        _at_node("pre_bind_pre_flight"),
        'running PreBindPreFlight "B": no, disk',
    ),
    "pre_bind_pre_flight, refused": (
        {"pre_bind": None, "pre_bind_pre_flight": unschedulable("no")},
        _at_node("pre_bind_pre_flight"),
        'PreBindPreFlight B returned "Unschedulable", which is unsupported. '
        "It is supposed to return Success, Skip, or Error status",
    ),
    "pre_bind": ({"pre_bind": ERROR}, _at_node("pre_bind"), 'running PreBind plugin "B": no, disk'),
    "pre_bind, waiting": ({"pre_bind": wait(5)}, _at_node("pre_bind"), 'running PreBind plugin "B": Wait'),
    "bind": ({"bind": ERROR}, _at_node("bind"), 'running Bind plugin "B": no, disk'),
}


@pytest.mark.parametrize(("answers", "ask", "message"), CASES.values(), ids=CASES.keys())
def test_an_error_is_that_of_its_plugin(
    answers: dict[str, Any], ask: Callable[[Framework], Any], message: str
) -> None:
    with pytest.raises(PluginError) as error:
        ask(framework_of(recorder("B", Log(), **answers)))
    assert (str(error.value), error.value.plugin) == (message, "B")


REFUSED = {
    "reserve": _at_node("reserve"),
    "permit": _at_node("permit"),
    "pre_bind": _at_node("pre_bind"),
    "bind": _at_node("bind"),
}


@pytest.mark.parametrize(("point", "ask"), REFUSED.items(), ids=REFUSED)
def test_a_refusal_keeps_its_own_words(point: str, ask: Callable[[Framework], Any]) -> None:
    status = ask(framework_of(recorder("B", Log(), **{point: unschedulable("full")})))
    assert (status.code, status.message, status.plugin) == (Code.UNSCHEDULABLE, "full", "B")


def test_binders_that_all_skip_are_named() -> None:
    binders = [recorder("A", Log(), bind=SKIP), recorder("B", Log(), bind=SKIP)]
    status = _at_node("bind")(framework_of(*binders))
    message = "running Bind plugins: all of them skipped the pod: A, B"
    assert (status.code, status.message) == (Code.SKIP, message)


class Remembered:
    """Answers with an error when it is asked about a single node: its other answers are remembered."""

    name = "B"

    def __init__(self, point: str) -> None:
        setattr(self, f"{point}_node", self._answer)

    def depends_on(self, pod: Any, objects: Any) -> Any:
        return NODE

    def _answer(self, cycle: Any, pod: Any, node: Any) -> Any:
        return (ERROR if node.labels else None) if hasattr(self, "filter_node") else ERROR


def test_an_error_about_a_node_that_changed() -> None:
    cache = Cache([make_node(name) for name in "abc"])
    framework, engine = framework_of(Remembered("filter")), Engine()
    assert engine.decide(framework, POD, cache.snapshot()).node is not None
    cache.put_node(make_node("a", labels={"new": "yes"}))
    decision = engine.decide(framework, make_pod("q", uid="q"), cache.snapshot())
    assert decision.message == 'running "B" filter plugin: no, disk'


def test_a_score_of_a_single_node_that_is_an_error() -> None:
    [step] = framework_of(Remembered("score")).at("score")
    with pytest.raises(PluginError) as error:
        step.score_node(CycleState(), POD, next(iter(nodes("a"))))
    assert str(error.value) == f"{SCORE}no, disk"


def test_a_plugin_that_fails_at_following_pods() -> None:
    class Following:
        name = "B"

        def pre_filter(self, cycle: Any, pod: Any, nodes: Any) -> None: ...

        def filter_node(self, cycle: Any, pod: Any, node: Any) -> None: ...

        def add_pod(self, cycle: Any, pod: Any, added: Any, node: Any) -> None:
            raise ValueError("lost count")

        def remove_pod(self, cycle: Any, pod: Any, removed: Any, node: Any) -> None: ...

    snapshot = nodes("a").snapshot
    changes = HypotheticalPods(snapshot, 1, added=[(0, PodInfo(make_pod("x", uid="x")))])
    changed = Nodes(snapshot, np.zeros(1, np.intp), changes)
    with pytest.raises(PluginError, match=r'^running AddPod on PreFilter plugin "B": ValueError: lost count'):
        framework_of(Following()).filter(CycleState(), POD, changed, Diagnosis(1))
