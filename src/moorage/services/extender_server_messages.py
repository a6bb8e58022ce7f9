"""Extender requests as a server reads them, and its responses (client: `extender_client_messages`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from moorage.framework.extenders.extenders import ChosenVictims
from moorage.services.extender_client_messages import meta_victims, node_list, read_meta_victims
from moorage.services.go_json import GoJsonError, JsonFields, is_null

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Question:
    """ExtenderArgs: a pod, and the requested nodes, as whole objects or by name."""

    pod: bytes
    nodes: Sequence[bytes] | None
    node_names: Sequence[str] | None


def read_question(raw: bytes) -> Question:
    """Decode ExtenderArgs."""
    fields = JsonFields.of(raw, "ExtenderArgs")
    nodes = fields.object("Nodes", "NodeList")
    return Question(
        _pod(fields),
        None if nodes is None else nodes.list("items", "[]v1.Node"),
        fields.texts("NodeNames"),
    )


def _pod(fields: JsonFields) -> bytes:
    pod = fields.raw("Pod")
    if pod is None:
        raise GoJsonError("the request has no Pod")
    return pod


def filter_result(
    nodes: Sequence[bytes] | None,
    node_names: Sequence[str] | None,
    failed: Mapping[str, str],
    unresolvable: Mapping[str, str],
) -> bytes:
    """An ExtenderFilterResult: the nodes that pass, in the form of the request, and the others."""
    return _encode(
        {
            "Nodes": None if nodes is None else node_list(nodes),
            "NodeNames": node_names,
            "FailedNodes": failed,
            "FailedAndUnresolvableNodes": unresolvable,
            "Error": "",
        }
    )


def filter_error(message: str) -> bytes:
    """An ExtenderFilterResult with an error only."""
    return _encode(
        {
            "Nodes": None,
            "NodeNames": None,
            "FailedNodes": None,
            "FailedAndUnresolvableNodes": None,
            "Error": message,
        }
    )


def priorities(scores: Sequence[tuple[str, int]]) -> bytes:
    """A HostPriorityList."""
    return _encode([{"Host": name, "Score": score} for name, score in scores])


@dataclass(frozen=True, slots=True)
class PreemptionQuestion:
    """ExtenderPreemptionArgs: the victims by node, for either form of the request."""

    pod: bytes
    victims: Mapping[str, ChosenVictims]


def read_preemption_question(raw: bytes) -> PreemptionQuestion:
    """Decode ExtenderPreemptionArgs."""
    fields = JsonFields.of(raw, "ExtenderPreemptionArgs")
    victims = read_meta_victims(fields)
    for name, value in fields.map("NodeNameToVictims", "map[string]*v1.Victims").items():
        found = JsonFields(value, "Victims")
        pods = [JsonFields(pod, "Pod") for pod in found.list("Pods", "[]*v1.Pod") if not is_null(pod)]
        metadata = (pod.object("metadata", "ObjectMeta") for pod in pods)
        uids = tuple("" if meta is None else meta.text("uid") for meta in metadata)
        victims[name] = ChosenVictims(uids, found.integer("NumPDBViolations"))
    return PreemptionQuestion(_pod(fields), victims)


def preemption_result(victims: Mapping[str, ChosenVictims]) -> bytes:
    """An ExtenderPreemptionResult, which always names pods by uid."""
    return _encode({"NodeNameToMetaVictims": {name: meta_victims(each) for name, each in victims.items()}})


@dataclass(frozen=True, slots=True)
class BindingQuestion:
    """ExtenderBindingArgs: the pod and its node."""

    name: str
    namespace: str
    uid: str
    node_name: str


def read_binding_question(raw: bytes) -> BindingQuestion:
    """Decode ExtenderBindingArgs."""
    fields = JsonFields.of(raw, "ExtenderBindingArgs")
    return BindingQuestion(*(fields.text(each) for each in ("PodName", "PodNamespace", "PodUID", "Node")))


def binding_result(error: str) -> bytes:
    """An ExtenderBindingResult; no error: the pod is bound."""
    return _encode({"Error": error})
