"""CustomResourceDefinitions: defaulting, read-only fields, validation, and deletion."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final
from urllib.parse import urlsplit

from moorage.api.conditions import condition_status, set_condition
from moorage.api.manifests import Manifest, annotations_of, timestamp
from moorage.api.names import dns_subdomain_problems
from moorage.api.text import quoted
from moorage.apimachinery.fields import (
    IMMUTABLE,
    FieldError,
    forbidden,
    invalid,
    not_supported,
    required,
)
from moorage.apimachinery.validation.checks import check_review_versions
from moorage_cluster.apiserver.extensions.keywords import drop_meaningless
from moorage_cluster.apiserver.extensions.names import (
    accepted,
    names_problems,
    stored_versions,
)
from moorage_cluster.apiserver.extensions.openapi_rules import unknown_formats
from moorage_cluster.apiserver.extensions.versions import versions_problems
from moorage_cluster.apiserver.strategy import Strategy

__all__ = [
    "CLEANUP_FINALIZER",
    "CustomResourceDefinitionStrategy",
    "accepted",
    "is_established",
    "is_terminating",
    "terminating",
]

CLEANUP_FINALIZER: Final = "customresourcecleanup.apiextensions.k8s.io"
"""Finalizer: keeps a definition until the objects of its kind are deleted."""
_APPROVAL: Final = "api-approved.kubernetes.io"
_APPROVAL_RULES: Final = "see https://github.com/kubernetes/enhancements/pull/1111"


def is_terminating(crd: Manifest) -> bool:
    """Whether a definition is being deleted: new objects of its kind are rejected."""
    return bool(crd["metadata"].get("deletionTimestamp"))


def is_established(crd: Manifest) -> bool:
    """Whether a definition's kind is served."""
    return condition_status(crd, "Established") == "True"


def terminating(
    crd: Manifest,
    now: datetime,
    reason: str = "InstanceDeletionInProgress",
    message: str = "CustomResource deletion is in progress",
) -> Manifest:
    """The status of a definition while its objects are deleted."""
    status: Manifest = dict(crd.get("status") or {})
    condition = {"type": "Terminating", "status": "True", "reason": reason, "message": message}
    status["conditions"] = set_condition(status.get("conditions") or (), condition, now)
    return status


class CustomResourceDefinitionStrategy(Strategy):
    """apiextensions.k8s.io/v1 CustomResourceDefinition."""

    has_status = True
    has_generation = True
    allows_unconditional_update = False
    is_marked_before_deletion = True

    def default(self, obj: Manifest) -> None:
        """Derived names, no conversion, and schemas without keywords that have no effect."""
        spec: Manifest = obj.setdefault("spec", {})
        for version in spec.get("versions") or ():
            drop_meaningless((version.get("schema") or {}).get("openAPIV3Schema"))
        names: Manifest = spec.setdefault("names", {})
        kind = names.get("kind") or ""
        if not names.get("singular"):
            names["singular"] = kind.lower()
        if not names.get("listKind") and kind:
            names["listKind"] = f"{kind}List"
        if spec.get("conversion") is None:
            spec["conversion"] = {"strategy": "None"}
        webhook = spec["conversion"].get("webhook") or {}
        service = (webhook.get("clientConfig") or {}).get("service")
        if service is not None:
            service.setdefault("port", 443)

    def prepare_create(self, obj: Manifest) -> None:
        """Start with a status that only contains the stored version."""
        super().prepare_create(obj)
        self._drop_false(obj)
        obj["status"] = {
            "acceptedNames": {"kind": "", "plural": ""},
            "conditions": [],
            "storedVersions": stored_versions(obj),
        }

    def prepare_update(self, obj: Manifest, old: Manifest) -> None:
        """Keep the status."""
        self._drop_false(obj)
        super().prepare_update(obj, old)
        obj["status"] = {**(obj.get("status") or {}), "storedVersions": stored_versions(obj)}

    def prepare_delete(self, obj: Manifest, now: datetime) -> None:
        """Add the finalizer that waits for the kind's objects, in addition to any others."""
        meta = obj["metadata"]
        meta["deletionTimestamp"] = timestamp(now)
        if CLEANUP_FINALIZER not in (finalizers := meta.get("finalizers") or []):
            meta["finalizers"] = [*finalizers, CLEANUP_FINALIZER]
        why = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
        obj["status"] = terminating(obj, now, "InstanceDeletionPending", why)

    def validate(self, obj: Manifest) -> list[FieldError]:
        """The errors of a new definition."""
        spec = obj["spec"]
        names = spec["names"]
        found: list[FieldError] = []
        name = obj["metadata"].get("name", "")
        if name != f"{names.get('plural', '')}.{spec.get('group', '')}":
            found.append(invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
        return found + self._spec_problems(obj) + _approval_problems(obj, None)

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """The errors of an update of a definition."""
        spec, before = obj["spec"], old["spec"]
        found = self._spec_problems(obj)
        fixed = [("group", spec.get("group"), before.get("group"))]
        fixed.append(("names.plural", spec["names"].get("plural"), before["names"].get("plural")))
        if is_established(old):
            fixed.append(("scope", spec.get("scope"), before.get("scope")))
            fixed.append(("names.kind", spec["names"].get("kind"), before["names"].get("kind")))
        for key, value, earlier in fixed:
            if value != earlier:
                found.append(invalid(f"spec.{key}", value, IMMUTABLE))
        return found + _approval_problems(obj, old)

    def warnings(self, obj: Manifest, old: Manifest | None) -> list[str]:
        """Warnings about formats that are not validated, unless they existed before."""
        before = set(_all_unknown_formats(old)) if old else set()
        return [
            f"unrecognized format {quoted(name)}" for name in _all_unknown_formats(obj) if name not in before
        ]

    def _drop_false(self, obj: Manifest) -> None:
        """Omit `preserveUnknownFields` if it is false."""
        if obj["spec"].get("preserveUnknownFields") is False:
            del obj["spec"]["preserveUnknownFields"]

    def _spec_problems(self, obj: Manifest) -> list[FieldError]:
        spec = obj["spec"]
        found = _group_problems(spec.get("group") or "")
        scope = spec.get("scope") or ""
        if not scope:
            found.append(required("spec.scope"))
        elif scope not in ("Cluster", "Namespaced"):
            found.append(not_supported("spec.scope", scope, ("Cluster", "Namespaced")))
        found += versions_problems(spec)
        found += names_problems(spec["names"], "spec.names")
        found += _conversion_problems(spec["conversion"])
        if spec.get("preserveUnknownFields"):
            detail = (
                "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
                "spec.versions[*].schema instead"
            )
            found.append(invalid("spec.preserveUnknownFields", True, detail))
        return found + _stored_problems(obj)


def _group_problems(group: str) -> list[FieldError]:
    if not group:
        return [required("spec.group")]
    problems = dns_subdomain_problems(group)
    if problems:
        return [invalid("spec.group", group, ",".join(problems))]
    if "." not in group:
        return [invalid("spec.group", group, "should be a domain with at least one dot")]
    return []


def _stored_problems(obj: Manifest) -> list[FieldError]:
    stored = stored_versions(obj)
    declared = [version.get("name") for version in obj["spec"].get("versions") or ()]
    path = "status.storedVersions"
    if not stored:
        return [invalid(path, stored, "must have at least one stored version")]
    return [
        invalid(
            f"{path}[{index}]",
            name,
            f"missing from spec.versions; {name} was previously a storage version, and must remain in "
            f"spec.versions until a storage migration ensures no data remains persisted in {name} and "
            f"removes {name} from status.storedVersions",
        )
        for index, name in enumerate(stored)
        if name not in declared
    ]


def _conversion_problems(conversion: Manifest) -> list[FieldError]:
    path = "spec.conversion"
    strategy = conversion.get("strategy") or ""
    webhook: Manifest | None = conversion.get("webhook")
    if not strategy:
        return [required(f"{path}.strategy")]
    if strategy not in ("None", "Webhook"):
        return [not_supported(f"{path}.strategy", strategy, ("None", "Webhook"))]
    if strategy == "None":
        if webhook is not None:
            detail = "should not be set when strategy is not set to Webhook"
            return [forbidden(f"{path}.webhookClientConfig", detail)]
        return []
    found: list[FieldError] = []
    client = (webhook or {}).get("clientConfig")
    if client is None:
        detail = "required when strategy is set to Webhook"
        found.append(required(f"{path}.webhookClientConfig", detail))
    elif (client.get("url") is None) == (client.get("service") is None):
        detail = "exactly one of url or service is required"
        found.append(required(f"{path}.webhookClientConfig", detail))
    return found + _review_problems((webhook or {}).get("conversionReviewVersions") or [])


def _review_problems(versions: list[str]) -> list[FieldError]:
    path = "spec.conversion.conversionReviewVersions"
    return check_review_versions(versions, path) if versions else [required(path)]


def _approval(obj: Manifest) -> str:
    """The approval for using Kubernetes' own groups: missing, bypassed, approved or invalid."""
    text = annotations_of(obj).get(_APPROVAL, "")
    if not text:
        return "missing"
    if text.startswith("unapproved"):
        return "bypassed"
    try:
        address = urlsplit(text)
    except ValueError:
        return "invalid"
    return "approved" if address.scheme and address.netloc else "invalid"


def _approval_problems(obj: Manifest, old: Manifest | None) -> list[FieldError]:
    group = f".{obj['spec'].get('group') or ''}"
    if not group.endswith((".k8s.io", ".kubernetes.io")):
        return []
    state = _approval(obj)
    if old is not None and state == _approval(old):
        return []
    path = f"metadata.annotations[{_APPROVAL}]"
    rule = f"protected groups must have approval annotation {quoted(_APPROVAL)}"
    if state == "missing":
        return [required(path, f"{rule}, {_APPROVAL_RULES}")]
    if state == "invalid":
        detail = f'{rule} with either a URL or a reason starting with "unapproved", {_APPROVAL_RULES}'
        return [invalid(path, annotations_of(obj)[_APPROVAL], detail)]
    return []


def _all_unknown_formats(crd: Manifest) -> list[str]:
    found: dict[str, Any] = {}
    for version in crd["spec"].get("versions") or ():
        found |= dict.fromkeys(unknown_formats((version.get("schema") or {}).get("openAPIV3Schema")))
    return list(found)
