"""RuntimeClasses: container runtimes, their overhead and their scheduling constraints."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.api.manifests import Manifest
from moorage.apimachinery.fields import FieldError, complaints, duplicate, required
from moorage.apimachinery.validation.checks import check_unchanged
from moorage.apimachinery.validation.metadata import validate_labels
from moorage.apimachinery.validation.names import check_label
from moorage.apimachinery.validation.resource_names import check_amount, container_resource_problems
from moorage.apimachinery.validation.taints import check_tolerations
from moorage_cluster.apiserver.strategy import Strategy


class RuntimeClassStrategy(Strategy):
    """A RuntimeClass."""

    allows_create_on_update = True
    allows_unconditional_update = False

    def validate(self, obj: Manifest) -> list[FieldError]:
        """The handler is required; overhead and scheduling constraints are valid."""
        handler = obj.get("handler", "")
        errors = check_label(handler, "handler") if handler else [required("handler")]
        for name, quantity in ((obj.get("overhead") or {}).get("podFixed") or {}).items():
            path = f"overhead.limits[{name}]"
            errors += complaints(path, name, container_resource_problems(name))
            errors += check_amount(name, quantity, path)
        scheduling = obj.get("scheduling") or {}
        errors += validate_labels(scheduling.get("nodeSelector") or {}, "scheduling.nodeSelector")
        return errors + _check_set_of_tolerations(
            scheduling.get("tolerations") or (), "scheduling.tolerations"
        )

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """The handler is immutable."""
        return check_unchanged(obj.get("handler", ""), old.get("handler", ""), "handler")


def _check_set_of_tolerations(tolerations: Sequence[Manifest], path: str) -> list[FieldError]:
    errors = check_tolerations(tolerations, path)
    seen = set()
    for index, toleration in enumerate(tolerations):
        key = tuple(toleration.get(part, "") for part in ("key", "operator", "value", "effect"))
        if key in seen:
            errors.append(duplicate(f"{path}[{index}]", toleration))
        seen.add(key)
    return errors
