"""A pod of a trace as plain values, and as an arrival; pods with equal requests share one spec."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from moorage.api.base import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, ObjectMeta
from moorage.api.pod import Affinity, Container, NodeAffinity, Pod, PodSpec, ResourceRequirements
from moorage.api.quantity import parse_quantity
from moorage.simulation.workload import Arrival

DEFAULT_NAMESPACE: Final = "default"
CPU: Final = "cpu"
MEMORY: Final = "memory"
_MAX_SPECS: Final = 65_536
"""Maximum number of specs that are kept, so that pods with equal requests share one."""
_MAX_NAME_LENGTH: Final = 200
"""Maximum length of a name that is made of identifiers, in characters; a number may follow it."""
_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9.]+")

Requests = tuple[tuple[str, str], ...]
"""Resources with their quantities, which are valid."""
NodeLabels = tuple[tuple[str, tuple[str, ...]], ...]
"""Labels of which a node must have one of the values."""


class TracePod(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A pod of a trace, small and easy to write to a temporary file; times are seconds since the start."""

    at_seconds: float
    line: int
    name: str
    duration_seconds: float | None = None
    requests: Requests = ()
    namespace: str = DEFAULT_NAMESPACE
    priority: int = 0
    node_labels: NodeLabels = ()
    age_seconds: float = 0.0
    """How long it existed before the start."""


class PodMaker:
    """Makes pods; those that ask for the same have one spec."""

    def __init__(self) -> None:
        self._specs: dict[tuple[Requests, int, NodeLabels], PodSpec] = {}

    def arrival(self, pod: TracePod) -> Arrival:
        """The arrival of a pod."""
        meta = ObjectMeta(name=pod.name, namespace=pod.namespace)
        made = Pod(api_version="v1", kind="Pod", metadata=meta, spec=self._spec(pod))
        return Arrival(pod.at_seconds, made, pod.duration_seconds)

    def _spec(self, pod: TracePod) -> PodSpec:
        key = pod.requests, pod.priority, pod.node_labels
        spec = self._specs.get(key)
        if spec is None:
            spec = _new_spec(pod)
            if len(self._specs) < _MAX_SPECS:
                self._specs[key] = spec
        return spec


def _new_spec(pod: TracePod) -> PodSpec:
    requests = {name: parse_quantity(amount) for name, amount in pod.requests}
    container = Container(name="main", image="trace", resources=ResourceRequirements(requests=requests))
    return PodSpec(containers=(container,), priority=pod.priority, affinity=_affinity(pod.node_labels))


def _affinity(labels: NodeLabels) -> Affinity | None:
    if not labels:
        return None
    expressions = tuple(
        NodeSelectorRequirement(key=key, operator="In", values=given) for key, given in labels
    )
    terms = (NodeSelectorTerm(match_expressions=expressions),)
    needed = NodeSelector(node_selector_terms=terms)
    return Affinity(node_affinity=NodeAffinity(required_during_scheduling_ignored_during_execution=needed))


def requests_of(cpu_milli: int, memory_bytes: int, *others: tuple[str, int]) -> Requests:
    """Requests; amounts of 0 are left out."""
    cpu = ((CPU, f"{cpu_milli}m"),) if cpu_milli else ()
    amounts = ((MEMORY, memory_bytes), *others)
    return (*cpu, *((name, str(amount)) for name, amount in amounts if amount))


def object_name(*identifiers: object) -> str:
    """A valid name of an object that is made of identifiers; different ones may have the same."""
    text = "-".join(map(str, identifiers)).lower()
    return _NOT_IN_NAMES.sub("-", text)[:_MAX_NAME_LENGTH].strip("-.") or "pod"


def earliest(pod: TracePod) -> float:
    """The order of arrivals."""
    return pod.at_seconds
