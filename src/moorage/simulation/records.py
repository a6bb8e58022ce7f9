"""What is noted of a simulation while it runs: every pod with its times, and amounts over time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final

import msgspec

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.resource_requests import current_requests, resource_amounts
from moorage.simulation.shapes import price_of
from moorage.simulation.time_series import TimeSeries

CPU, MEMORY = "cpu", "memory"
RUNNING_PODS, PENDING_PODS, NODES, PRICE, CPU_USED, CPU_TOTAL, MEMORY_USED, MEMORY_TOTAL = range(8)
"""The indices of the amounts over time; price is by hour, cpu in milli-CPU, memory in bytes."""
AMOUNTS: Final = (
    "runningPods",
    "pendingPods",
    "nodes",
    "pricePerHour",
    "cpuMilliRequested",
    "cpuMilliAllocatable",
    "memoryBytesRequested",
    "memoryBytesAllocatable",
)


class Outcome(StrEnum):
    """What has become of a pod."""

    PENDING = "Pending"
    RUNNING = "Running"
    COMPLETED = "Completed"
    PREEMPTED = "Preempted"
    EVICTED = "Evicted"
    """Its node was drained, has failed or was removed."""


class PodRecord(msgspec.Struct, rename="camel"):
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


class Records:
    """Notes what happens. Times are those of `now`."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.pods: list[PodRecord] = []
        """All pods of the workload, in the order in which they were created."""
        self.nodes: list[NodeRecord] = []
        """All nodes, each as often as it was added, in the order of that."""
        self.course = TimeSeries(AMOUNTS)
        self.failed_attempts = 0
        self._by_uid: dict[str, PodRecord] = {}
        self._by_node: dict[str, NodeRecord] = {}

    def arrived(self, pod: Pod) -> None:
        """A pod of the workload was created."""
        amounts = _requested(pod)
        record = PodRecord(
            pod.namespace,
            pod.name,
            self._now(),
            cpu_milli=amounts.get(CPU, 0),
            memory_bytes=amounts.get(MEMORY, 0),
        )
        self.pods.append(record)
        self._by_uid[pod.uid] = record
        self.course.add(record.arrived_at, ((PENDING_PODS, 1),))

    def attempted(self, uid: str, message: str) -> None:
        """An attempt to schedule a pod failed."""
        self.failed_attempts += 1
        if (record := self._by_uid.get(uid)) is not None:
            record.attempts += 1
            record.message = message

    def bound(self, pod: Pod) -> None:
        """A pod was bound; or was on its node from the start."""
        now, amounts = self._now(), _requested(pod)
        changes = [
            (RUNNING_PODS, 1.0),
            (CPU_USED, amounts.get(CPU, 0)),
            (MEMORY_USED, amounts.get(MEMORY, 0)),
        ]
        record = self._by_uid.get(pod.uid)
        if record is not None:
            record.bound_at, record.node, record.outcome = now, pod.spec.node_name, Outcome.RUNNING
            record.attempts += 1
            record.message = ""
            changes.append((PENDING_PODS, -1.0))
        self.course.add(now, changes)

    def ended(self, pod: Pod, outcome: Outcome) -> None:
        """A pod is gone."""
        now, record = self._now(), self._by_uid.pop(pod.uid, None)
        if record is not None:
            record.ended_at, record.outcome = now, outcome
        if not pod.spec.node_name:
            self.course.add(now, ((PENDING_PODS, -1.0 if record is not None else 0.0),))
            return
        amounts = _requested(pod)
        used = (CPU_USED, -amounts.get(CPU, 0)), (MEMORY_USED, -amounts.get(MEMORY, 0))
        self.course.add(now, ((RUNNING_PODS, -1.0), *used))

    def node_added(self, node: Node) -> None:
        """A node was added."""
        amounts = self._count_node(node, 1)
        record = self._by_node[node.name] = NodeRecord(
            node.name, amounts.get(CPU, 0), self._now(), memory_bytes=amounts.get(MEMORY, 0)
        )
        self.nodes.append(record)

    def node_removed(self, node: Node) -> None:
        """A node was removed."""
        self._count_node(node, -1)
        self._by_node.pop(node.name).removed_at = self._now()

    def _count_node(self, node: Node, sign: int) -> Mapping[str, int]:
        amounts: Mapping[str, int] = resource_amounts(node.status.allocatable)
        self.course.add(
            self._now(),
            (
                (NODES, sign),
                (PRICE, sign * price_of(node)),
                (CPU_TOTAL, sign * amounts.get(CPU, 0)),
                (MEMORY_TOTAL, sign * amounts.get(MEMORY, 0)),
            ),
        )
        return amounts


def _requested(pod: Pod) -> dict[str, int]:
    return resource_amounts(current_requests(pod))
