"""Admission of pods that were bound to a node by its kubelet.

The scheduler has checked the same, but its snapshot may have been stale, or there were two schedulers, or
none: a pod can also name its node itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from moorage.api.names import is_extended_resource
from moorage.api.node import Node, Taint
from moorage.api.pod import Pod
from moorage.api.resource_requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, pod_requests, resource_amounts
from moorage.api.selectors import required_nodes
from moorage.api.taints import NO_EXECUTE, NO_SCHEDULE, tolerated
from moorage.cluster.host_ports import HostPort
from moorage.cluster.pod_table import PodInfo
from moorage.plugins.node_ports import PORT_TAKEN, conflict
from moorage_cluster.nodes.ranking import CRITICAL_PRIORITY
from moorage_cluster.nodes.thresholds import MEMORY_PRESSURE

EVICTED: Final = "Evicted"
_WRONG_NODE: Final = "node(s) didn't match Pod's node affinity/selector"
_TAINTED: Final = "node(s) had taints that the pod didn't tolerate"
_FIRST: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)
_MEMORY_TAINT: Final = Taint(key="node.kubernetes.io/memory-pressure", effect=NO_SCHEDULE)


class AdmissionRejection(NamedTuple):
    """Why a pod is rejected."""

    reason: str
    message: str


class PodResources(NamedTuple):
    """The resources and ports that a pod takes of its node."""

    amounts: dict[str, int]
    ports: frozenset[HostPort]


def pod_resources(pod: Pod) -> PodResources:
    """The claims of a pod: CPU in thousandths, all else in units, and host ports."""
    return PodResources(resource_amounts(pod_requests(pod)), PodInfo(pod).host_ports)


class NodeAllocations:
    """The resources and ports that the pods of a node have taken."""

    def __init__(self) -> None:
        self._taken: dict[str, PodResources] = {}
        self.amounts: Counter[str] = Counter()

    def take(self, uid: str, claims: PodResources) -> None:
        """Set the claims of a pod."""
        self.free(uid)
        self._taken[uid] = claims
        self.amounts.update(claims.amounts)

    def free(self, uid: str) -> None:
        """Remove the claims of a pod."""
        claims = self._taken.pop(uid, None)
        if claims is not None:
            self.amounts.subtract(claims.amounts)

    @property
    def pods(self) -> int:
        """Number of pods."""
        return len(self._taken)

    @property
    def ports(self) -> frozenset[HostPort]:
        """All ports that are taken."""
        return frozenset(port for claims in self._taken.values() for port in claims.ports)


def refusal(
    pod: Pod,
    qos_class: str,
    node: Node,
    room: NodeAllocations,
    conditions: Sequence[str],
    claims: PodResources,
) -> AdmissionRejection | None:
    """Why a node rejects a pod, or None if it admits it."""
    if conditions and not _tolerates_pressure(pod, qos_class, conditions):
        return AdmissionRejection(EVICTED, f"The node had condition: [{' '.join(conditions)}]. ")
    short = shortage(node, room, claims)
    if short is not None:
        return short
    if not required_nodes(pod).matches(node):
        return _predicate("NodeAffinity", _WRONG_NODE)
    if claims.ports and conflict(claims.ports, room.ports):
        return _predicate("NodePorts", PORT_TAKEN)
    if any(
        taint.effect == NO_EXECUTE and not tolerated(taint, pod.spec.tolerations)
        for taint in node.spec.taints
    ):
        return _predicate("TaintToleration", _TAINTED)
    return None


def shortage(node: Node, room: NodeAllocations, claims: PodResources) -> AdmissionRejection | None:
    """The resource that a node has too little of for a new pod, if any."""
    allocatable = resource_amounts(node.status.allocatable)
    slots = node.status.allocatable.get(PODS)
    allowed = slots.value if slots is not None else 0
    if room.pods + 1 > allowed:
        return _short(PODS, 1, room.pods, allowed)
    for name in _in_order(claims.amounts):
        wanted, used, capacity = claims.amounts[name], room.amounts[name], allocatable.get(name, 0)
        if name not in allocatable and is_extended_resource(name):
            continue  # Resources unknown to the node are managed by the cluster, or by a driver.
        if wanted > 0 and wanted > capacity - used:
            return _short(name, wanted, used, capacity)
    return None


def _tolerates_pressure(pod: Pod, qos_class: str, conditions: Sequence[str]) -> bool:
    """Whether a pod is admitted by a node under pressure."""
    if pod.priority >= CRITICAL_PRIORITY:
        return True
    if tuple(conditions) != (MEMORY_PRESSURE,):
        return False
    return qos_class != "BestEffort" or tolerated(_MEMORY_TAINT, pod.spec.tolerations)


def _in_order(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: (_FIRST.index(name) if name in _FIRST else len(_FIRST), name))


def _short(name: str, wanted: int, used: int, capacity: int) -> AdmissionRejection:
    return AdmissionRejection(
        f"OutOf{name}",
        f"Node didn't have enough resource: {name}, requested: {wanted}, used: {used}, capacity: {capacity}",
    )


def _predicate(name: str, why: str) -> AdmissionRejection:
    return AdmissionRejection(name, f"Predicate {name} failed: {why}")
