"""Plugins that each break one rule, by the rule."""

from __future__ import annotations

from collections import Counter
from itertools import count
from typing import Any

import msgspec
import numpy as np

from moorage import (
    ALL,
    SKIP,
    SUCCESS,
    CycleState,
    FilterResult,
    Handle,
    Nodes,
    NodeView,
    Pod,
    PodInfo,
    Reason,
    Scores,
    StateKey,
    Status,
    unschedulable,
    wait,
)
from moorage.api.node import Namespace
from moorage.framework.interface.dependencies import NODE, NODE_AND_PODS, NOT_CONCERNED, DependsOn
from moorage.framework.interface.events import Action, Interest, Resource, on
from moorage.framework.interface.extension_points import PostFilterResult


class Named:
    """What they have in common."""

    def __init_subclass__(cls) -> None:
        cls.name = cls.__name__  # type: ignore[attr-defined]


# can-be-made


class Nameless:
    def filter(self, cycle: Any, pod: Any, nodes: Any) -> FilterResult:
        return ALL


class Pointless(Named):
    """Has no extension point."""


class TakenName:
    name = "NodeName"

    def filter(self, cycle: Any, pod: Any, nodes: Any) -> FilterResult:
        return ALL


class WrongSignature(Named):
    def filter(self, pod: Any) -> FilterResult:
        return ALL


class ColourArgs(msgspec.Struct):
    colour: str


class NeedsArgs(Named):
    def __init__(self, args: ColourArgs) -> None:
        self._colour = args.colour

    def filter(self, cycle: Any, pod: Any, nodes: Nodes) -> FilterResult:
        return nodes.label("colour").equals(self._colour).otherwise("wrong colour")


# changes-nothing


class LabelsPods(Named):
    def filter(self, cycle: Any, pod: Pod, nodes: Any) -> FilterResult:
        pod.labels["seen"] = "yes"
        return ALL


class LabelsNodes(Named):
    def filter_node(self, cycle: Any, pod: Pod, node: NodeView) -> None:
        node.node.labels["seen"] = "yes"


class RemovesObjects(Named):
    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def pre_filter(self, cycle: Any, pod: Pod, nodes: Nodes) -> None:
        self._handle.objects.of(Namespace).remove("", "other")


class NormalizesInPlace(Named):
    def score(self, cycle: Any, pod: Any, nodes: Nodes) -> Scores:
        return np.full(len(nodes), 200, np.int64)

    def normalize_score(self, cycle: Any, pod: Any, nodes: Any, scores: Scores) -> Scores:
        scores //= 2
        return scores


# deterministic


class ChangesItsMind(Named):
    def __init__(self) -> None:
        self._calls = count()

    def filter_node(self, cycle: Any, pod: Any, node: Any) -> str | None:
        return "not this time" if next(self._calls) % 5 else None


class RemembersPods(Named):
    """Scores a pod otherwise than one that has seen no pod before."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def score_node(self, cycle: Any, pod: Pod, node: Any) -> int:
        self._seen.add(pod.name)
        return min(len(self._seen), 100)


class GatesEveryOther(Named):
    def __init__(self) -> None:
        self._calls = count()

    def pre_enqueue(self, pod: Any) -> Status | None:
        return unschedulable("odd") if next(self._calls) % 2 else None


# raises-nothing


class RaisesForSome(Named):
    def filter_node(self, cycle: Any, pod: Any, node: NodeView) -> None:
        int(node.labels["disk"])


class RaisesInReserve(Named):
    def reserve(self, cycle: Any, pod: Any, node_name: Any) -> None:
        raise LookupError(node_name)

    def unreserve(self, cycle: Any, pod: Any, node_name: Any) -> None:
        pass


# status-answers


class SaysYes(Named):
    def pre_filter(self, cycle: Any, pod: Any, nodes: Any) -> bool:
        return True


class SkipsReserve(Named):
    def reserve(self, cycle: Any, pod: Any, node_name: Any) -> Status:
        return SKIP

    def unreserve(self, cycle: Any, pod: Any, node_name: Any) -> None:
        pass


class WaitsForNoTime(Named):
    def permit(self, cycle: Any, pod: Any, node_name: Any) -> Status:
        return wait(0)


class NominatesNobody(Named):
    def post_filter(self, cycle: Any, pod: Any, nodes: Any, diagnosis: Any) -> PostFilterResult:
        return PostFilterResult(SUCCESS, nominated_node="atlantis")


class NamesNumbers(Named):
    def pre_filter(self, cycle: Any, pod: Any, nodes: Any) -> set[int]:
        return {1}


class TalksWhenUnreserving(Named):
    def reserve(self, cycle: Any, pod: Any, node_name: Any) -> None:
        pass

    def unreserve(self, cycle: Any, pod: Any, node_name: Any) -> Status:
        return SUCCESS


# filter-answers


class AnswersTrue(Named):
    def filter(self, cycle: Any, pod: Any, nodes: Nodes) -> Any:
        return np.ones(len(nodes), bool)


class AnswersForOne(Named):
    def filter(self, cycle: Any, pod: Any, nodes: Nodes) -> FilterResult:
        return FilterResult(np.zeros(1, np.int8), (Reason(("no",)),))


class AnswersFloats(Named):
    def filter(self, cycle: Any, pod: Any, nodes: Nodes) -> FilterResult:
        return FilterResult(np.zeros(len(nodes)), (Reason(("no",)),))


class ForgetsReasons(Named):
    def filter(self, cycle: Any, pod: Any, nodes: Nodes) -> FilterResult:
        return FilterResult(np.full(len(nodes), 2), (Reason(("no",)),))


class AnswersFalse(Named):
    def filter_node(self, cycle: Any, pod: Any, node: Any) -> Any:
        return False


# refusals-have-reasons


class RefusesSilently(Named):
    def filter(self, cycle: Any, pod: Any, nodes: Nodes) -> FilterResult:
        return FilterResult(np.ones(len(nodes), np.int8), (Reason(("",)),))


class RefusesNodesSilently(Named):
    def filter_node(self, cycle: Any, pod: Any, node: Any) -> Status:
        return unschedulable()


class RefusesPodsSilently(Named):
    def pre_filter(self, cycle: Any, pod: Any, nodes: Any) -> Status:
        return unschedulable()


class RefusesWithBlanks(Named):
    def post_filter(self, cycle: Any, pod: Any, nodes: Any, diagnosis: Any) -> Status:
        return unschedulable(" ")


# score-answers


class ScoresOneNode(Named):
    def score(self, cycle: Any, pod: Any, nodes: Any) -> Scores:
        return np.ones(1, np.int64)


class ScoresFloats(Named):
    def score(self, cycle: Any, pod: Any, nodes: Nodes) -> Any:
        return np.full(len(nodes), 0.5)


class ScoresWords(Named):
    def score_node(self, cycle: Any, pod: Any, node: Any) -> Any:
        return "good"


# score-bounds


class ScoresTooHigh(Named):
    def score(self, cycle: Any, pod: Any, nodes: Nodes) -> Scores:
        return np.full(len(nodes), 101, np.int64)


class ScoresTooLow(Named):
    def score_node(self, cycle: Any, pod: Any, node: Any) -> int:
        return -1


class NormalizesTooHigh(Named):
    def score(self, cycle: Any, pod: Any, nodes: Nodes) -> Scores:
        return nodes.allocatable("memory")

    def normalize_score(self, cycle: Any, pod: Any, nodes: Any, scores: Scores) -> Scores:
        return scores + 1000


class NormalizesToFloats(Named):
    def score(self, cycle: Any, pod: Any, nodes: Nodes) -> Scores:
        return nodes.pod_count

    def normalize_score(self, cycle: Any, pod: Any, nodes: Any, scores: Scores) -> Any:
        return scores / 2


# queue-order


class SortsByMixedKeys(Named):
    def queue_sort(self, queued: Any) -> Any:
        return queued.pod.name if queued.timestamp % 2 else queued.timestamp


class HasSubQueues(Named):
    def queue_sort(self, queued: Any) -> Any:
        return queued.timestamp

    def sub_queue(self, queued: Any) -> Any:
        return queued.pod.name

    def sub_queue_sort(self, sub_queue: Any, first: Any) -> Any:
        return first.timestamp

    def changed_sub_queues(self, firsts: Any, popped: Any, failed: bool) -> Any:
        return ()


class NamesSubQueuesByLists(HasSubQueues):
    def sub_queue(self, queued: Any) -> Any:
        return [queued.pod.name]


class SortsSubQueuesByMixedKeys(HasSubQueues):
    def sub_queue_sort(self, sub_queue: Any, first: Any) -> Any:
        return sub_queue if first.timestamp % 2 else first.timestamp


class ChangesOneSubQueue(HasSubQueues):
    def changed_sub_queues(self, firsts: Any, popped: Any, failed: bool) -> Any:
        return 1 if failed else None


# same-alone


class RefusesTheFirst(Named):
    def filter(self, cycle: Any, pod: Any, nodes: Nodes) -> FilterResult:
        codes = np.zeros(len(nodes), np.int8)
        codes[:1] = 1
        return FilterResult(codes, (Reason(("first come, last served",)),))


class ComparesNodes(Named):
    """Its raw scores depend on which nodes are asked about, though it has depends_on."""

    def depends_on(self, pod: Any, objects: Any) -> DependsOn:
        return NODE

    def score(self, cycle: Any, pod: Any, nodes: Nodes) -> Scores:
        cores = nodes.allocatable("cpu")
        return 100 * cores // max(int(cores.max(initial=1)), 1)


# both-forms-agree


class FiltersTwoWays(Named):
    def filter(self, cycle: Any, pod: Any, nodes: Nodes) -> FilterResult:
        return nodes.label("disk").exists().otherwise("no disk")

    def filter_node(self, cycle: Any, pod: Any, node: NodeView) -> str | None:
        return None if node.labels.get("disk") == "ssd" else "no disk"


class ScoresTwoWays(Named):
    def score(self, cycle: Any, pod: Any, nodes: Nodes) -> Scores:
        return nodes.pod_count

    def score_node(self, cycle: Any, pod: Any, node: NodeView) -> int:
        return len(node.pods) + 1


# works-without-pre-filter

_LIMIT: StateKey[int] = StateKey("limit")


class NeedsItsPreFilter(Named):
    def pre_filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> None:
        cycle.write(_LIMIT, 3)

    def filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> FilterResult:
        limit = cycle.read(_LIMIT)
        assert limit is not None
        return ALL


class FiltersOtherwiseUnprepared(Named):
    def pre_filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> None:
        cycle.write(_LIMIT, 3)

    def filter_node(self, cycle: CycleState, pod: Pod, node: NodeView) -> str | None:
        return None if cycle.read(_LIMIT) else "not prepared"


# skip-is-honest


class SkipsAndRefuses(Named):
    def pre_filter(self, cycle: Any, pod: Any, nodes: Any) -> Status:
        return SKIP

    def filter_node(self, cycle: Any, pod: Any, node: NodeView) -> str | None:
        return "no zone" if "topology.kubernetes.io/zone" not in node.labels else None


# depends-on-is-true


class LooksAtPods(Named):
    def depends_on(self, pod: Any, objects: Any) -> DependsOn:
        return NODE

    def score(self, cycle: Any, pod: Any, nodes: Nodes) -> Scores:
        return nodes.pod_count


class LooksAtOtherNodes(Named):
    def depends_on(self, pod: Any, objects: Any) -> DependsOn:
        return NODE_AND_PODS

    def filter(self, cycle: Any, pod: Any, nodes: Nodes) -> FilterResult:
        cordoned = int(nodes.all.unschedulable.sum())
        return FilterResult(
            np.full(len(nodes), cordoned % 2), (Reason(("an odd number of nodes are cordoned",)),)
        )


class LooksAtAnnotations(Named):
    def depends_on(self, pod: Any, objects: Any) -> DependsOn:
        return NODE

    def filter_node(self, cycle: Any, pod: Pod, node: NodeView) -> str | None:
        wanted = pod.metadata.annotations.get("example.com/disk")
        return None if wanted in (None, node.labels.get("disk")) else "wrong disk"


class LooksAtNamespaces(Named):
    def depends_on(self, pod: Any, objects: Any) -> DependsOn:
        return NODE

    def filter_node(self, cycle: Any, pod: Pod, node: NodeView) -> str | None:
        namespace = node.objects.of(Namespace).get("", pod.namespace)
        return "unknown namespace" if namespace is None else None


class FavoursEquals(Named):
    def depends_on(self, pod: Any, objects: Any) -> DependsOn:
        return NODE

    def score(self, cycle: Any, pod: Any, nodes: Nodes) -> Scores:
        return np.ones(len(nodes), np.int64)

    def normalize_score(self, cycle: Any, pod: Any, nodes: Nodes, scores: Scores) -> Scores:
        return np.arange(len(nodes))


class ReadsMoreThanItSays(Named):
    def depends_on(self, pod: Pod, objects: Any) -> DependsOn:
        return DependsOn(reads=pod.spec.tolerations)

    def filter_node(self, cycle: Any, pod: Pod, node: NodeView) -> str | None:
        return "changed" if pod.labels.get("app") == "changed" else None


class NoDependsOn(Named):
    def depends_on(self, pod: Any, objects: Any) -> Any:
        return "node"

    def filter(self, cycle: Any, pod: Any, nodes: Any) -> FilterResult:
        return ALL


# pods-come-and-go, state-is-cloned, what-would-be


class Counts(dict[str, int]):
    def clone(self) -> Counts:
        return Counts(self)


_COUNTS: StateKey[dict[str, int]] = StateKey("counts")


class AtMostTwo(Named):
    """Lets at most two pods on a node, and breaks no rule."""

    def counted(self, nodes: Nodes) -> dict[str, int]:
        return Counts({name: len(nodes.pods_on(index)) for index, name in enumerate(nodes.names)})

    def pre_filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> None:
        cycle.write(_COUNTS, self.counted(nodes))

    def add_pod(self, cycle: CycleState, pod: Pod, added: PodInfo, node: NodeView) -> None:
        self._add(cycle, node, 1)

    def remove_pod(self, cycle: CycleState, pod: Pod, removed: PodInfo, node: NodeView) -> None:
        self._add(cycle, node, -1)

    def _add(self, cycle: CycleState, node: NodeView, more: int) -> None:
        counts = cycle.read(_COUNTS)
        assert counts is not None
        counts[node.name] += more

    def filter_node(self, cycle: CycleState, pod: Pod, node: NodeView) -> str | None:
        counts = cycle.read_or(_COUNTS, lambda: self.counted(Nodes(node.snapshot)))
        return "too many pods" if counts[node.name] > 2 else None


class NeverRemoves(AtMostTwo):
    def remove_pod(self, cycle: CycleState, pod: Pod, removed: PodInfo, node: NodeView) -> None:
        pass


class SharesItsState(AtMostTwo):
    def counted(self, nodes: Nodes) -> dict[str, int]:
        return dict(super().counted(nodes))


class CountsOnceForAll(Named):
    """Counts pods in its pre-filter and is not told of pods that are taken to come and go."""

    def pre_filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> None:
        cycle.write(_COUNTS, AtMostTwo().counted(nodes))

    def filter_node(self, cycle: CycleState, pod: Pod, node: NodeView) -> str | None:
        counts = cycle.read_or(_COUNTS, lambda: AtMostTwo().counted(Nodes(node.snapshot)))
        return "too many pods" if counts[node.name] > 2 else None


# unreserve-gives-back, unreserve-is-idempotent


class KeepsBooks(Named):
    """Keeps books, and breaks no rule."""

    def __init__(self) -> None:
        self.taken: dict[str, str] = {}

    def reserve(self, cycle: Any, pod: Pod, node_name: str) -> None:
        self.taken[pod.uid] = node_name

    def unreserve(self, cycle: Any, pod: Pod, node_name: str) -> None:
        self.taken.pop(pod.uid, None)


class NeverGivesBack(KeepsBooks):
    def unreserve(self, cycle: Any, pod: Pod, node_name: str) -> None:
        pass


class GivesBackTwice(Named):
    def __init__(self) -> None:
        self.free: Counter[str] = Counter()

    def reserve(self, cycle: Any, pod: Any, node_name: str) -> None:
        self.free[node_name] -= 1

    def unreserve(self, cycle: Any, pod: Any, node_name: str) -> None:
        self.free[node_name] += 1


class RaisesWithoutReserve(KeepsBooks):
    def unreserve(self, cycle: Any, pod: Pod, node_name: str) -> None:
        del self.taken[pod.uid]


# who-does-not-act-reserves-nothing


class ReservesNevertheless(KeepsBooks):
    def depends_on(self, pod: Any, objects: Any) -> DependsOn:
        return NOT_CONCERNED


class RefusesNevertheless(Named):
    def depends_on(self, pod: Any, objects: Any) -> DependsOn:
        return NOT_CONCERNED

    def reserve(self, cycle: Any, pod: Any, node_name: str) -> Status:
        return unschedulable("no berth")


# events-are-well-formed, hints-answer


class Refuses(Named):
    def filter_node(self, cycle: Any, pod: Any, node: NodeView) -> str | None:
        return None if "disk" in node.labels else "no disk"


class NamesWords(Refuses):
    def events(self) -> Any:
        return ("Node/add",)


class NamesUnknownKinds(Refuses):
    def events(self) -> tuple[Interest, ...]:
        return (on("Nodes", Action.ADD),)


class NamesActionsOfOthers(Refuses):
    def events(self) -> tuple[Interest, ...]:
        return (on(Resource.POD, Action.UPDATE_NODE_LABEL),)


class NamesNoAction(Refuses):
    def events(self) -> tuple[Interest, ...]:
        return (on(Resource.NODE, Action(0)),)


class HintsTakeTwo(Refuses):
    def events(self) -> tuple[Interest, ...]:
        return (on(Resource.NODE, Action.ADD, lambda pod, node: True),)  # type: ignore[misc,arg-type]


class HintsRaise(Refuses):
    def events(self) -> tuple[Interest, ...]:
        return (on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, self._helps),)

    def _helps(self, pod: Any, old: Any, new: Any) -> bool:
        return bool(old.labels["disk"] != new.labels["disk"])


class HintsSayMaybe(Refuses):
    def events(self) -> tuple[Interest, ...]:
        return (on(Resource.NODE, Action.ADD, lambda pod, old, new: "maybe"),)  # type: ignore[arg-type,return-value]
