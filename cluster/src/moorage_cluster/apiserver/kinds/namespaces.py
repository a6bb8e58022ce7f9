"""Namespaces: they are Active until deleted, and are removed once their finalizers are gone."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from moorage.api.manifests import Manifest, child, metadata
from moorage.api.names import dns_label_problems
from moorage.apimachinery.fields import FieldError, invalid
from moorage.apimachinery.validation.names import check_qualified_name
from moorage_cluster.apiserver.kinds.base import StatusStrategy

NAME_LABEL: Final = "kubernetes.io/metadata.name"
FINALIZER: Final = "kubernetes"
ACTIVE: Final = "Active"
TERMINATING: Final = "Terminating"
_STANDARD_FINALIZERS = (FINALIZER, "orphan", "foregroundDeletion")


class NamespaceStrategy(StatusStrategy):
    """A namespace."""

    empty_status = {"phase": ACTIVE}
    is_marked_before_deletion = True

    def name_problems(self, name: str) -> tuple[str, ...]:
        """Names are used in host names: a DNS label."""
        return dns_label_problems(name)

    def default(self, obj: Manifest) -> None:
        """Set the label with the namespace's name, by which selectors can select it."""
        super().default(obj)
        if name := metadata(obj).get("name"):
            child(obj["metadata"], "labels")[NAME_LABEL] = name

    def prepare_create(self, obj: Manifest) -> None:
        """Add the finalizer, which keeps the namespace until its content is deleted."""
        super().prepare_create(obj)
        finalizers = child(obj, "spec").setdefault("finalizers", [])
        if FINALIZER not in finalizers:
            finalizers.append(FINALIZER)
        if name := obj["metadata"].get("name"):  # it may have been generated after defaulting
            child(obj["metadata"], "labels")[NAME_LABEL] = name

    def prepare_update(self, obj: Manifest, old: Manifest) -> None:
        """Only the finalize subresource removes finalizers."""
        super().prepare_update(obj, old)
        _take_finalizers(obj, old)

    def prepare_delete(self, obj: Manifest, now: datetime) -> None:
        """Set the phase Terminating."""
        child(obj, "status")["phase"] = TERMINATING

    def validate(self, obj: Manifest) -> list[FieldError]:
        """Finalizers are qualified names."""
        return _check_finalizers(obj, indexed=False)

    def validate_status(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """The phase is Terminating exactly when the namespace is being deleted."""
        phase = obj.get("status", {}).get("phase", "")
        if obj["metadata"].get("deletionTimestamp"):
            if phase != TERMINATING:
                why = "may only be 'Terminating' if `deletionTimestamp` is not empty"
                return [invalid("status.Phase", phase, why)]
        elif phase != ACTIVE:
            return [invalid("status.Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty")]
        return []

    def selectable(self, obj: Manifest) -> dict[str, str]:
        """Selectable by phase."""
        return {"status.phase": obj.get("status", {}).get("phase", "")}


def prepare_finalize(obj: Manifest, old: Manifest) -> None:
    """Keep the status in an update of the finalize subresource."""
    obj["status"] = old.get("status", {})


def validate_finalize(obj: Manifest) -> list[FieldError]:
    """Validation errors of an update of the finalize subresource."""
    return _check_finalizers(obj, indexed=True)


def finalize(namespace: Manifest, finalizer: str = FINALIZER) -> Manifest:
    """The namespace without one of its finalizers; with none left, it can be removed."""
    spec = dict(namespace.get("spec") or {})
    left = [each for each in spec.get("finalizers") or () if each != finalizer]
    spec["finalizers"] = left
    if not left:
        del spec["finalizers"]
    return {**namespace, "spec": spec}


def _take_finalizers(obj: Manifest, old: Manifest) -> None:
    spec = child(obj, "spec")
    finalizers = (old.get("spec") or {}).get("finalizers")
    if finalizers is None:
        spec.pop("finalizers", None)
    else:
        spec["finalizers"] = finalizers


def _check_finalizers(obj: Manifest, *, indexed: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, finalizer in enumerate((obj.get("spec") or {}).get("finalizers") or ()):
        path = f"spec.finalizers[{index}]" if indexed else "spec.finalizers"
        errors += check_qualified_name(finalizer, path)
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            errors.append(invalid(path, finalizer, why))
    return errors
