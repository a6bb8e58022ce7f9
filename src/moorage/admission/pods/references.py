"""Validation of references to a pod's own fields and to containers' resources (the downward API)."""

from __future__ import annotations

import re
from typing import Final

from moorage.api.manifests import Manifest
from moorage.api.names import HUGE_PAGES
from moorage.apimachinery.fields import FieldError, invalid, not_supported, required
from moorage.apimachinery.validation.names import check_qualified_name

IN_VARIABLES: Final = frozenset(
    (
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    )
)
"""The fields of a pod that an environment variable can refer to."""

IN_FILES: Final = frozenset(
    ("metadata.name", "metadata.namespace", "metadata.labels", "metadata.annotations", "metadata.uid")
)
"""The fields of a pod that a file in a volume can refer to."""

_KNOWN: Final = IN_VARIABLES | IN_FILES | {"spec.restartPolicy", "spec.schedulerName", "status.phase"}
_RESOURCES: Final = frozenset(
    f"{which}.{name}" for which in ("limits", "requests") for name in ("cpu", "memory", "ephemeral-storage")
)
_HUGE_PAGES: Final = (f"requests.{HUGE_PAGES}", f"limits.{HUGE_PAGES}")
_BYTES: Final = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_SUBSCRIPTED: Final = re.compile(r"(.*)\['([^']*)'\]")


def validate_field_reference(reference: Manifest, known: frozenset[str], path: str) -> list[FieldError]:
    """Validation errors of a reference to a field of the pod."""
    version = reference.get("apiVersion", "")
    if not version:
        return [required(f"{path}.apiVersion")]
    field = reference.get("fieldPath", "")
    if not field:
        return [required(f"{path}.fieldPath")]
    match = _SUBSCRIPTED.fullmatch(field)
    if version != "v1":
        problem = f"unsupported pod version: {version}"
    elif match and match[1] not in ("metadata.annotations", "metadata.labels"):
        problem = f"field label does not support subscript: {field}"
    elif not match and field not in _KNOWN and field != "spec.host":
        problem = f"field label not supported: {field}"
    else:
        problem = ""
    if problem:
        return [invalid(f"{path}.fieldPath", field, f"error converting fieldPath: {problem}")]
    if match:
        key = match[2].lower() if match[1] == "metadata.annotations" else match[2]
        return check_qualified_name(key, path)
    if ("spec.nodeName" if field == "spec.host" else field) not in known:
        return [not_supported(f"{path}.fieldPath", field, sorted(known))]
    return []


def validate_resource_reference(reference: Manifest, path: str, *, needs_container: bool) -> list[FieldError]:
    """Validation errors of a reference to a container's requests or limits."""
    errors: list[FieldError] = []
    resource = reference.get("resource", "")
    if needs_container and not reference.get("containerName"):
        errors.append(required(f"{path}.containerName"))
    elif not resource:
        errors.append(required(f"{path}.resource"))
    elif resource not in _RESOURCES and not resource.startswith(_HUGE_PAGES):
        errors.append(not_supported(f"{path}.resource", resource, sorted(_RESOURCES)))
    divisor = reference.get("divisor") or "0"
    if divisor != "0" and (problem := _divisor_problem(resource, divisor)):
        errors.append(invalid(f"{path}.divisor", resource, problem))
    return errors


def _divisor_problem(resource: str, divisor: str) -> str:
    kind = resource.partition(".")[2]
    if kind == "cpu":
        if divisor not in ("1m", "1"):
            return "only divisor's values 1m and 1 are supported with the cpu resource"
        return ""
    if resource.startswith(_HUGE_PAGES):
        spoken = "hugepages"
    elif kind == "ephemeral-storage":
        spoken = "local ephemeral storage"
    elif kind == "memory":
        spoken = "memory"
    else:
        return ""
    if divisor in _BYTES:
        return ""
    return f"only divisor's values {', '.join(_BYTES)} are supported with the {spoken} resource"
