"""Every rule can be broken, and is found broken; who keeps them all passes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage import ALL, Code, FilterResult, Nodes, NodeView, Status
from moorage.testing import (
    CHECKS,
    Cluster,
    Extras,
    PluginReport,
    Result,
    assert_plugin_ok,
    check_plugin,
    decide_alone,
    node,
    pod,
    standard_clusters,
)
from tests.testing import broken
from tests.testing.broken import Named

BREACHES: dict[str, dict[type[Any], str]] = {
    "can-be-made": {
        broken.Nameless: 'plugin Nameless has no name; give its class one: name = "Nameless"',
        broken.Pointless: "has none of the extension points",
        broken.TakenName: "a plugin named NodeName exists already",
        broken.WrongSignature: "write def filter(self, cycle, pod, nodes)",
        broken.NeedsArgs: "colour",
    },
    "changes-nothing": {
        broken.LabelsPods: "it changed the pod",
        broken.LabelsNodes: "it changed a node",
        broken.RemovesObjects: "it changed the live objects",
        broken.NormalizesInPlace: "normalize_score changed the scores it was given",
    },
    "deterministic": {
        broken.ChangesItsMind: "asked again: filter said of",
        broken.RemembersPods: "asked before and after about other pods: score said of",
        broken.GatesEveryOther: "pre_enqueue answered None, then",
    },
    "raises-nothing": {
        broken.RaisesForSome: "broken.py:",
        broken.RaisesInReserve: "LookupError: n",
    },
    "status-answers": {
        broken.SaysYes: "pre_filter returned True",
        broken.SkipsReserve: "reserve answered Skip, which means nothing there",
        broken.WaitsForNoTime: "permit wants to wait for 0 seconds",
        broken.NominatesNobody: "post_filter nominated 'atlantis', which is no node",
        broken.NamesNumbers: "pre_filter returned {1}; a set holds names of nodes",
        broken.TalksWhenUnreserving: "unreserve returned",
    },
    "filter-answers": {
        broken.AnswersTrue: "filter returned ndarray",
        broken.AnswersForOne: "codes of shape (1,) for 3 nodes",
        broken.AnswersFloats: "codes of type float64",
        broken.ForgetsReasons: "filter answered with code 2; there are 1 reasons",
        broken.AnswersFalse: "filter_node returned False",
    },
    "refusals-have-reasons": {
        broken.RefusesSilently: "filter refused n0 without a reason",
        broken.RefusesNodesSilently: "filter_node refused n0 without a reason",
        broken.RefusesPodsSilently: "pre_filter refused a pod without a reason",
        broken.RefusesWithBlanks: "post_filter refused a pod without a reason",
    },
    "score-answers": {
        broken.ScoresOneNode: "scores of shape (1,) for 3 nodes",
        broken.ScoresFloats: "scores of type float64",
        broken.ScoresWords: "score_node returned 'good'",
    },
    "score-bounds": {
        broken.ScoresTooHigh: "n0 scored 101; scores are 0 to 100",
        broken.ScoresTooLow: "n0 scored -1",
        broken.NormalizesTooHigh: ", normalised; scores are 0 to 100",
        broken.NormalizesToFloats: "normalize_score returned scores of type float64",
    },
    "queue-order": {
        broken.SortsByMixedKeys: "the keys of queue_sort cannot be compared",
        broken.NamesSubQueuesByLists: "the sub-queues of sub_queue cannot be told apart",
        broken.SortsSubQueuesByMixedKeys: "the keys of sub_queue_sort cannot be compared",
        broken.ChangesOneSubQueue: "changed_sub_queues returned 1; return sub-queues, or None",
    },
    "same-alone": {
        broken.RefusesTheFirst: "filter said of n",
        broken.ComparesNodes: "score said of n",
    },
    "both-forms-agree": {
        broken.FiltersTwoWays: "filter_node: 'no disk'",
        broken.ScoresTwoWays: "score_node: ",
    },
    "works-without-pre-filter": {
        broken.NeedsItsPreFilter: "AssertionError",
        broken.FiltersOtherwiseUnprepared: "with and without pre_filter: filter said of n0: yes, then: 'not",
    },
    "skip-is-honest": {broken.SkipsAndRefuses: "pre_filter said SKIP, but filter would have refused n"},
    "depends-on-is-true": {
        broken.LooksAtPods: "pods came, which depends_on does not name: score said of n",
        broken.LooksAtOtherNodes: "another node changed, which depends_on does not name: filter said of n",
        broken.LooksAtAnnotations: "another pod of the template has another name and other annotations",
        broken.LooksAtNamespaces: "objects went (",
        broken.FavoursEquals: "nodes that all score 1 are made unequal by normalize_score",
        broken.NoDependsOn: "depends_on returned 'node'",
        broken.ReadsMoreThanItSays: "the pod has other labels, which the reads of depends_on do not contain",
    },
    "pods-come-and-go": {broken.NeverRemoves: "after add_pod and remove_pod of one pod on n"},
    "state-is-cloned": {broken.SharesItsState: "add_pod on a copy of the state changed the original"},
    "what-would-be": {
        broken.CountsOnceForAll: "as it would be with one pod more, filter says: yes; where it is so: 'too"
    },
    "unreserve-gives-back": {broken.NeverGivesBack: "its attribute taken is not {} but {'uid-of-waiting-"},
    "unreserve-is-idempotent": {
        broken.GivesBackTwice: "after a second unreserve its attribute free is not {} but {'n",
        broken.RaisesWithoutReserve: "KeyError",
    },
    "who-does-not-act-reserves-nothing": {
        broken.ReservesNevertheless: "but after reserve its attribute taken is not {} but {'uid-of-waiting-",
        broken.RefusesNevertheless: "but reserve answered Unschedulable no berth",
    },
    "events-are-well-formed": {
        broken.NamesWords: "events returned 'Node/add'",
        broken.NamesUnknownKinds: "events names 'Nodes'; name a Resource",
        broken.NamesActionsOfOthers: "of Pod, which only happens to nodes",
        broken.NamesNoAction: "events names no action for Node",
        broken.HintsTakeTwo: "the hint for Node has to take three arguments",
    },
    "hints-answer": {
        broken.HintsRaise: "the hint for Node (added) raised AttributeError",
        broken.HintsSayMaybe: "the hint for Node (added) answered 'maybe', not yes or no",
    },
}


@pytest.mark.parametrize(
    ("check", "plugin", "messages"),
    [
        (check, plugin, messages)
        for check, breaches in BREACHES.items()
        for plugin, messages in breaches.items()
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else None,
)
def test_a_breach_is_found(check: str, plugin: type[Any], messages: str) -> None:
    disks = Extras(pod_annotations={"example.com/disk": ("ssd", "hdd", None)})
    report = check_plugin(plugin, clusters=standard_clusters(disks)[1:3])
    outcome = report.of(check)
    assert outcome.result is Result.FAILED, str(report)
    assert any(messages in line for line in outcome.lines()), str(report)
    assert not report.ok
    assert messages in str(report)


def test_every_rule_has_a_breach() -> None:
    names = [check.name for check in CHECKS]
    assert ["can-be-made", *sorted(names)] == ["can-be-made", *sorted(set(BREACHES) - {"can-be-made"})]
    assert all(check.sentence.endswith(".") for check in CHECKS)


class Berth(Named):
    def filter(self, cycle: Any, pod: Any, nodes: Nodes) -> FilterResult:
        return nodes.label("berth").exists().otherwise("node(s) had no berth")

    def score(self, cycle: Any, pod: Any, nodes: Nodes) -> Any:
        return nodes.label("berth").as_int()


class CannotTell(Named):
    """Answers with an error, which a plugin may do, wherever a node has a label of its own."""

    def filter_node(self, cycle: Any, pod: Any, node: NodeView) -> Status | None:
        return Status(Code.ERROR, ("berth is unreadable",)) if "berth" in node.labels else None

    def score_node(self, cycle: Any, pod: Any, node: NodeView) -> Status | int:
        return Status(Code.ERROR, ("no scale",)) if pod.name.endswith("1") else 1


def test_an_error_is_an_answer() -> None:
    clusters = standard_clusters(Extras(node_labels={"berth": ("5", None)}))[1:3]
    report = check_plugin(CannotTell, clusters=clusters)
    assert report.ok, str(report)


@pytest.mark.parametrize("plugin", [Berth, broken.AtMostTwo, broken.KeepsBooks, broken.Refuses])
def test_a_plugin_that_follows_the_rules_passes(plugin: type[Any]) -> None:
    report = check_plugin(plugin)
    assert report.ok, str(report)
    assert not report.notes


def test_arguments_are_given_as_a_configuration_has_them_or_as_a_struct() -> None:
    for args in ({"colour": "blue"}, broken.ColourArgs("blue")):
        assert_plugin_ok(broken.NeedsArgs, args=args)


def test_a_wrong_argument_is_named() -> None:
    report = check_plugin(broken.NeedsArgs, args={"color": "blue"})
    assert "args.color: unknown field; did you mean colour?" in str(report)


def test_a_function_that_makes_a_plugin_needs_a_name() -> None:
    def make() -> Any:
        return Berth()

    assert_plugin_ok(make, name="Berth")
    assert "has no name" in str(check_plugin(make))


def test_a_failed_assertion_shows_the_report() -> None:
    with pytest.raises(AssertionError) as failed:
        assert_plugin_ok(broken.ScoresTooHigh)
    text = str(failed.value)
    first, *rest = text.splitlines()
    assert first.startswith("plugin ScoresTooHigh: ")
    assert first.endswith("cases")
    assert "  score-bounds: Scores are from 0 to 100, after normalize_score where there is one." in rest
    assert any(line.startswith("    n0 scored 101; scores are 0 to 100 (pod waiting-") for line in rest)
    assert any(line.strip().startswith("... and ") for line in rest)


def test_what_a_plugin_asks_for_is_mixed_into_the_clusters() -> None:
    class Deep(Named):
        """Looks for labels and annotations that nobody else has ever heard of."""

        asked_nodes: set[str | None] = set()
        asked_pods: set[str | None] = set()

        def filter_node(self, cycle: Any, pod: Any, node: Any) -> None:
            self.asked_nodes.add(node.node.metadata.annotations.get("example.com/deep"))
            self.asked_pods.add(pod.labels.get("example.com/deep"))

    check_plugin(Deep, args=None)
    assert len(Deep.asked_nodes) > 3
    assert len(Deep.asked_pods) > 3


def test_a_note_says_where_a_plugin_had_nothing_to_say() -> None:
    class Indifferent(Named):
        def filter(self, cycle: Any, pod: Any, nodes: Any) -> FilterResult:
            return ALL

        def score_node(self, cycle: Any, pod: Any, node: Any) -> int:
            return 5

    report = check_plugin(Indifferent)
    assert report.ok
    assert [note.partition(" in ")[0] for note in report.notes] == [
        "its filter refused no node",
        "it scored all nodes alike",
    ]


def test_own_clusters() -> None:
    class OnlyHere(Named):
        def filter_node(self, cycle: Any, pod: Any, node: Any) -> str | None:
            return "" if node.name == "special" else None

    assert check_plugin(OnlyHere).ok
    special = Cluster("special", (node("special"), node("other")), (pod("p"),))
    report = check_plugin(OnlyHere, clusters=[special])
    assert report.cases == 1
    assert "filter_node refused special without a reason (pod p, cluster 'special')" in str(report)


def test_the_clusters_are_the_same_every_time() -> None:
    assert standard_clusters() == standard_clusters()
    assert standard_clusters(seed=2) != standard_clusters()
    labelled = standard_clusters(Extras(node_labels={"berth": ("1", "2")}))
    nodes = [each for cluster in labelled for each in cluster.objects if type(each).__name__ == "Node"]
    assert {each.labels["berth"] for each in nodes} == {"1", "2"}


def test_a_decision_of_one_plugin_alone() -> None:
    nodes = [
        node("a"),
        node("b", labels={"berth": "5"}),
        node("c", labels={"berth": "9"}, taints=["x:NoSchedule"]),
    ]
    decision = decide_alone(Berth, pod("tug"), nodes)
    assert decision.node == "c"
    assert decision.scores_of("b") == {"Berth": 5}
    assert decision.diagnosis.tally() == {"node(s) had no berth": 1}


def test_a_struct_with_defaults_needs_no_arguments() -> None:
    class Args(msgspec.Struct):
        label: str = "berth"

    def make(args: Args) -> Any:
        assert args.label == "berth"
        return Berth()

    make.__annotations__["args"] = Args
    report: PluginReport = check_plugin(make, name="Berth")
    assert report.ok, str(report)
