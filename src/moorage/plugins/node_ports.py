"""NodePorts: a host port can be taken once per node and address."""

from __future__ import annotations

from moorage.api.pod import Pod
from moorage.client.kinds import Kind
from moorage.cluster.host_ports import ANY_IP, HostPort
from moorage.cluster.object_tables import Objects
from moorage.cluster.pod_table import PodInfo
from moorage.framework.interface.cycle_state import CycleState, StateKey
from moorage.framework.interface.dependencies import NOT_CONCERNED, DependsOn
from moorage.framework.interface.events import Action, Interest, Resource, on
from moorage.framework.interface.filter_result import ALL, FilterResult, Reason, refuse_where
from moorage.framework.interface.nodes import Nodes, NodeView
from moorage.framework.interface.status import SKIP, Status
from moorage.plugins.hint_helpers import Answer, explained, is_placed

PORT_TAKEN = "node(s) didn't have free ports for the requested pod ports"
_TAKEN = Reason((PORT_TAKEN,))

_WANTED: StateKey[frozenset[HostPort]] = StateKey("NodePorts/filter")


_Addresses = dict[tuple[str, int], set[str]]
"""Addresses by protocol and number of a port."""


def conflict(wanted: frozenset[HostPort], used: frozenset[HostPort]) -> bool:
    """Whether ports collide: same protocol and number on the same address; 0.0.0.0 is every address."""
    return bool(used) and _collide(_by_number(wanted), used)


def _by_number(ports: frozenset[HostPort]) -> _Addresses:
    addresses: _Addresses = {}
    for ip, protocol, port in ports:
        addresses.setdefault((protocol, port), set()).add(ip)
    return addresses


def _collide(wanted: _Addresses, used: frozenset[HostPort]) -> bool:
    return any(
        (there := wanted.get((protocol, port))) is not None
        and (ip in there or ip == ANY_IP or ANY_IP in there)
        for ip, protocol, port in used
    )


class NodePorts:
    """Evaluates each distinct set of ports in use that has a wanted one once."""

    name = "NodePorts"
    watched_kinds: tuple[Kind, ...] = ()

    def events(self) -> tuple[Interest, ...]:
        """A port becomes free, or a node is added where it is."""
        return (
            on(Resource.POD, Action.DELETE, explained(_frees_port, "deletedPod"), per_equivalence_class=True),
            on(Resource.NODE, Action.ADD),
        )

    def depends_on(self, pod: Pod, objects: Objects) -> DependsOn:
        """The ports that pods have taken on the node."""
        return DependsOn(pods=True, reads=PodInfo(pod).host_ports) if pod.host_ports else NOT_CONCERNED

    def pre_filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """Skip pods without host ports."""
        wanted = PodInfo(pod).host_ports
        if not wanted:
            return SKIP
        cycle.write(_WANTED, wanted)
        return None

    def filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> FilterResult:
        """Reject nodes where a wanted port is taken."""
        wanted = cycle.read_or(_WANTED, lambda: PodInfo(pod).host_ports)
        if not wanted:
            return ALL
        addresses = _by_number(wanted)
        return refuse_where(nodes.ports.where(wanted, lambda used: _collide(addresses, used)), PORT_TAKEN)

    def filter_node(self, cycle: CycleState, pod: Pod, node: NodeView) -> Reason | None:
        """As `filter`, for one node."""
        wanted = cycle.read_or(_WANTED, lambda: PodInfo(pod).host_ports)
        return _TAKEN if wanted and conflict(wanted, node.ports) else None


_NOT_PLACED = Answer(
    False, "the deleted pod is unscheduled and it doesn't make the target pod schedulable", v=4
)
_NOTHING_IN_COMMON = Answer(
    False,
    "the deleted pod and the target pod don't have any common port(s), "
    "returning QueueSkip as deleting this Pod won't make the Pod schedulable",
    v=4,
)
_COMMON_PORT = Answer(
    True,
    "the deleted pod and the target pod have any common port(s), "
    "returning Queue as deleting this Pod may make the Pod schedulable",
    v=4,
)


def _frees_port(pod: Pod, old: Pod, new: None) -> Answer:
    if not is_placed(old):
        return _NOT_PLACED
    is_shared = conflict(PodInfo(pod).host_ports, PodInfo(old).host_ports)
    return _COMMON_PORT if is_shared else _NOTHING_IN_COMMON
