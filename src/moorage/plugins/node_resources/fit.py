"""NodeResourcesFit: a node must have room for what the pod requests; how full it gets is its score."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from moorage.api.devices import DeviceClass
from moorage.api.names import is_extended_resource, is_scalar_resource
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.remembered import IdentityCache
from moorage.api.resource_requests import (
    PODS,
    pod_requests,
    resource_amounts,
    scoring_requests,
    spec_requests,
    whole_units,
)
from moorage.client.kinds import Kind
from moorage.cluster.object_tables import Objects
from moorage.config.args import (
    NodeResourcesFitArgs,
)
from moorage.framework.interface.cycle_state import CycleState, StateKey
from moorage.framework.interface.dependencies import NODE_AND_PODS, DependsOn
from moorage.framework.interface.events import Action, Interest, Resource, on
from moorage.framework.interface.extension_points import Scores
from moorage.framework.interface.filter_result import FilterResult, Reason
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.nodes import Nodes, NodeView
from moorage.framework.interface.pod_groups import PlacementAssignments, PodGroupInfo
from moorage.framework.interface.status import Code, Status
from moorage.plugins.dynamic_resources.device_totals import DEVICE_KINDS, DeviceTotals
from moorage.plugins.dynamic_resources.extended_resources import CLASS_PREFIX, backing_class, can_be_backed
from moorage.plugins.hint_helpers import Answer, explained, is_placed
from moorage.plugins.node_resources import scoring_strategies as strategies
from moorage.plugins.node_resources.free_columns import NATIVE_LANES, PODS_LANE, FreeColumns
from moorage.plugins.node_resources.placement_sums import PlacementSums
from moorage.plugins.node_resources.shortages import Shortages
from moorage.plugins.node_resources.usage import ScoredRequests, ScoredResources, picked, whole_columns

TOO_MANY_PODS = "Too many pods"
INSUFFICIENT = "Insufficient {}"

_FULLEST = strategies.WeightedMean(most=True)
"""How placements are scored, however nodes are."""

_REQUESTS: StateKey[dict[str, int]] = StateKey("NodeResourcesFit/filter")
_WANTED: StateKey[ScoredRequests] = StateKey("NodeResourcesFit/score")

_NOT_PLACED = Answer(
    False, "the deleted pod was unscheduled and it wouldn't make the unscheduled pod schedulable"
)
_FREED = Answer(True, "another scheduled pod was deleted, and it may make the unscheduled pod schedulable")
_SCALED_ELSEWHERE = Answer(
    False,
    "pod got scaled down, but the modification isn't related to the resource requests of the target pod",
)
_SCALED_DOWN = Answer(
    True,
    "another scheduled pod or the target pod itself got scaled down, "
    "and it may make the unscheduled pod schedulable",
)
_STILL_INSUFFICIENT = Answer(
    False,
    "node was created or updated, but it doesn't have enough resource(s) to accommodate this pod",
)
_NEW_NODE_FITS = Answer(True, "node was added and it might fit the pod's resource requests")
_SAME_ALLOCATABLE = Answer(
    False, "node was updated, but haven't changed the pod's resource requestments fit assessment"
)
_MORE_ALLOCATABLE = Answer(True, "node was updated, and may now fit the pod's resource requests")
_SAME_RESOURCE = Answer(False, "device class has identical extended resource name")
_NEW_CLASS = Answer(True, "device class was added, and may now fit the pod's resource requests")
_BACKED_NOW = Answer(True, "device class was created or updated, and may fit the pod's resoruce requests")
_OTHER_RESOURCE = Answer(
    False,
    "created or updated deivce class extended resource name is either nil, "
    "or does not match pod's resource request",
)
"""The answer of hints, with kube-scheduler's message."""


class NodeResourcesFit:
    """Compares requests with what is left, one resource at a time, on all nodes at once."""

    name = "NodeResourcesFit"
    watched_kinds: tuple[Kind, ...] = DEVICE_KINDS

    def __init__(self, args: NodeResourcesFitArgs, handle: Handle) -> None:
        strategy = args.scoring_strategy
        self._objects = handle.objects
        self._ignored = frozenset(args.ignored_resources)
        self._ignored_groups = frozenset(args.ignored_resource_groups)
        self._names_and_weights = [(each.name, each.weight) for each in strategy.resources]
        devices = DeviceTotals(handle.objects)
        self._scored = ScoredResources(self._names_and_weights, devices, scoring_defaults=True)
        ratio = strategy.requested_to_capacity_ratio
        self._strategy = strategies.strategy(strategy.type, ratio.shape if ratio is not None else ())
        self._needed_by = IdentityCache(self._needs)
        self._counted_for = IdentityCache(_scoring_amounts)

    # Events

    def events(self) -> tuple[Interest, ...]:
        """Pods deleted or scaled down, nodes added or enlarged, or devices that back a resource."""
        return (
            on(
                Resource.POD,
                Action.DELETE,
                explained(_frees_resources, "deletedPod"),
                per_equivalence_class=True,
            ),
            on(
                Resource.POD,
                Action.UPDATE_POD_SCALE_DOWN,
                explained(self._requests_less, "modifiedPod"),
                per_equivalence_class=True,
            ),
            on(
                Resource.NODE,
                Action.ADD | Action.UPDATE_NODE_ALLOCATABLE,
                explained(self._fits_now, "node"),
                per_equivalence_class=True,
            ),
            on(
                Resource.DEVICE_CLASS,
                Action.ADD | Action.UPDATE,
                explained(self._backs_request, "deviceclass"),
                per_equivalence_class=True,
            ),
        )

    def _requests_less(self, pod: Pod, old: Pod, new: Pod) -> Answer:
        if new.uid == pod.uid:
            return _SCALED_DOWN
        if not new.spec.node_name:
            return _SCALED_ELSEWHERE
        before, after = _used_by(old), _used_by(new)
        frees = any(before.get(name, 0) > after.get(name, 0) for name in self._needed_by(pod))
        return _SCALED_DOWN if frees else _SCALED_ELSEWHERE

    def _fits_now(self, pod: Pod, old: Node | None, new: Node) -> Answer:
        """Whether an empty node has room for a pod, and more of the requested resources than before."""
        needs, room = self._needed_by(pod), _free_on(new)
        backed = {name for name in needs if not room.get(name) and _is_backed(name, self._objects)}
        if room[PODS] < 1 or any(room.get(name, 0) < needs[name] for name in needs.keys() - backed):
            return _STILL_INSUFFICIENT
        if old is None:
            return _NEW_NODE_FITS
        before = _free_on(old)
        grows = backed or any(room.get(name, 0) > before.get(name, 0) for name in (PODS, *needs))
        return _MORE_ALLOCATABLE if grows else _SAME_ALLOCATABLE

    def _backs_request(self, pod: Pod, old: DeviceClass | None, new: DeviceClass) -> Answer:
        resource, needs = new.spec.extended_resource_name, self._needed_by(pod)
        if old is not None and resource == old.spec.extended_resource_name:
            return _SAME_RESOURCE
        if old is None and CLASS_PREFIX + new.name in needs:
            return _NEW_CLASS
        return _BACKED_NOW if resource in needs else _OTHER_RESOURCE

    # Filtering and scoring

    def depends_on(self, pod: Pod, objects: Objects) -> DependsOn | None:
        """Allocatable and requested resources of the node, unless devices may back one of them."""
        needs = self._needed_by(pod)
        extended = [name for name in needs if can_be_backed(name)]
        if not extended:
            return NODE_AND_PODS
        if any(_is_backed(name, objects) for name in extended):
            return None
        return DependsOn(pods=True, tables=(DeviceClass,))

    def pre_filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """Compute the pod's requests."""
        cycle.write(_REQUESTS, self._needed_by(pod))
        return None

    def _needs(self, pod: Pod) -> dict[str, int]:
        amounts = resource_amounts(spec_requests(pod))
        return {name: amount for name, amount in amounts.items() if amount > 0 and not self._is_ignored(name)}

    def _is_ignored(self, name: str) -> bool:
        if not (self._ignored or self._ignored_groups) or not is_extended_resource(name):
            return False
        return name in self._ignored or name.partition("/")[0] in self._ignored_groups

    def filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> FilterResult:
        """Reject nodes without room, naming every resource that is short.

        A request above the whole node is unresolvable: no preemption makes the node larger. A resource that
        devices back is left to DynamicResources on nodes that have none of it themselves.
        """
        view, shortages = whole_columns(nodes), Shortages()
        room = _Room(view)
        is_full = room.is_full()
        if is_full is not None:
            shortages.add(picked(is_full, view, nodes), TOO_MANY_PODS)
        for name, amount in cycle.read_or(_REQUESTS, lambda: self._needed_by(pod)).items():
            short = room.short_of(name, amount)
            if short is None:
                continue
            is_too_small = room.has_less_than(name, amount)
            if _is_backed(name, view.objects):
                short &= view.allocatable(name) != 0
            too_small = None if is_too_small is None else picked(short & is_too_small, view, nodes)
            shortages.add(picked(short, view, nodes), INSUFFICIENT.format(name), too_small)
        return shortages.result()

    def filter_node(self, cycle: CycleState, pod: Pod, node: NodeView) -> Reason | None:
        """As `filter`, for one node."""
        texts = [TOO_MANY_PODS] if node.pod_count >= node.allowed_pods else []
        code = Code.UNSCHEDULABLE
        needs = cycle.read_or(_REQUESTS, lambda: self._needed_by(pod))
        for name in node.short_of(needs):
            allocatable = node.allocatable(name)
            if not allocatable and _is_backed(name, node.objects):
                continue
            texts.append(INSUFFICIENT.format(name))
            if allocatable < needs[name]:
                code = Code.UNRESOLVABLE
        return Reason(tuple(texts), code) if texts else None

    def pre_score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """Compute the pod's requests of scored resources."""
        cycle.write(_WANTED, self._wanted(pod))
        return None

    def _wanted(self, pod: Pod) -> ScoredRequests:
        return self._scored.wanted(scoring_requests(pod))

    def score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Scores:
        """The strategy's score of the node's utilization with the pod."""
        wanted = cycle.read_or(_WANTED, lambda: self._wanted(pod))
        view = whole_columns(nodes)
        return picked(self._strategy.on_all(self._scored.usage(view, wanted), wanted), view, nodes)

    def score_node(self, cycle: CycleState, pod: Pod, node: NodeView) -> int:
        """As `score`, for one node."""
        wanted = cycle.read_or(_WANTED, lambda: self._wanted(pod))
        if not wanted.is_node_local:
            return int(self.score(cycle, pod, node.as_nodes())[0])
        return self._strategy.on_one(self._scored.usages_of(node, wanted))

    def placement_score(
        self, cycle: CycleState, group: PodGroupInfo, placements: Sequence[PlacementAssignments]
    ) -> Scores:
        """How full each placement would be as a whole, with the group: the fuller, the better."""
        sums = PlacementSums([each.placement.nodes for each in placements])
        scores, pods = [], list[Pod]()
        wanted: Mapping[str, int] = {}
        for number, each in enumerate(placements):
            members = [assignment.pod for assignment in each.assignments]
            if members != pods:
                pods, wanted = members, self._wanted_by(members)
            scores.append(_FULLEST.on_one(self._usages(number, sums, wanted)))
        return np.array(scores, np.int64)

    def _usages(
        self, number: int, sums: PlacementSums, wanted: Mapping[str, int]
    ) -> list[tuple[int, int, int, int]]:
        """How much of each resource is used in a placement, without what is wanted and with it."""
        usages = []
        for name, weight in self._names_and_weights:
            if name not in wanted and is_scalar_resource(name):
                continue
            allocatable = sums.of(Nodes.allocatable, name)[number]
            if allocatable:
                allocated = sums.of(Nodes.scoring_requested, name)[number]
                usages.append((weight, allocatable, allocated, allocated + wanted.get(name, 0)))
        return usages

    def _wanted_by(self, pods: Iterable[Pod]) -> Mapping[str, int]:
        """What pods request together, as far as scoring counts it; without what none requests."""
        wanted: Counter[str] = Counter()
        for pod in pods:
            for name, amount in self._counted_for(pod):
                wanted[name] += amount
        return {name: amount for name, amount in wanted.items() if amount}


class _Room:
    """What is free on nodes: from the columns that are kept for all nodes where that is exact."""

    __slots__ = ("_columns", "_nodes")

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        columns = FreeColumns.of(nodes.snapshot) if nodes.hypothetical_pods is None else None
        self._columns = columns if columns is not None and columns.is_exact else None

    def is_full(self) -> NDArray[np.bool_] | None:
        """Which nodes take no more pods; None: all do."""
        columns, nodes = self._columns, self._nodes
        if columns is None:
            is_full = nodes.pod_count >= nodes.allowed_pods
            return is_full if is_full.any() else None
        return columns.below(PODS_LANE, columns.free_pods, 1, nodes)

    def short_of(self, resource: str, amount: int) -> NDArray[np.bool_] | None:
        """Which nodes have less than an amount of a resource free; None: none of them."""
        columns, nodes, lane = self._columns, self._nodes, NATIVE_LANES.get(resource)
        if columns is None or lane is None:
            short = nodes.allocatable(resource) - nodes.requested(resource) < amount
            return short if short.any() else None
        return columns.below(lane, columns.free[lane], amount, nodes)

    def has_less_than(self, resource: str, amount: int) -> NDArray[np.bool_] | None:
        """Which nodes have less than an amount of a resource altogether; None: none of them."""
        lane = NATIVE_LANES.get(resource)
        if self._columns is not None and lane is not None and self._columns.min_allocatable[lane] >= amount:
            return None
        return self._nodes.allocatable(resource) < amount


def _free_resources(node: Node) -> dict[str, int]:
    allocatable = node.status.allocatable
    return {PODS: allocatable[PODS].value if PODS in allocatable else 0, **resource_amounts(allocatable)}


def _scoring_amounts(pod: Pod) -> list[tuple[str, int]]:
    return [(name, whole_units(name, amount)) for name, amount in scoring_requests(pod).items()]


def _used_resources(pod: Pod) -> dict[str, int]:
    return resource_amounts(pod_requests(pod, use_status=True))


_free_on = IdentityCache(_free_resources, at_most=8)
_used_by = IdentityCache(_used_resources, at_most=8)
"""Cached, because the hint for one object is called for many pods."""


def _is_backed(resource: str, objects: Objects) -> bool:
    return backing_class(resource, objects.of(DeviceClass)) is not None


def _frees_resources(pod: Pod, old: Pod, new: None) -> Answer:
    return _FREED if is_placed(old) else _NOT_PLACED
