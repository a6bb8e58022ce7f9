"""Scopes: which objects a quota applies to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from moorage.admission.pods.resources import qos_class
from moorage.api.manifests import Manifest, status_of
from moorage.api.selectors import Operator, Requirement

_QOS_RESOURCES: Final = ("cpu", "memory")


class Scope(NamedTuple):
    """A condition on objects, with the values of its operator, if it has any."""

    name: str
    operator: str = "Exists"
    values: tuple[str, ...] = ()

    def accepts(self, value: str | None) -> bool:
        """Whether an object with this value (None: without any) matches."""
        return Requirement(self.name, Operator(self.operator), frozenset(self.values)).accepts(value)


def scopes_of(quota: Manifest) -> list[Scope]:
    """All conditions of a quota; an object must meet each."""
    spec = quota.get("spec", {})
    scopes = [Scope(name) for name in spec.get("scopes") or ()]
    for each in (spec.get("scopeSelector") or {}).get("matchExpressions") or ():
        scopes.append(Scope(each["scopeName"], each["operator"], tuple(each.get("values") or ())))
    return scopes


def no_scope(scope: Scope, obj: Manifest) -> bool:
    """The predicate of kinds that have no scopes."""
    return False


def pod_in_scope(scope: Scope, pod: Manifest) -> bool:
    """Whether a pod meets a condition."""
    match scope.name:
        case "Terminating":
            return ends_by_itself(pod)
        case "NotTerminating":
            return not ends_by_itself(pod)
        case "BestEffort":
            return is_best_effort(pod)
        case "NotBestEffort":
            return not is_best_effort(pod)
        case "PriorityClass":
            return scope.accepts(pod.get("spec", {}).get("priorityClassName") or None)
        case "CrossNamespacePodAffinity":
            return any(term.get("namespaces") or "namespaceSelector" in term for term in _affinity_terms(pod))
    return False


def claim_in_scope(scope: Scope, claim: Manifest) -> bool:
    """Whether a volume claim meets a condition."""
    if scope.name != "VolumeAttributesClass":
        return False
    status = claim.get("status") or {}
    names = {
        claim.get("spec", {}).get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName"),
    } - {None, ""}
    return any(scope.accepts(name) for name in names or (None,))


def ends_by_itself(pod: Manifest) -> bool:
    """Whether a pod has a deadline: a quota's Terminating, which is unrelated to deletion."""
    deadline = pod.get("spec", {}).get("activeDeadlineSeconds")
    return deadline is not None and deadline >= 0


def is_best_effort(pod: Manifest) -> bool:
    """Whether a pod requests nothing."""
    return (status_of(pod).get("qosClass") or qos_class(pod)) == "BestEffort"


def _affinity_terms(pod: Manifest) -> Iterator[Manifest]:
    affinity = pod.get("spec", {}).get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        yield from terms.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        for weighted in terms.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            yield weighted.get("podAffinityTerm") or {}
