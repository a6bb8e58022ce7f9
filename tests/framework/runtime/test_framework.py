"""The rules of the scheduling cycle: what each answer of a plugin does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from moorage.cluster.pod_table import PodInfo
from moorage.config.types import PluginRef, PluginSet
from moorage.engine.engine import Engine
from moorage.engine.run_without_suspending import run_without_suspending
from moorage.framework.interface.cycle_state import CycleState, StateKey
from moorage.framework.interface.diagnosis import Diagnosis
from moorage.framework.interface.effects import BindPod
from moorage.framework.interface.extension_points import PostFilterResult
from moorage.framework.interface.filter_result import FilterResult, refuse_where
from moorage.framework.interface.hypothetical_pods import HypotheticalPods
from moorage.framework.interface.nodes import Nodes, NodeView
from moorage.framework.interface.status import (
    SKIP,
    SUCCESS,
    Code,
    PluginError,
    Status,
    unresolvable,
    unschedulable,
)
from tests.builders import make_pod
from tests.framework.helpers import POD, Log, framework_of, nodes, recorder

# Scores


class Scoring:
    name = "Scoring"

    def __init__(self, scores: Any, normalized: Any = None) -> None:
        self.scores = scores
        if normalized is not None:
            self.normalize_score = lambda cycle, pod, nodes, scores: normalized

    def score(self, cycle: CycleState, pod: object, nodes: Nodes) -> Any:
        return self.scores


@pytest.mark.parametrize(
    ("plugin", "complaint"),
    [
        (Scoring(np.array([101, 0])), "invalid score 101"),
        (Scoring(np.array([0, -1])), "invalid score -1"),
        (Scoring(np.array([5, 5]), np.array([0, 200])), "invalid score 200"),
        (Scoring(np.array([0.5, 1.0])), "scores are integers"),
        (Scoring(np.array([1])), r"shape \(1,\) for 2 nodes"),
        (Scoring(None), "shape"),
    ],
)
def test_scores_must_be_one_integer_per_node_and_in_bounds(plugin: Scoring, complaint: str) -> None:
    with pytest.raises(PluginError, match=complaint):
        framework_of(plugin).score(CycleState(), POD, nodes("a", "b"))


def test_raw_scores_may_be_anything_if_they_are_normalised() -> None:
    table = framework_of(Scoring(np.array([-7, 9000]), np.array([0, 100]))).score(
        CycleState(), POD, nodes("a", "b")
    )
    assert table.by_plugin["Scoring"].tolist() == [0, 100]


def test_weights_multiply_and_totals_add_up() -> None:
    class Other(Scoring):
        name = "Other"

    weighted = PluginSet(enabled=(PluginRef(name="Scoring", weight=5),))
    framework = framework_of(Scoring(np.array([1, 2])), Other(np.array([10, 0])), score=weighted)
    table = framework.score(CycleState(), POD, nodes("a", "b"))
    assert {name: scores.tolist() for name, scores in table.by_plugin.items()} == {
        "Scoring": [5, 10],
        "Other": [10, 0],
    }
    assert table.totals.tolist() == [15, 10]


def test_pre_score_skip_leaves_the_score_out_and_any_other_refusal_is_an_error() -> None:
    log = Log()
    framework = framework_of(recorder("Quiet", log, pre_score=SKIP, score=None))
    assert framework.score(CycleState(), POD, nodes("a", "b")).by_plugin == {}
    assert log == ["Quiet.pre_score"]
    with pytest.raises(PluginError, match='running PreScore plugin "Loud": no'):
        framework_of(recorder("Loud", log, pre_score=unschedulable("no"), score=None)).score(
            CycleState(), POD, nodes("a", "b")
        )


# Filters


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (None, "returned NoneType"),
        (np.array([True]), "returned ndarray"),
        (FilterResult(np.zeros(3)), "answered for 3 nodes of 1"),
    ],
)
def test_a_filter_must_answer_for_the_nodes_it_was_asked_about(answer: Any, complaint: str) -> None:
    with pytest.raises(PluginError, match=complaint):
        framework_of(recorder("Odd", Log(), filter=answer)).filter(
            CycleState(), POD, nodes("a"), Diagnosis(1)
        )


def test_one_node_at_a_time_is_as_good_as_all_at_once() -> None:
    class PerNode:
        name = "PerNode"

        def filter_node(self, cycle: CycleState, pod: object, node: NodeView) -> Status | str | None:
            return {
                "a": None,
                "b": "too far",
                "c": unresolvable("too", "small"),
                "d": "too far",
                "e": SUCCESS,
            }[node.name]

        def score_node(self, cycle: CycleState, pod: object, node: NodeView) -> int:
            return ord(node.name) - ord("a")

    framework, diagnosis, everything = framework_of(PerNode()), Diagnosis(5), nodes(*"abcde")
    passed = framework.filter(CycleState(), POD, everything, diagnosis)
    assert passed.names == ["a", "e"]
    assert diagnosis.tally() == {"too far": 2, "too": 1, "small": 1}
    assert diagnosis.code_of(2) is Code.UNRESOLVABLE
    assert diagnosis.code_of(1) is Code.UNSCHEDULABLE
    assert framework.score(CycleState(), POD, passed).totals.tolist() == [0, 4]


def test_a_plugin_that_follows_pods_is_asked_about_each_changed_node_alone() -> None:
    key: StateKey[Counted] = StateKey("follower")

    class Counted:
        def __init__(self, count: int) -> None:
            self.count = count

        def clone(self) -> Counted:
            return Counted(self.count)

    class Follower:
        """Lets a pod in where fewer than two pods are counted, of which there is one in the beginning."""

        name = "Follower"

        def pre_filter(self, cycle: CycleState, pod: object, nodes: Nodes) -> None:
            cycle.write(key, Counted(1))

        def add_pod(self, cycle: CycleState, pod: object, added: PodInfo, node: NodeView) -> None:
            cycle.read(key).count += 1  # type: ignore[union-attr]

        def remove_pod(self, cycle: CycleState, pod: object, removed: PodInfo, node: NodeView) -> None:
            cycle.read(key).count -= 1  # type: ignore[union-attr]

        def filter(self, cycle: CycleState, pod: object, nodes: Nodes) -> FilterResult:
            full = cycle.read(key).count >= 2  # type: ignore[union-attr]
            return refuse_where(np.full(len(nodes), full), "counted two")

    everything, cycle = nodes("a", "b", "c"), CycleState()
    framework = framework_of(Follower())
    framework.pre_filter(cycle, POD, everything, Diagnosis(3))
    changes = HypotheticalPods(everything.snapshot, 3, added=[(1, PodInfo(make_pod("x", uid="x")))])
    changed = Nodes(everything.snapshot, everything.row_numbers(), changes)
    assert framework.filter(cycle, POD, changed, Diagnosis(3)).names == ["a", "c"]
    assert framework.filter(cycle, POD, everything, Diagnosis(3)).names == ["a", "b", "c"]


# Post-filters


def test_what_post_filters_say_is_joined_until_one_succeeds() -> None:
    first = recorder("First", Log(), post_filter=unschedulable("one"))
    second = recorder("Second", Log(), post_filter=unschedulable("two"))
    answer = run_without_suspending(
        framework_of(first, second).post_filter(CycleState(), POD, nodes("a"), Diagnosis(1))
    )
    assert (answer.status.message, answer.status.plugin) == ("one, two", "First")
    log = Log()
    winner = recorder("Winner", log, post_filter=PostFilterResult(nominated_node="a"))
    never = recorder("Never", log, post_filter=unschedulable("three"))
    answer = run_without_suspending(
        framework_of(first, winner, never).post_filter(CycleState(), POD, nodes("a"), Diagnosis(1))
    )
    assert (answer.status.code, answer.nominated_node, log) == (Code.SUCCESS, "a", ["Winner.post_filter"])


@pytest.mark.parametrize("status", [unresolvable("never"), Status(Code.ERROR, ("not found",))])
def test_a_post_filter_can_end_the_search_and_keeps_what_was_arranged_before(status: Status) -> None:
    log = Log()
    effect = BindPod(POD, "a")
    first = recorder("First", log, post_filter=PostFilterResult(unschedulable("x"), "", (effect,)))
    last = recorder("Last", log, post_filter=status)
    never = recorder("Never", log, post_filter=unschedulable("y"))
    answer = run_without_suspending(
        framework_of(first, last, never).post_filter(CycleState(), POD, nodes("a"), Diagnosis(1))
    )
    assert log == ["First.post_filter", "Last.post_filter"]
    assert (answer.status.message, answer.nominated_node, answer.effects) == (status.message, "", (effect,))


def test_post_filters_run_when_a_pre_filter_refused_all_nodes_too() -> None:
    refusing = recorder("Refusing", Log(), pre_filter=unschedulable("full"))
    saying = recorder("Saying", Log(), post_filter=unschedulable("no luck"))
    decision = Engine().decide(framework_of(refusing, saying), POD, nodes("a", "b").snapshot)
    assert decision.message == "0/2 nodes are available: full. no luck"


# Queue


def test_pre_enqueue_and_queue_sort() -> None:
    framework = framework_of(recorder("Gate", Log(), pre_enqueue=unresolvable("closed")))
    status = framework.pre_enqueue(POD)
    assert status is not None
    assert (status.message, status.plugin) == ("closed", "Gate")

    class Queued:
        def __init__(self, priority: int, timestamp: float) -> None:
            self.priority = priority
            self.timestamp = timestamp

    pods: list[Any] = [Queued(0, 1.0), Queued(5, 9.0), Queued(5, 2.0)]
    assert [p.timestamp for p in sorted(pods, key=framework.sort_key)] == [2.0, 9.0, 1.0]
