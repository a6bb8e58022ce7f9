"""Validation of metadata, the same for every kind and on every write."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from moorage.api.manifests import Manifest
from moorage.api.names import (
    annotation_key_problems,
    dns_subdomain_problems,
    qualified_name_problems,
)
from moorage.api.text import quoted
from moorage.apimachinery.fields import (
    IMMUTABLE,
    NOT_NEGATIVE,
    FieldError,
    complaints,
    forbidden,
    invalid,
    required,
    too_long,
)
from moorage.apimachinery.validation.names import check_label_value, check_qualified_name

ANNOTATIONS_LIMIT_BYTES: Final = 256 * 1024
FIELD_MANAGER_LIMIT_BYTES: Final = 128

_ORPHAN: Final = "orphan"
_FOREGROUND: Final = "foregroundDeletion"
IMMUTABLE_FIELDS: Final = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
NOT_IN_NEW_OBJECTS: Final = ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields")
"""The fields that are dropped from a new object, whatever a client sends."""
_ALWAYS_TEXT: Final = frozenset(("name", "namespace", "uid"))

NameProblems = Callable[[str], Sequence[str]]


def validate_labels(labels: Mapping[str, str], path: str) -> list[FieldError]:
    """Validation errors of labels, or of a selector of the same form."""
    errors: list[FieldError] = []
    for key, value in labels.items():
        errors += check_qualified_name(key, path)
        errors += check_label_value(value, path)
    return errors


def validate_annotations(annotations: Mapping[str, str], path: str) -> list[FieldError]:
    """Validation errors of annotations."""
    errors: list[FieldError] = []
    characters = 0
    for key, value in annotations.items():
        characters += len(key) + len(value)
        errors += complaints(path, key, annotation_key_problems(key))
    # A character has at most four bytes, so most annotations need no encoding to be found short enough.
    if characters * 4 > ANNOTATIONS_LIMIT_BYTES and _bytes(annotations) > ANNOTATIONS_LIMIT_BYTES:
        errors.append(too_long(path, ANNOTATIONS_LIMIT_BYTES))
    return errors


def _bytes(texts: Mapping[str, str]) -> int:
    return sum(len(key.encode()) + len(value.encode()) for key, value in texts.items())


def validate_metadata(
    meta: Manifest, path: str = "metadata", name_problems: NameProblems = dns_subdomain_problems
) -> list[FieldError]:
    """Validation errors of a new object's metadata, after its name was generated."""
    errors: list[FieldError] = []
    prefix, name = meta.get("generateName"), meta.get("name")
    if prefix and (problems := name_problems(_without_trailing_dash(prefix))):
        errors += complaints(f"{path}.generateName", prefix, problems)
    if not name:
        errors.append(required(f"{path}.name", "name or generateName is required"))
    elif problems := name_problems(name):
        errors += complaints(f"{path}.name", name, problems)
    if meta.get("generation", 0) < 0:
        errors.append(invalid(f"{path}.generation", meta["generation"], NOT_NEGATIVE))
    errors += _validate_free_parts(meta, path)
    if finalizers := meta.get("finalizers"):
        errors += validate_finalizers(finalizers, f"{path}.finalizers")
    return errors


def validate_metadata_update(new: Manifest, old: Manifest, path: str = "metadata") -> list[FieldError]:
    """Validation errors of an update of metadata."""
    errors: list[FieldError] = []
    if old.get("deletionTimestamp") and (finalizers := new.get("finalizers")):
        added = sorted(set(finalizers) - set(old.get("finalizers") or ()))
        if added:
            listed = ", ".join(quoted(each) for each in added)
            errors.append(
                forbidden(
                    f"{path}.finalizers",
                    "no new finalizers can be added if the object is being deleted, "
                    f"found new finalizers []string{{{listed}}}",
                )
            )
    if not new.get("resourceVersion"):
        errors.append(invalid(f"{path}.resourceVersion", "", "must be specified for an update"))
    if new.get("generation", 0) < old.get("generation", 0):
        errors.append(invalid(f"{path}.generation", new.get("generation", 0), "must not be decremented"))
    for key in IMMUTABLE_FIELDS:
        value = new.get(key)
        if value != old.get(key):
            shown: Any = value or "" if key in _ALWAYS_TEXT else value
            errors.append(invalid(f"{path}.{key}", shown, IMMUTABLE))
    errors += _validate_free_parts(new, path)
    return errors


def _validate_free_parts(meta: Manifest, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if labels := meta.get("labels"):
        errors += validate_labels(labels, f"{path}.labels")
    if annotations := meta.get("annotations"):
        errors += validate_annotations(annotations, f"{path}.annotations")
    if owners := meta.get("ownerReferences"):
        errors += validate_owners(owners, f"{path}.ownerReferences")
    if managed := meta.get("managedFields"):
        errors += _validate_managed_fields(managed, f"{path}.managedFields")
    return errors


def _without_trailing_dash(prefix: str) -> str:
    """A prefix may end in a dash, since a suffix follows it."""
    return f"{prefix[:-2]}a" if len(prefix) > 1 and prefix.endswith("-") else prefix


def validate_owners(owners: Sequence[Manifest], path: str) -> list[FieldError]:
    """Validation errors of owner references."""
    errors: list[FieldError] = []
    controller = ""
    for owner in owners:
        api_version, kind = owner.get("apiVersion", ""), owner.get("kind", "")
        version = "" if api_version.count("/") > 1 else api_version.rpartition("/")[2]
        if not version:
            errors.append(invalid(f"{path}.apiVersion", api_version, "version must not be empty"))
        for key in ("kind", "name", "uid"):
            if not owner.get(key):
                errors.append(invalid(f"{path}.{key}", "", "must not be empty"))
        if api_version == "v1" and kind == "Event":
            errors.append(invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner"))
        if owner.get("controller"):
            this = f"{kind}/{owner.get('name', '')}"
            if controller:
                problem = (
                    "Only one reference can have Controller set to true. "
                    f'Found "true" in references for {controller} and {this}'
                )
                errors.append(invalid(path, owners, problem))
            else:
                controller = this
    return errors


def validate_finalizers(finalizers: Sequence[str], path: str) -> list[FieldError]:
    """Validation errors of finalizers."""
    errors = [
        invalid(path, finalizer, problem)
        for finalizer in finalizers
        for problem in qualified_name_problems(finalizer)
    ]
    if _ORPHAN in finalizers and _FOREGROUND in finalizers:
        problem = f"finalizer {_ORPHAN} and {_FOREGROUND} cannot be both set"
        errors.append(invalid(path, list(finalizers), problem))
    return errors


def _validate_managed_fields(managed: Sequence[Manifest], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, entry in enumerate(managed):
        if entry.get("operation") not in ("Apply", "Update"):
            where = f"{path}[{index}].operation"
            errors.append(invalid(where, entry.get("operation", ""), "must be `Apply` or `Update`"))
        if entry.get("fieldsType") not in ("FieldsV1", None, ""):
            where = f"{path}[{index}].fieldsType"
            errors.append(invalid(where, entry["fieldsType"], "must be `FieldsV1`"))
        manager = entry.get("manager", "")
        if len(manager.encode()) > FIELD_MANAGER_LIMIT_BYTES:
            errors.append(too_long(f"{path}[{index}].manager", FIELD_MANAGER_LIMIT_BYTES))
        elif not manager.isprintable():
            at = next(at for at, letter in enumerate(manager) if not letter.isprintable())
            problem = f"invalid character U+{ord(manager[at]):04X} (at position {at})"
            errors.append(invalid(f"{path}[{index}].manager", manager, problem))
    return errors
