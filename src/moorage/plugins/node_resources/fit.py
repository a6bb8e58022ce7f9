"""NodeResourcesFit: a node must have room for what the pod requests; how full it gets is its score."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moorage.api.devices import DeviceClass
from moorage.api.names import is_extended_resource
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.remembered import Remembered
from moorage.api.requests import PODS, SCORING_DEFAULTS, pod_requests, resource_amounts
from moorage.client.kinds import Kind
from moorage.cluster.object_tables import Objects
from moorage.config.args import (
    NodeResourcesFitArgs,
)
from moorage.framework.interface.cycle_state import CycleState, StateKey
from moorage.framework.interface.dependencies import DependsOn
from moorage.framework.interface.events import Action, Interest, Resource, on
from moorage.framework.interface.extension_points import Scores
from moorage.framework.interface.filter_result import ALL, FilterResult, Reason
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.nodes import Nodes, NodeView
from moorage.framework.interface.status import Code, Status
from moorage.plugins.dynamic_resources.device_totals import DEVICE_KINDS, DeviceTotals
from moorage.plugins.dynamic_resources.extended_resources import CLASS_PREFIX, backing_class, can_be_backed
from moorage.plugins.node_resources import scoring_strategies as strategies
from moorage.plugins.node_resources.usage import Wanted, usages, usages_of, wanted_of
from moorage.plugins.queueing_hints import Answer, explained, is_placed

TOO_MANY_PODS = "Too many pods"
INSUFFICIENT = "Insufficient {}"

_REQUESTS: StateKey[dict[str, int]] = StateKey("NodeResourcesFit/filter")
_WANTED: StateKey[Wanted] = StateKey("NodeResourcesFit/score")

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
_NO_ROOM = Answer(
    False,
    "node was created or updated, but it doesn't have enough resource(s) to accommodate this pod",
)
_NEW_ROOM = Answer(True, "node was added and it might fit the pod's resource requests")
_SAME_ROOM = Answer(
    False, "node was updated, but haven't changed the pod's resource requestments fit assessment"
)
_MORE_ROOM = Answer(True, "node was updated, and may now fit the pod's resource requests")
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
        self._devices = DeviceTotals(handle.objects)
        self._ignored = frozenset(args.ignored_resources)
        self._ignored_groups = frozenset(args.ignored_resource_groups)
        self._scored = [(each.name, each.weight) for each in strategy.resources]
        ratio = strategy.requested_to_capacity_ratio
        self._strategy = strategies.strategy(strategy.type, ratio.shape if ratio is not None else ())
        self._needed_by = Remembered(self._needs)

    # Events

    def events(self) -> tuple[Interest, ...]:
        """Pods deleted or scaled down, nodes added or enlarged, or devices that back a resource."""
        return (
            on(Resource.POD, Action.DELETE, explained(_frees_room, "deletedPod"), per_equivalence_class=True),
            on(
                Resource.POD,
                Action.UPDATE_POD_SCALE_DOWN,
                explained(self._takes_less, "modifiedPod"),
                per_equivalence_class=True,
            ),
            on(
                Resource.NODE,
                Action.ADD | Action.UPDATE_NODE_ALLOCATABLE,
                explained(self._has_room, "node"),
                per_equivalence_class=True,
            ),
            on(
                Resource.DEVICE_CLASS,
                Action.ADD | Action.UPDATE,
                explained(self._backs_request, "deviceclass"),
                per_equivalence_class=True,
            ),
        )

    def _takes_less(self, pod: Pod, old: Pod, new: Pod) -> Answer:
        if new.uid == pod.uid:
            return _SCALED_DOWN
        if not new.spec.node_name:
            return _SCALED_ELSEWHERE
        before, after = _taken_by(old), _taken_by(new)
        frees = any(before.get(name, 0) > after.get(name, 0) for name in self._needed_by(pod))
        return _SCALED_DOWN if frees else _SCALED_ELSEWHERE

    def _has_room(self, pod: Pod, old: Node | None, new: Node) -> Answer:
        """Whether an empty node has room for a pod, and more of the requested resources than before."""
        needs, room = self._needed_by(pod), _room_on(new)
        backed = {name for name in needs if not room.get(name) and self._is_backed(name)}
        if room[PODS] < 1 or any(room.get(name, 0) < needs[name] for name in needs.keys() - backed):
            return _NO_ROOM
        if old is None:
            return _NEW_ROOM
        before = _room_on(old)
        grows = backed or any(room.get(name, 0) > before.get(name, 0) for name in (PODS, *needs))
        return _MORE_ROOM if grows else _SAME_ROOM

    def _is_backed(self, resource: str) -> bool:
        return backing_class(resource, self._objects.of(DeviceClass)) is not None

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
        needs = self._needs(pod)
        if any(backing_class(name, objects.of(DeviceClass)) is not None for name in needs):
            return None
        return DependsOn(pods=True, tables=(DeviceClass,) if any(map(can_be_backed, needs)) else ())

    def pre_filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """Compute the pod's requests."""
        cycle.write(_REQUESTS, self._needs(pod))
        return None

    def _needs(self, pod: Pod) -> dict[str, int]:
        amounts = resource_amounts(pod_requests(pod))
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
        shortages = _Shortages(len(nodes))
        shortages.add(nodes.pod_count >= nodes.allowed_pods, TOO_MANY_PODS)
        too_small: NDArray[np.bool_] | None = None
        for name, amount in cycle.read_or(_REQUESTS, lambda: self._needs(pod)).items():
            allocatable = nodes.allocatable(name)
            short = allocatable - nodes.requested(name) < amount
            if backing_class(name, nodes.objects.of(DeviceClass)) is not None:
                short &= allocatable != 0
            if short.any():
                shortages.add(short, INSUFFICIENT.format(name))
                never = short & (allocatable < amount)
                too_small = never if too_small is None else too_small | never
        return shortages.verdict(too_small)

    def filter_node(self, cycle: CycleState, pod: Pod, node: NodeView) -> Reason | None:
        """As `filter`, for one node."""
        texts = [TOO_MANY_PODS] if node.pod_count >= node.allowed_pods else []
        code = Code.UNSCHEDULABLE
        for name, amount in cycle.read_or(_REQUESTS, lambda: self._needs(pod)).items():
            allocatable = node.allocatable(name)
            if allocatable - node.requested(name) >= amount:
                continue
            if not allocatable and backing_class(name, node.objects.of(DeviceClass)) is not None:
                continue
            texts.append(INSUFFICIENT.format(name))
            if allocatable < amount:
                code = Code.UNRESOLVABLE
        return Reason(tuple(texts), code) if texts else None

    def pre_score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """Compute the pod's requests of scored resources."""
        cycle.write(_WANTED, self._wanted(pod))
        return None

    def _wanted(self, pod: Pod) -> Wanted:
        requests = pod_requests(pod, pod_level=False, defaults=SCORING_DEFAULTS)
        return wanted_of(self._scored, requests)

    def score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Scores:
        """The strategy's score of the node's utilization with the pod."""
        wanted = cycle.read_or(_WANTED, lambda: self._wanted(pod))
        return self._strategy.on_all(usages(nodes, wanted, self._devices, scoring_defaults=True), len(nodes))

    def score_node(self, cycle: CycleState, pod: Pod, node: NodeView) -> int:
        """As `score`, for one node."""
        wanted = cycle.read_or(_WANTED, lambda: self._wanted(pod))
        if not wanted.is_row_alone:
            return int(self.score(cycle, pod, node.as_nodes())[0])
        return self._strategy.on_one(usages_of(node, wanted, scoring_defaults=True))


def _work_out_room(node: Node) -> dict[str, int]:
    allocatable = node.status.allocatable
    return {PODS: allocatable[PODS].value if PODS in allocatable else 0, **resource_amounts(allocatable)}


def _work_out_taken(pod: Pod) -> dict[str, int]:
    return resource_amounts(pod_requests(pod, use_status=True))


_room_on = Remembered(_work_out_room, at_most=8)
_taken_by = Remembered(_work_out_taken, at_most=8)
"""Cached, because the hint for one object is called for many pods."""


class _Shortages:
    """Which combination of reasons each node has; only combinations that occur get a code."""

    def __init__(self, count: int) -> None:
        self._codes = np.zeros(count, np.int64)
        self._combinations: list[tuple[str, ...]] = [()]

    def add(self, short: NDArray[np.bool_], reason: str) -> None:
        """One more reason, for the nodes where `short` is True."""
        if short.any():
            self._combinations = [
                (*combination, reason) if added else combination for combination, added in self._split(short)
            ]

    def _split(self, mask: NDArray[np.bool_]) -> list[tuple[tuple[str, ...], bool]]:
        """Split nodes of one code into two codes by `mask`; code 0 keeps its meaning.

        Returns what each new code means: the old combination, and which side of the mask.
        """
        paired = self._codes * 2 + mask
        used = np.bincount(paired, minlength=2 * len(self._combinations)) > 0
        used[0] = True
        self._codes = (np.cumsum(used) - 1)[paired]
        return [(self._combinations[code // 2], bool(code % 2)) for code in np.flatnonzero(used).tolist()]

    def verdict(self, too_small: NDArray[np.bool_] | None) -> FilterResult:
        """The filter result; nodes that are too small are unresolvable."""
        if len(self._combinations) == 1:
            return ALL
        if too_small is None or not too_small.any():
            return FilterResult(self._codes, tuple(Reason(texts) for texts in self._combinations[1:]))
        codes = (Code.UNSCHEDULABLE, Code.UNRESOLVABLE)
        meanings = self._split(too_small)
        return FilterResult(self._codes, tuple(Reason(texts, codes[never]) for texts, never in meanings[1:]))


def _frees_room(pod: Pod, old: Pod, new: None) -> Answer:
    return _FREED if is_placed(old) else _NOT_PLACED
