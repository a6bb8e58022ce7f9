"""Extensions of the API: definitions of kinds, other servers, webhooks and policies."""

from __future__ import annotations

from typing import Final

from moorage.api.manifests import Manifest
from moorage_cluster.apiserver.tables.base import Printer
from moorage_cluster.apiserver.tables.cells import UNSET, at, condition, mapping, text
from moorage_cluster.apiserver.tables.columns import (
    AGED,
    NAME_AND_CREATION,
    NAMED,
    Columns,
    derived,
    size_of,
    text_at,
)

_ADMISSION: Final = "admissionregistration.k8s.io"


def _service(api_service: Manifest) -> str:
    service = mapping(api_service, "spec", "service")
    return f"{text(service, 'namespace')}/{text(service, 'name')}" if service else "Local"


def _available(api_service: Manifest) -> str:
    found = condition(api_service, "Available")
    if found is None:
        return "Unknown"
    status, reason = text(found, "status"), text(found, "reason")
    return f"{status} ({reason})" if reason and status != "True" else status


def _parameter_kind(policy: Manifest) -> str:
    kind = mapping(policy, "spec", "paramKind")
    return f"{text(kind, 'apiVersion')}/{text(kind, 'kind')}" if kind else UNSET


def _parameters(binding: Manifest) -> str:
    reference = mapping(binding, "spec", "paramRef")
    if text(reference, "name"):
        return f"{text(reference, 'namespace') or '*'}/{text(reference, 'name')}"
    selector = at(reference, "selector")
    return UNSET if selector is None else _go_selector(selector)


def _go_selector(selector: Manifest) -> str:
    """A selector as Go prints the type, which is what Kubernetes shows here."""
    labels = "".join(f"{key}: {value}," for key, value in sorted(mapping(selector, "matchLabels").items()))
    wanted = "".join(
        f"LabelSelectorRequirement{{Key:{text(each, 'key')},Operator:{text(each, 'operator')},"
        f"Values:[{' '.join(each.get('values') or ())}],}},"
        for each in selector.get("matchExpressions") or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{wanted}}},}}"
    )


_WEBHOOKS = Columns(NAMED, size_of("Webhooks", "webhooks", "How many webhooks it has."), AGED)
_BINDINGS = Columns(
    NAMED,
    text_at("PolicyName", "spec.policyName", "The policy that it binds."),
    derived("ParamRef", _parameters, "The object with the policy's parameters."),
    AGED,
)


def _policies(name: str, path: str, description: str) -> Columns:
    kind = derived("ParamKind", _parameter_kind, "The kind of the objects with its parameters.")
    return Columns(NAMED, size_of(name, path, description), kind, AGED)


PRINTERS: Final[dict[tuple[str, str], Printer]] = {
    ("apiextensions.k8s.io", "CustomResourceDefinition"): NAME_AND_CREATION,
    ("apiregistration.k8s.io", "APIService"): Columns(
        NAMED,
        derived("Service", _service, "The service that serves the group."),
        derived("Available", _available, "Whether the group is served."),
        AGED,
    ),
    (_ADMISSION, "MutatingWebhookConfiguration"): _WEBHOOKS,
    (_ADMISSION, "ValidatingWebhookConfiguration"): _WEBHOOKS,
    (_ADMISSION, "ValidatingAdmissionPolicyBinding"): _BINDINGS,
    (_ADMISSION, "MutatingAdmissionPolicyBinding"): _BINDINGS,
    (_ADMISSION, "ValidatingAdmissionPolicy"): _policies(
        "Validations", "spec.validations", "How many rules it has."
    ),
    (_ADMISSION, "MutatingAdmissionPolicy"): _policies(
        "Mutations", "spec.mutations", "How many changes it makes."
    ),
}
"""The tables of this family, by group and kind."""
