"""Oracles for the plugins that look at one node and nothing else: name, cordon, taints, ports, features."""

from __future__ import annotations

from moorage.api.node import Node, Taint
from moorage.api.pod import ContainerPort, Pod
from tests.oracle.cluster import OraclePlugin, Refusal, refusal, share_of_largest
from tests.oracle.tolerations import is_repelled, tolerated


class NodeUnschedulable(OraclePlugin):
    """A cordoned node takes only pods that tolerate the taint which cordoning brings."""

    name = "NodeUnschedulable"
    filters = True

    def filter(self, node: Node) -> Refusal | None:
        """Cordoned, and not tolerated."""
        cordon = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
        if node.spec.unschedulable and not tolerated(self.pod, cordon):
            return refusal("node(s) were unschedulable", resolvable=False)
        return None


class NodeName(OraclePlugin):
    """A pod that names its node goes there or nowhere."""

    name = "NodeName"
    filters = True

    def filter(self, node: Node) -> Refusal | None:
        """Another node is named."""
        if self.pod.spec.node_name not in ("", node.name):
            return refusal("node(s) didn't match the requested node name", resolvable=False)
        return None


class TaintToleration(OraclePlugin):
    """Strict taints keep pods off; soft ones (PreferNoSchedule) cost points, one each."""

    name = "TaintToleration"
    filters = scores = True
    weight = 3

    def filter(self, node: Node) -> Refusal | None:
        """A strict taint that is not tolerated."""
        if is_repelled(self.pod, node):
            return refusal("node(s) had untolerated taint(s)", resolvable=False)
        return None

    def score(self, node: Node, feasible: list[Node]) -> int:
        """How many soft taints are not tolerated."""
        soft = [taint for taint in node.spec.taints if taint.effect == "PreferNoSchedule"]
        return sum(not tolerated(self.pod, taint) for taint in soft)

    def normalise(self, raw: list[int], feasible: list[Node]) -> list[int]:
        """The fewer the better."""
        return share_of_largest(raw, reverse=True)


class NodePorts(OraclePlugin):
    """Two pods on a node cannot have the same host port and protocol, unless on different addresses."""

    name = "NodePorts"
    filters = True

    def filter(self, node: Node) -> Refusal | None:
        """A port is taken."""
        taken = [port for other in self.cluster.pods_on(node) for port in host_ports(other)]
        if any(clash(mine, theirs) for mine in host_ports(self.pod) for theirs in taken):
            return refusal("node(s) didn't have free ports for the requested pod ports")
        return None


def host_ports(pod: Pod) -> list[ContainerPort]:
    """The host ports of containers that run for the pod's whole life."""
    lasting = [each for each in pod.spec.init_containers if each.restart_policy == "Always"]
    return [port for each in (*lasting, *pod.spec.containers) for port in each.ports if port.host_port > 0]


def clash(first: ContainerPort, second: ContainerPort) -> bool:
    """Whether two host ports exclude each other; no address, like 0.0.0.0, means all addresses."""
    if first.host_port != second.host_port or (first.protocol or "TCP") != (second.protocol or "TCP"):
        return False
    addresses = {first.host_ip or "0.0.0.0", second.host_ip or "0.0.0.0"}
    return len(addresses) == 1 or "0.0.0.0" in addresses


class NodeDeclaredFeatures(OraclePlugin):
    """A pod that needs a feature of the kubelet goes only where the kubelet declares it."""

    name = "NodeDeclaredFeatures"
    filters = True

    def filter(self, node: Node) -> Refusal | None:
        """A feature is missing."""
        spec = self.pod.spec
        needed = set()
        containers = (*spec.containers, *spec.init_containers)
        if any(rule.action == "RestartAllContainers" for c in containers for rule in c.restart_policy_rules):
            needed.add("RestartAllContainersOnContainerExits")
        if spec.host_network and spec.host_users is False:
            needed.add("UserNamespacesHostNetworkSupport")
        if needed - set(node.status.declared_features):
            return refusal("node(s) didn't match Pod's required features", resolvable=False)
        return None


class VolumeBinding(OraclePlugin):
    """Pods without volume claims are all the same to it; other pods are no part of these tests."""

    name = "VolumeBinding"
    scores = True

    def skips_score(self, feasible: list[Node]) -> bool:
        """Free storage counts where there is a shape of scores; v1.36 has none by default."""
        return not self.args.shape


class DynamicResources(OraclePlugin):
    """Pods without device claims are all the same to it; other pods are no part of these tests."""

    name = "DynamicResources"
    scores = True
    weight = 2
