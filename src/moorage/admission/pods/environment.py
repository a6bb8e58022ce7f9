"""Validation of a container's environment variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from moorage.admission.pods.references import (
    IN_VARIABLES,
    validate_field_reference,
    validate_resource_reference,
)
from moorage.api.manifests import Manifest
from moorage.api.names import (
    config_key_problems,
    variable_name_problems,
)
from moorage.apimachinery.fields import FieldError, complaints, invalid, not_found, required
from moorage.apimachinery.validation.names import check_label, check_subdomain
from moorage.apimachinery.validation.paths import check_no_backsteps

_SOURCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_ONE_OF: Final = (
    "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
)
_SEVERAL: Final = "may not have more than one field specified at a time"


def validate_env(
    variables: Sequence[Manifest], volumes: Mapping[str, Manifest], path: str
) -> list[FieldError]:
    """Validation errors of individual variables (`env`)."""
    errors: list[FieldError] = []
    for index, variable in enumerate(variables):
        name = variable.get("name", "")
        if not name:
            errors.append(required(f"{path}[{index}].name"))
        elif problems := variable_name_problems(name):
            errors += complaints(f"{path}[{index}].name", name, problems)
        if (source := variable.get("valueFrom")) is not None:
            errors += _value_from(variable, source, volumes, f"{path}[{index}].valueFrom")
    return errors


def _value_from(
    variable: Manifest, source: Manifest, volumes: Mapping[str, Manifest], path: str
) -> list[FieldError]:
    errors: list[FieldError] = []
    used = [kind for kind in _SOURCES if source.get(kind) is not None]
    for kind in used:
        reference, where = source[kind], f"{path}.{kind}"
        if kind == "fieldRef":
            errors += validate_field_reference(reference, IN_VARIABLES, where)
        elif kind == "resourceFieldRef":
            errors += validate_resource_reference(reference, where, needs_container=False)
        elif kind == "fileKeyRef":
            errors += _file_key(reference, volumes, where)
        else:
            errors += _key(reference, where)
    if not used:
        errors.append(invalid(path, "", _ONE_OF))
    elif variable.get("value"):
        errors.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif len(used) > 1:
        errors.append(invalid(path, "", _SEVERAL))
    return errors


def _key(reference: Manifest, path: str) -> list[FieldError]:
    name, key = reference.get("name", ""), reference.get("key", "")
    errors = check_subdomain(name, f"{path}.name")
    if not key:
        errors.append(required(f"{path}.key"))
    else:
        errors += complaints(f"{path}.key", key, config_key_problems(key))
    return errors


def _file_key(reference: Manifest, volumes: Mapping[str, Manifest], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    key, volume, file = (reference.get(part, "") for part in ("key", "volumeName", "path"))
    if not key:
        errors.append(required(f"{path}.key"))
    else:
        errors += complaints(f"{path}.key", key, variable_name_problems(key))
    if not volume:
        errors.append(required(f"{path}.volumeName"))
    else:
        errors += check_label(volume, f"{path}.volumeName")
    if not file:
        errors.append(required(f"{path}.path"))
    else:
        errors += check_no_backsteps(file, f"{path}.path")
    if volume not in volumes:
        errors.append(not_found(f"{path}.volumeName", volume))
    elif "emptyDir" not in volumes[volume]:
        errors.append(invalid(f"{path}.volumeName", volume, "referenced volume must be of type emptyDir"))
    return errors


def validate_env_from(sources: Sequence[Manifest], path: str) -> list[FieldError]:
    """Validation errors of variables from whole ConfigMaps and Secrets (`envFrom`)."""
    errors: list[FieldError] = []
    for index, source in enumerate(sources):
        where = f"{path}[{index}]"
        if prefix := source.get("prefix"):
            errors += complaints(f"{where}.prefix", prefix, variable_name_problems(prefix))
        used = [kind for kind in ("configMapRef", "secretRef") if source.get(kind) is not None]
        for kind in used:
            name = source[kind].get("name", "")
            if not name:
                errors.append(required(f"{where}.{kind}.name"))
            else:
                errors += check_subdomain(name, f"{where}.{kind}.name")
        if not used:
            errors.append(invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(used) > 1:
            errors.append(invalid(path, "", _SEVERAL))
    return errors
