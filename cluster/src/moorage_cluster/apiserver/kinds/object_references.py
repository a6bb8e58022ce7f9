"""Validation of references to objects of any kind: names that are path segments, and API versions."""

from __future__ import annotations

from moorage.api.manifests import Manifest
from moorage.apimachinery.fields import FieldError, invalid, required
from moorage.apimachinery.validation.names import check_path_segment, check_subdomain


def check_kind_and_name(reference: Manifest, path: str) -> list[FieldError]:
    """The kind and the name of an object."""
    errors: list[FieldError] = []
    for key in ("kind", "name"):
        value = reference.get(key, "")
        errors += check_path_segment(value, f"{path}.{key}") if value else [required(f"{path}.{key}")]
    return errors


def check_typed_reference(reference: Manifest, path: str) -> list[FieldError]:
    """A group, a kind and a name."""
    errors: list[FieldError] = []
    if "apiGroup" in reference:
        errors += check_subdomain(reference["apiGroup"], f"{path}.apiGroup")
    return errors + check_kind_and_name(reference, path)


def check_versioned_reference(
    reference: Manifest, path: str, *, needs_group: bool, check_version: bool = True
) -> list[FieldError]:
    """A kind, a name and an API version."""
    errors = check_kind_and_name(reference, path)
    version = reference.get("apiVersion", "")
    if check_version:
        if version.count("/") > 1:
            why = f"unexpected GroupVersion string: {version}"
            errors.append(invalid(f"{path}.apiVersion", version, why))
        elif needs_group and not version.rpartition("/")[0]:
            errors.append(invalid(f"{path}.apiVersion", version, "apiVersion must specify API group"))
    return errors
