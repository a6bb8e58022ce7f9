"""Validation of the spec of a claim: that of a PersistentVolumeClaim, or of a template for one."""

from __future__ import annotations

from typing import Final

from moorage.api.manifests import Manifest
from moorage.apimachinery.fields import FieldError, forbidden, invalid, required
from moorage.apimachinery.validation.checks import check_optional_word, check_positive_quantity
from moorage.apimachinery.validation.names import check_label, check_subdomain
from moorage.apimachinery.validation.selectors import check_label_selector

ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES: Final = ("Block", "Filesystem")


def check_access_modes(modes: list[str], path: str) -> list[FieldError]:
    """Validation errors of access modes."""
    errors: list[FieldError] = []
    for mode in modes:
        errors += check_optional_word(mode, ACCESS_MODES, path)
    known = {mode for mode in modes if mode in ACCESS_MODES}
    if "ReadWriteOncePod" in known and len(known) > 1:
        errors.append(forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return errors


def storage_size(spec: Manifest) -> str | None:
    """The requested storage, as a quantity; None if there is none."""
    size: str | None = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    return size


def check_claim_spec(spec: Manifest, path: str) -> list[FieldError]:
    """Validation errors of the spec of a claim, or of a template for one."""
    modes = spec.get("accessModes") or []
    errors = []
    if not modes:
        errors.append(required(f"{path}.accessModes", "at least 1 access mode is required"))
    errors += check_label_selector(spec.get("selector"), f"{path}.selector")
    errors += check_access_modes(modes, f"{path}.accessModes")
    size = storage_size(spec)
    if size is None:
        errors.append(required(f"{path}.resources[storage]"))
    else:
        errors += check_positive_quantity(size, f"{path}.resources[storage]")
    for key in ("storageClassName", "volumeAttributesClassName"):
        if spec.get(key):
            errors += check_subdomain(spec[key], f"{path}.{key}")
    if "volumeMode" in spec:
        errors += check_optional_word(spec["volumeMode"], VOLUME_MODES, f"{path}.volumeMode")
    return errors + _check_sources(spec, path)


def _check_sources(spec: Manifest, path: str) -> list[FieldError]:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    errors = []
    for key, named in (("dataSource", source), ("dataSourceRef", reference)):
        if named is not None:
            errors += _check_source(named, f"{path}.{key}")
    namespace = (reference or {}).get("namespace")
    if namespace:
        errors += check_label(namespace, f"{path}.dataSourceRef.namespace")
        if source is not None:
            why = "may not be specified when dataSourceRef.namespace is specified"
            errors.append(invalid(path, f"{path}.dataSource", why))
    elif source is not None and reference is not None:
        same = all(source.get(key, "") == reference.get(key, "") for key in ("apiGroup", "kind", "name"))
        if not same:
            errors.append(invalid(path, f"{path}.dataSource", "must match dataSourceRef"))
    return errors


def _check_source(source: Manifest, path: str) -> list[FieldError]:
    errors = [required(f"{path}.{key}") for key in ("name", "kind") if not source.get(key)]
    group, kind = source.get("apiGroup", ""), source.get("kind", "")
    if group:
        return errors + check_subdomain(group, f"{path}.apiGroup")
    if kind != "PersistentVolumeClaim":
        why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        errors.append(invalid(path, kind, why))
    return errors
