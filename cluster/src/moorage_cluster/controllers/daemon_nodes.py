"""Which nodes a DaemonSet's pods belong on, and the affinity of each pod to its node."""

from __future__ import annotations

from typing import Final, NamedTuple

from moorage.api.decode import InputError, convert
from moorage.api.manifests import Manifest, copy
from moorage.api.node import Node
from moorage.api.pod import Pod, Toleration
from moorage.api.selectors import NODE_NAME_FIELD, RequiredNodes, required_nodes
from moorage.api.taints import NO_EXECUTE, NO_SCHEDULE, has_untolerated
from moorage_cluster.controllers.pods import node_of

_TOLERATED: Final = (
    ("node.kubernetes.io/not-ready", NO_EXECUTE),
    ("node.kubernetes.io/unreachable", NO_EXECUTE),
    ("node.kubernetes.io/disk-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/memory-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/pid-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/unschedulable", NO_SCHEDULE),
)
_NETWORK_UNAVAILABLE: Final = ("node.kubernetes.io/network-unavailable", NO_SCHEDULE)


class Eligibility(NamedTuple):
    """Whether a pod should run on a node, and whether a running one may continue."""

    runs: bool
    stays: bool


class Daemon:
    """The node requirements of a DaemonSet of one generation; results are cached until a node changes."""

    def __init__(self, daemon_set: Manifest) -> None:
        spec = with_tolerations(daemon_set["spec"]["template"]["spec"])
        self.generation: int = daemon_set["metadata"].get("generation", 0)
        self._node_name: str = spec.get("nodeName") or ""
        self._required: RequiredNodes | None
        try:
            pod = convert({"metadata": {"name": "daemon"}, "spec": spec}, Pod)
            self._required, self._tolerations = required_nodes(pod), pod.spec.tolerations
        except InputError:
            self._required, self._tolerations = None, ()
        self._evaluated: dict[str, tuple[Node, Eligibility]] = {}

    def eligibility(self, node: Node) -> Eligibility:
        """The eligibility of a node for this set."""
        known = self._evaluated.get(node.name)
        if known is not None and known[0] is node:
            return known[1]
        eligible = self._evaluate(node)
        self._evaluated[node.name] = (node, eligible)
        return eligible

    def forget(self, node_name: str) -> None:
        """Drop the cached result of a deleted node."""
        self._evaluated.pop(node_name, None)

    def _evaluate(self, node: Node) -> Eligibility:
        if self._node_name not in ("", node.name):
            return Eligibility(False, False)
        if self._required is None or not self._required.matches(node):
            return Eligibility(False, False)
        tolerations: tuple[Toleration, ...] = self._tolerations
        if has_untolerated(node.spec.taints, tolerations):
            expelling = [taint for taint in node.spec.taints if taint.effect == NO_EXECUTE]
            return Eligibility(False, not has_untolerated(expelling, tolerations))
        return Eligibility(True, True)


def with_tolerations(spec: Manifest) -> Manifest:
    """A pod spec with the tolerations of daemons: they run, and stay, where other pods are kept out."""
    wanted = [*_TOLERATED, *([_NETWORK_UNAVAILABLE] if spec.get("hostNetwork") else [])]
    added = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in wanted]
    # An existing toleration of limited time becomes unlimited.
    kept = [each for each in spec.get("tolerations") or [] if _without_time(each) not in added]
    return {**copy(spec), "tolerations": [*kept, *added]}


def _without_time(toleration: Manifest) -> Manifest:
    return {key: value for key, value in toleration.items() if value and key != "tolerationSeconds"}


def tied_to(spec: Manifest, node_name: str) -> Manifest:
    """A pod spec with a required affinity to one node."""
    tied: Manifest = copy(spec)
    field = {"key": NODE_NAME_FIELD, "operator": "In", "values": [node_name]}
    affinity = tied["affinity"] = tied.get("affinity") or {}
    node_affinity = affinity["nodeAffinity"] = affinity.get("nodeAffinity") or {}
    node_affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {
        "nodeSelectorTerms": [{"matchFields": [field]}]
    }
    return tied


def target_node(pod: Manifest) -> str:
    """The node that a daemon's pod is bound to, or has its affinity to; empty if neither."""
    if node_of(pod):
        return node_of(pod)
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or []:
        for each in term.get("matchFields") or []:
            if each["key"] == NODE_NAME_FIELD and each["operator"] == "In" and len(each["values"]) == 1:
                return str(each["values"][0])
    return ""
