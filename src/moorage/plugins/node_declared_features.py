"""NodeDeclaredFeatures: some pods need a kubelet that declares what they use."""

from __future__ import annotations

from collections.abc import Callable

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.client.kinds import Kind
from moorage.cluster.object_tables import Objects
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.dependencies import NODE_FOR_ANY_POD, DependsOn
from moorage.framework.interface.events import Action, Interest, Resource, on
from moorage.framework.interface.filter_result import ALL, FilterResult, refuse_where
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import SKIP, Status

MISSING_FEATURES = "node(s) didn't match Pod's required features"

RESTART_ALL_CONTAINERS = "RestartAllContainersOnContainerExits"
USER_NAMESPACES_HOST_NETWORK = "UserNamespacesHostNetworkSupport"


def required_features(pod: Pod) -> frozenset[str]:
    """The node features a pod requires."""
    needed = set()
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    if any(rule.action == "RestartAllContainers" for c in containers for rule in c.restart_policy_rules):
        needed.add(RESTART_ALL_CONTAINERS)
    if pod.spec.host_network and pod.spec.host_users is False:
        needed.add(USER_NAMESPACES_HOST_NETWORK)
    return frozenset(needed)


class NodeDeclaredFeatures:
    """Rejects nodes that do not declare what the pod needs."""

    name = "NodeDeclaredFeatures"
    watched_kinds: tuple[Kind, ...] = ()

    def __init__(self, required: Callable[[Pod], frozenset[str]] = required_features) -> None:
        self._required = required

    def events(self) -> tuple[Interest, ...]:
        """A node declares more, or is added; or the pod requires less."""
        return (
            on(
                Resource.NODE,
                Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE,
                _declares_other_features,
                per_equivalence_class=True,
            ),
            on(Resource.POD, Action.UPDATE, _needs_other_features, per_equivalence_class=True),
        )

    def depends_on(self, pod: Pod, objects: Objects) -> DependsOn:
        """What the node declares."""
        required = self._required(pod)
        return DependsOn(reads=required) if required else NODE_FOR_ANY_POD

    def pre_filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """Skip pods that require no feature."""
        return None if self._required(pod) else SKIP

    def filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> FilterResult:
        """Every needed feature must be declared."""
        needed = self._required(pod)
        if not needed:
            return ALL
        return refuse_where(
            nodes.features.map_values(lambda declared: not needed <= declared),
            MISSING_FEATURES,
            resolvable=False,
        )


def _declares_other_features(pod: Pod, old: Node | None, new: Node) -> bool:
    return old is None or old.status.declared_features != new.status.declared_features


def _needs_other_features(pod: Pod, old: Pod, new: Pod) -> bool:
    return new.uid == pod.uid and required_features(old) != required_features(new)
