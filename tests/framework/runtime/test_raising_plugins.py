"""A plugin that raises: who is blamed, for what, and in which line."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from moorage import NODE, Cache, Engine
from moorage.config.types import PluginRef, PluginSet
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.diagnosis import Diagnosis
from moorage.framework.interface.status import PluginError
from moorage.framework.loading.registry import RegistryError
from moorage.framework.runtime.framework import Framework
from moorage.klog import UNHANDLED, Message, kobj
from moorage.queue.heap import PodHeap
from moorage.queue.queued_pod import QueuedPod
from moorage.queue.sub_queues import SharedSubQueueOrder
from tests.builders import make_node, make_pod
from tests.framework.helpers import POD, framework_of, nodes


def line_of(text: str) -> int:
    """The line of this file with a text in it; the first one."""
    lines = inspect.getsource(inspect.getmodule(line_of)).splitlines()  # type: ignore[arg-type]
    return next(number for number, line in enumerate(lines, 1) if text in line)


class Wrong:
    name = "Wrong"

    def __init__(self, *points: str) -> None:
        for point in points:
            setattr(self, point, getattr(self, f"_{point}"))

    def _filter(self, cycle: Any, pod: Any, nodes: Any) -> Any:
        return dict[str, Any]()["missing"]  # in filter

    def _filter_node(self, cycle: Any, pod: Any, node: Any) -> Any:
        return helper()  # in filter_node

    def _score(self, cycle: Any, pod: Any, nodes: Any) -> Any:
        return json.loads("{")  # in score

    def _reserve(self, cycle: Any, pod: Any, node_name: str) -> Any:
        raise ValueError("two\nlines")  # in reserve

    async def _pre_bind(self, cycle: Any, pod: Any, node_name: str) -> Any:
        await asyncio.sleep(0)
        raise RuntimeError  # in pre_bind

    def _depends_on(self, pod: Any, objects: Any) -> Any:
        return NODE.nothing  # type: ignore[attr-defined]  # in depends_on

    def _pre_enqueue(self, pod: Any) -> Any:
        raise OSError("no disk")  # in pre_enqueue


def helper() -> Any:
    raise LookupError("deep")  # in helper


def with_place(words: str, text: str) -> str:
    return f"{words} (test_raising_plugins.py:{line_of(text)})"


CASES: dict[str, tuple[str, Callable[[Framework], Any], str]] = {
    "filter": (
        "filter",
        lambda framework: framework.filter(CycleState(), POD, nodes("a"), Diagnosis(1)),
        with_place("running \"Wrong\" filter plugin: KeyError: 'missing'", "# in filter"),
    ),
    "one node at a time, in a function of the same file": (
        "filter_node",
        lambda framework: framework.filter(CycleState(), POD, nodes("a"), Diagnosis(1)),
        with_place('running "Wrong" filter plugin: LookupError: deep', "# in helper"),
    ),
    "in a library: the line that called it": (
        "score",
        lambda framework: framework.score(CycleState(), POD, nodes("a", "b")),
        with_place(
            'running Score plugins: plugin "Wrong" failed with: JSONDecodeError: Expecting property name '
            "enclosed in double quotes: line 1 column 2 (char 1)",
            "# in score",
        ),
    ),
    "reserve": (
        "reserve",
        lambda framework: framework.reserve(CycleState(), POD, "a"),
        with_place('running Reserve plugin "Wrong": ValueError: two\nlines', "# in reserve"),
    ),
    "pre_bind, after a wait": (
        "pre_bind",
        lambda framework: asyncio.run(framework.pre_bind(CycleState(), POD, "a")),
        with_place('running PreBind plugin "Wrong": RuntimeError', "# in pre_bind"),
    ),
}


@pytest.mark.parametrize(("point", "call", "message"), CASES.values(), ids=CASES.keys())
def test_plugin_point_error_and_line(point: str, call: Callable[[Framework], Any], message: str) -> None:
    with pytest.raises(PluginError) as error:
        call(framework_of(Wrong(point)))
    assert str(error.value) == message


def test_a_depends_on_that_fails_fails_the_attempt_of_one_pod() -> None:
    cache = Cache([make_node("a"), make_node("b")])
    decision = Engine().decide(framework_of(Wrong("filter", "depends_on")), POD, cache.snapshot())
    assert decision.node is None
    assert decision.message == with_place(
        "running DependsOn plugin \"Wrong\": AttributeError: 'DependsOn' object has no attribute 'nothing'",
        "# in depends_on",
    )


def test_a_gate_that_fails_keeps_the_pod_out_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert framework_of(Wrong("pre_enqueue")).gate(POD) == "Wrong"
    [record] = caplog.records
    assert isinstance(record.msg, Message)
    assert str(record.msg.error) == with_place(
        'running PreEnqueue plugin "Wrong": OSError: no disk', "# in pre_enqueue"
    )
    assert record.msg.text == "Unexpected error running PreEnqueue plugin"
    assert record.msg.values == {"logger": UNHANDLED, "pod": kobj(POD), "plugin": "Wrong"}


def test_events_that_fail_do_so_at_the_start() -> None:
    class Eventful:
        name = "Eventful"

        def events(self) -> Any:
            raise LookupError("which?")  # in events

        def filter(self, cycle: Any, pod: Any, nodes: Any) -> Any: ...

    with pytest.raises(RegistryError) as error:
        framework_of(Eventful()).queue_rules()
    assert str(error.value) == with_place(
        "plugin Eventful: events failed: LookupError: which?", "# in events"
    )


# The order of the queue


class Sorts:
    name = "Sorts"

    def queue_sort(self, queued: QueuedPod) -> Any:
        if queued.pod.name.startswith("wrong"):
            raise ValueError("no order")
        return queued.pod.labels.get("turn") and int(queued.pod.labels["turn"])


ONLY_SORTS = PluginSet(enabled=(PluginRef(name="Sorts"),), disabled=(PluginRef(name="PrioritySort"),))


def queue_of(*pods: Any) -> list[str]:
    framework = framework_of(Sorts(), queue_sort=ONLY_SORTS)
    heap = PodHeap(framework.sort_key)
    for each in pods:
        heap.put(QueuedPod(each, 0.0))
    return [queued.pod.name for queued in heap.in_order()]


def test_pods_without_a_key_are_tried_after_all_others(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    pods = [
        make_pod("wrong-1", uid="1"),
        make_pod("late", uid="2", labels={"turn": "9"}),
        make_pod("wrong-2", uid="3"),
        make_pod("early", uid="4", labels={"turn": "1"}),
    ]
    assert queue_of(*pods) == ["early", "late", "wrong-1", "wrong-2"]
    assert 'pod="default/wrong-1"' in caplog.text
    assert "ValueError: no order (test_raising_plugins.py:" in caplog.text


def test_keys_that_cannot_be_compared_exclude_no_pod(caplog: pytest.LogCaptureFixture) -> None:
    pods = [
        make_pod("none", uid="1"),
        make_pod("two", uid="2", labels={"turn": "2"}),
        make_pod("other", uid="3"),
        make_pod("one", uid="4", labels={"turn": "1"}),
    ]
    assert sorted(queue_of(*pods)) == ["none", "one", "other", "two"]
    assert caplog.text.count("The scheduling queue is not in order") == 1


class SortsTeams(Sorts):
    """Teams in the order of their names; what does not work depends on the team."""

    def sub_queue(self, queued: QueuedPod) -> Any:
        team = queued.pod.labels.get("team", "")
        return [] if team == "unhashable" else {"raises": lambda: 1 // 0}.get(team, lambda: team)()

    def sub_queue_sort(self, sub_queue: Any, first: QueuedPod) -> Any:
        return {"incomparable": None}.get(sub_queue, 1 // (sub_queue != "no key") and sub_queue)

    def changed_sub_queues(self, firsts: Any, popped: Any, failed: bool) -> Any:
        return [[]] if popped == "early" else 1 // (popped != "late")


def test_sub_queues_that_fail_exclude_no_pod(caplog: pytest.LogCaptureFixture) -> None:
    teams = ["no key", "late", "raises", "unhashable", "early"]
    framework = framework_of(SortsTeams(), queue_sort=ONLY_SORTS)
    assert framework.sub_queues is not None
    place = SharedSubQueueOrder(framework.sub_queues).place(framework.sort_key)
    for number, team in enumerate(teams):
        pod = make_pod(team.replace(" ", "-"), uid=str(number), labels={"team": team, "turn": "1"})
        place.put(QueuedPod(pod, 0.0))
    place.validate()
    popped = [place.pop() for _ in teams]
    names = [queued.pod.name for queued in popped if queued is not None]
    assert names == ["early", "late", "no-key", "raises", "unhashable"]
    assert place.pop() is None
    assert caplog.text.count("its sub-queues are not in order") == 1
    assert "ZeroDivisionError" in caplog.text


def test_moorage_s_own_order_has_plain_keys() -> None:
    framework = framework_of()
    queued = QueuedPod(POD, 0.0)
    assert framework.sort_key(queued) == framework.at("queue_sort")[0](queued)
    assert framework.sub_queues is None
