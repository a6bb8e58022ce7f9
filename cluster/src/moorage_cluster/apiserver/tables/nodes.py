"""Nodes and what belongs to them: runtime classes and the leases of their heartbeats."""

from __future__ import annotations

from typing import Final

from moorage.api.manifests import Manifest, labels_of
from moorage_cluster.apiserver.tables.base import Printer
from moorage_cluster.apiserver.tables.cells import NONE, UNKNOWN, at, comma_separated, items, text
from moorage_cluster.apiserver.tables.columns import AGED, NAMED, Columns, derived, text_at

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"


def _status(node: Manifest) -> str:
    ready = [each for each in items(node, "status", "conditions") if each.get("type") == "Ready"]
    if not ready:
        status = "Unknown"
    else:
        status = "Ready" if ready[-1].get("status") == "True" else "NotReady"
    return f"{status},SchedulingDisabled" if at(node, "spec", "unschedulable") is True else status


def _roles(node: Manifest) -> str:
    roles = set()
    for key, value in labels_of(node).items():
        if key.startswith(_ROLE_PREFIX):
            roles.add(key.removeprefix(_ROLE_PREFIX))
        elif key == _ROLE_LABEL:
            roles.add(value)
    return comma_separated(sorted(roles - {""})) or NONE


def _address(node: Manifest, kind: str) -> str:
    for each in items(node, "status", "addresses"):
        if each.get("type") == kind:
            return text(each, "address")
    return NONE


def _kernel(node: Manifest) -> str:
    version = text(node, "status", "nodeInfo", "kernelVersion") or UNKNOWN
    architecture = text(node, "status", "nodeInfo", "architecture")
    return f"{version} ({architecture})" if architecture else version


NODES = Columns(
    NAMED,
    derived("Status", _status, "Whether the node is ready, and whether it takes new pods."),
    derived("Roles", _roles, "What the node is for, as its labels say."),
    AGED,
    text_at("Version", "status.nodeInfo.kubeletVersion", "The version of the node's kubelet."),
    derived(
        "Internal-IP", lambda node: _address(node, "InternalIP"), "Its address inside the cluster.", wide=True
    ),
    derived("External-IP", lambda node: _address(node, "ExternalIP"), "Its address from outside.", wide=True),
    text_at("OS-Image", "status.nodeInfo.osImage", "Its operating system.", empty=UNKNOWN, wide=True),
    derived("Kernel-Version", _kernel, "Its kernel and architecture.", wide=True),
    text_at(
        "Container-Runtime",
        "status.nodeInfo.containerRuntimeVersion",
        "What runs its containers.",
        empty=UNKNOWN,
        wide=True,
    ),
)

PRINTERS: Final[dict[tuple[str, str], Printer]] = {
    ("", "Node"): NODES,
    ("node.k8s.io", "RuntimeClass"): Columns(
        NAMED, text_at("Handler", "handler", "The name by which nodes know the runtime."), AGED
    ),
    ("coordination.k8s.io", "Lease"): Columns(
        NAMED, text_at("Holder", "spec.holderIdentity", "Who holds the lease."), AGED
    ),
}
"""The tables of this family, by group and kind."""
