"""What is noted of a simulation while it runs: every pod with its times, and amounts over time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from moorage.api.names import is_extended_resource
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.resource_requests import (
    CPU,
    MEMORY,
    PODS,
    current_requests,
    resource_amounts,
    whole_units,
)
from moorage.simulation.fragmentation import Amounts, Change, Fragmentation
from moorage.simulation.shapes import price_of
from moorage.simulation.time_series import TimeSeries

_OF_NO_RESOURCE: Final = range(4)
RUNNING_PODS, PENDING_PODS, NODES, PRICE = _OF_NO_RESOURCE
"""The indices of the amounts over time that are of no resource; price is by hour."""
_NO_AMOUNTS: Final[Amounts] = {}


class Outcome(StrEnum):
    """What has become of a pod."""

    PENDING = "Pending"
    RUNNING = "Running"
    COMPLETED = "Completed"
    FAILED = "Failed"
    """A container ended with an error; only where there are controllers."""
    PREEMPTED = "Preempted"
    EVICTED = "Evicted"
    """It was deleted, as when its node was drained, has failed or was removed."""


class PodRecord(msgspec.Struct, rename="camel", gc=False):
    """One pod: times are seconds since the start."""

    namespace: str
    name: str
    arrived_at: float
    bound_at: float | None = None
    ended_at: float | None = None
    node: str = ""
    outcome: Outcome = Outcome.PENDING
    attempts: int = 0
    cpu_milli: int = 0
    memory_bytes: int = 0
    """What it requests."""
    message: str = ""
    """Why the last attempt failed; empty for pods that were bound."""

    @property
    def waiting_seconds(self) -> float | None:
        """Time from its creation to its binding; None if it was not bound."""
        return None if self.bound_at is None else self.bound_at - self.arrived_at


class NodeRecord(msgspec.Struct, rename="camel"):
    """A node: times are seconds since the start."""

    name: str
    cpu_milli: int
    added_at: float
    removed_at: float | None = None
    memory_bytes: int = 0


class ResourceAmounts(NamedTuple):
    """The indices of the amounts over time of a resource: milli-CPU for cpu, whole units for all else."""

    requested: int
    allocatable: int
    unusable: int
    """Free on nodes where a typical pod does not fit."""


class _LivePod(NamedTuple):
    """A pod that is there."""

    requested: Amounts
    record: PodRecord | None
    """None for a pod that was on its node from the start."""


class Records:
    """Notes what happens. Times are those of `now`."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.pods: list[PodRecord] = []
        """All pods of the workload, in the order in which they were created."""
        self.nodes: list[NodeRecord] = []
        """All nodes, each as often as it was added, in the order of that."""
        self.course = TimeSeries(len(_OF_NO_RESOURCE))
        self.resources: dict[str, ResourceAmounts] = {}
        """cpu, memory, and the extended resources of nodes."""
        self.fragmentation = Fragmentation()
        self.failed_attempts = 0
        self._live: dict[str, _LivePod] = {}
        """By uid."""
        self._by_node: dict[str, NodeRecord] = {}
        self._known_amounts: dict[tuple[tuple[str, int], ...], Amounts] = {}
        for name in (CPU, MEMORY):
            self._follow(name)

    def _follow(self, resource: str) -> None:
        """Note amounts of a resource from now on."""
        self.resources[resource] = ResourceAmounts(*(self.course.new_amount() for _ in range(3)))
        self.fragmentation.follow(resource)

    # -- pods

    def arrived(self, pod: Pod) -> None:
        """A pod of the workload was created; one with a node was bound before."""
        amounts = self._requested(pod)
        record = PodRecord(
            pod.namespace,
            pod.name,
            self._now(),
            cpu_milli=amounts.get(CPU, 0),
            memory_bytes=amounts.get(MEMORY, 0),
        )
        self.pods.append(record)
        is_new = pod.uid not in self._live
        self._live[pod.uid] = _LivePod(amounts, record)
        if is_new:
            self.course.add(record.arrived_at, ((PENDING_PODS, 1),))
        else:
            _note_bound(record, pod, record.arrived_at)
        self.course.add(record.arrived_at, self._unusable(self.fragmentation.pod_arrived(amounts)))

    def attempted(self, uid: str, message: str) -> None:
        """An attempt to schedule a pod failed."""
        self.failed_attempts += 1
        live = self._live.get(uid)
        if live is not None and live.record is not None:
            live.record.attempts += 1
            live.record.message = message

    def bound(self, pod: Pod) -> None:
        """A pod was bound; or was on its node from the start."""
        now, live = self._now(), self._live.get(pod.uid)
        if live is None:
            live = self._live[pod.uid] = _LivePod(self._requested(pod), None)
        elif (record := live.record) is not None:
            _note_bound(record, pod, now)
            record.attempts += 1
            self.course.add(now, ((PENDING_PODS, -1),))
        self._count_on_node(now, pod.spec.node_name, live.requested, 1)

    def ended(self, pod: Pod, outcome: Outcome) -> None:
        """A pod is gone."""
        now, (requested, record) = self._now(), self._live.pop(pod.uid)
        if record is not None:
            record.ended_at, record.outcome = now, outcome
        if pod.spec.node_name:
            self._count_on_node(now, pod.spec.node_name, requested, -1)
        else:
            self.course.add(now, ((PENDING_PODS, -1),))

    def _count_on_node(self, now: float, node: str, requested: Amounts, sign: int) -> None:
        unusable = self.fragmentation.pod_changed(node, requested, -sign)
        changes = [(RUNNING_PODS, sign), *self._unusable(unusable)]
        for name, indices in self.resources.items():
            if amount := requested.get(name):
                changes.append((indices.requested, sign * amount))
        self.course.add(now, changes)

    def _requested(self, pod: Pod) -> Amounts:
        """What a pod requests; equal amounts are one object."""
        amounts = {**resource_amounts(current_requests(pod)), PODS: 1}
        return self._known_amounts.setdefault(tuple(amounts.items()), amounts)

    # -- nodes

    def node_added(self, node: Node) -> None:
        """A node was added."""
        amounts = resource_amounts(node.status.allocatable)
        for name in sorted(amounts):
            if name not in self.resources and is_extended_resource(name):
                self._follow(name)
        amounts[PODS] = whole_units(PODS, node.status.allocatable.get(PODS, 0))
        self._count_node(node, amounts, 1)
        record = self._by_node[node.name] = NodeRecord(
            node.name, amounts.get(CPU, 0), self._now(), memory_bytes=amounts.get(MEMORY, 0)
        )
        self.nodes.append(record)

    def node_removed(self, node: Node) -> None:
        """A node was removed."""
        self._count_node(node, resource_amounts(node.status.allocatable), -1)
        self._by_node.pop(node.name).removed_at = self._now()

    def _count_node(self, node: Node, amounts: Amounts, sign: int) -> None:
        unusable = self.fragmentation.node_changed(node.name, amounts if sign > 0 else _NO_AMOUNTS)
        changes = [(NODES, sign), (PRICE, sign * price_of(node)), *self._unusable(unusable)]
        for name, indices in self.resources.items():
            changes.append((indices.allocatable, sign * amounts.get(name, 0)))
        self.course.add(self._now(), changes)

    def _unusable(self, changes: Iterable[Change]) -> list[tuple[int, float]]:
        return [(self.resources[name].unusable, change) for name, change in changes]


def _note_bound(record: PodRecord, pod: Pod, now: float) -> None:
    record.bound_at, record.node, record.outcome = now, pod.spec.node_name, Outcome.RUNNING
    record.message = ""
