"""Extender requests as a scheduler sends them, and responses: `k8s.io/kube-scheduler/extender/v1`.

The fields have Go's names. Pods and nodes are sent as the API server sent them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from moorage.framework.extenders.extenders import ChosenVictims
from moorage.services.go_json import JsonFields, is_null, items

_encode = msgspec.json.Encoder().encode


class _Named(msgspec.Struct):
    name: str = ""


class _Node(msgspec.Struct):
    """The fields of a node that are read from a response: the scheduler has the node itself."""

    metadata: _Named


_read_nodes = msgspec.json.Decoder(list[_Node]).decode


@dataclass(frozen=True, slots=True)
class ExtenderFilterResult:
    """An ExtenderFilterResult; `nodes` are the names of nodes returned as whole objects."""

    nodes: list[str] | None
    node_names: list[str] | None
    failed: Mapping[str, str]
    unresolvable: Mapping[str, str]
    error: str


def node_list(nodes: Sequence[bytes]) -> dict[str, Any]:
    """A NodeList of whole nodes."""
    return {"metadata": {}, "items": [msgspec.Raw(node) for node in nodes]}


def extender_args(pod: bytes, nodes: Sequence[bytes] | None, node_names: Sequence[str] | None) -> bytes:
    """ExtenderArgs, for filter and prioritize: with whole nodes, or names."""
    return _encode(
        {
            "Pod": msgspec.Raw(pod),
            "Nodes": None if nodes is None else node_list(nodes),
            "NodeNames": node_names,
        }
    )


def read_filter_result(raw: bytes) -> ExtenderFilterResult:
    """Decode an ExtenderFilterResult."""
    fields = JsonFields.of(raw, "ExtenderFilterResult")
    nodes = fields.object("Nodes", "NodeList")
    return ExtenderFilterResult(
        None if nodes is None else _node_names(nodes),
        fields.texts("NodeNames"),
        fields.text_map("FailedNodes", "v1.FailedNodesMap"),
        fields.text_map("FailedAndUnresolvableNodes", "v1.FailedNodesMap"),
        fields.text("Error"),
    )


def _node_names(nodes: JsonFields) -> list[str]:
    try:
        return [node.metadata.name for node in _read_nodes(nodes.raw("items") or b"[]")]
    except msgspec.DecodeError:
        names = []
        for raw in nodes.list("items", "[]v1.Node"):
            metadata = JsonFields(raw, "Node").object("metadata", "ObjectMeta")
            names.append("" if metadata is None else metadata.text("name"))
        return names


def read_priorities(raw: bytes) -> list[tuple[str, int]]:
    """A HostPriorityList: scores by node name."""
    hosts = (JsonFields(item, "HostPriority") for item in items(raw, "v1.HostPriorityList"))
    return [(host.text("Host"), host.integer("Score")) for host in hosts]


@dataclass(frozen=True, slots=True)
class WholeVictims:
    """Victims: whole pods, and the number of violated PodDisruptionBudgets."""

    pods: Sequence[bytes]
    broken_budgets: int


def preemption_args(
    pod: bytes, victims: Mapping[str, WholeVictims] | None, identifiers: Mapping[str, ChosenVictims] | None
) -> bytes:
    """ExtenderPreemptionArgs: the victims by node, as whole pods or by uid."""
    whole = None if victims is None else {name: _victims(each) for name, each in victims.items()}
    meta = None if identifiers is None else {name: meta_victims(each) for name, each in identifiers.items()}
    return _encode({"Pod": msgspec.Raw(pod), "NodeNameToVictims": whole, "NodeNameToMetaVictims": meta})


def _victims(victims: WholeVictims) -> dict[str, Any]:
    pods = [msgspec.Raw(pod) for pod in victims.pods]
    return {"Pods": pods, "NumPDBViolations": victims.broken_budgets}


def meta_victims(victims: ChosenVictims) -> dict[str, Any]:
    """MetaVictims: pods by uid."""
    return {"Pods": [{"UID": uid} for uid in victims.uids], "NumPDBViolations": victims.broken_budgets}


def read_preemption_result(raw: bytes) -> dict[str, ChosenVictims]:
    """An ExtenderPreemptionResult: the victims by node."""
    return read_meta_victims(JsonFields.of(raw, "ExtenderPreemptionResult"))


def read_meta_victims(fields: JsonFields) -> dict[str, ChosenVictims]:
    """NodeNameToMetaVictims, of a request or of a response."""
    found = {}
    for name, value in fields.map("NodeNameToMetaVictims", "map[string]*v1.MetaVictims").items():
        victims = JsonFields(value, "MetaVictims")
        pods = [
            JsonFields(pod, "MetaPod") for pod in victims.list("Pods", "[]*v1.MetaPod") if not is_null(pod)
        ]
        uids = tuple(pod.text("UID") for pod in pods)
        found[name] = ChosenVictims(uids, victims.integer("NumPDBViolations"))
    return found


def binding_args(name: str, namespace: str, uid: str, node_name: str) -> bytes:
    """ExtenderBindingArgs: the pod and its node."""
    return _encode({"PodName": name, "PodNamespace": namespace, "PodUID": uid, "Node": node_name})


def read_binding_result(raw: bytes) -> str:
    """An ExtenderBindingResult: the error; empty if the pod is bound."""
    return JsonFields.of(raw, "ExtenderBindingResult").text("Error")
