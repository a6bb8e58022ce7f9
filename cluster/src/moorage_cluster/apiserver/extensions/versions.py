"""The versions of a definition: their names, schemas, subresources, columns and selectable fields.

Errors that all versions have in common are reported once, under `spec` instead of under each version:
Kubernetes moves common fields there before validation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from moorage.api.manifests import Manifest
from moorage.api.names import dns_1035_label_problems
from moorage.apimachinery.fields import FieldError, duplicate, invalid, required, too_many
from moorage_cluster.apiserver.extensions.openapi_rules import schema_problems

_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_MAX_SELECTABLE: Final = 8
_MOVED: Final = {
    "schema": "spec.validation",
    "subresources": "spec.subresources",
    "additionalPrinterColumns": "spec.additionalPrinterColumns",
    "selectableFields": "spec.selectableFields",
}


def versions_problems(spec: Manifest) -> list[FieldError]:
    """The errors of a definition's versions."""
    versions: list[Manifest] = spec.get("versions") or []
    found: list[FieldError] = []
    for index, version in enumerate(versions):
        here = f"spec.versions[{index}]"
        if not _schema(version):
            found.append(required(f"{here}.schema.openAPIV3Schema"))
        if problems := dns_1035_label_problems(version.get("name") or ""):
            found.append(invalid(f"{here}.name", version.get("name") or "", ",".join(problems)))
        found += _deprecation_problems(version, here)
    for key, check in (
        ("schema", _schema_problems),
        ("subresources", _subresource_problems),
        ("additionalPrinterColumns", _column_problems),
        ("selectableFields", _selectable_problems),
    ):
        if _is_common(versions, key):
            found += check(versions[0], _MOVED[key])
        else:
            for index, version in enumerate(versions):
                found += check(version, f"spec.versions[{index}].{key}")
    names = [version.get("name") for version in versions]
    if len(set(names)) < len(names):
        found.append(invalid("spec.versions", _shown(versions), "must contain unique version names"))
    if sum(bool(version.get("storage")) for version in versions) != 1:
        detail = "must have exactly one version marked as storage version"
        found.append(invalid("spec.versions", _shown(versions), detail))
    return found


def _is_common(versions: list[Manifest], key: str) -> bool:
    return bool(versions) and all(version.get(key) == versions[0].get(key) for version in versions)


def _shown(versions: list[Manifest]) -> list[Manifest]:
    """Versions as Kubernetes prints them in an error."""
    moved = {key for key in _MOVED if _is_common(versions, key)}
    return [
        {
            "Name": version.get("name", ""),
            "Served": bool(version.get("served")),
            "Storage": bool(version.get("storage")),
            "Deprecated": bool(version.get("deprecated")),
            "DeprecationWarning": version.get("deprecationWarning"),
            **{key[0].upper() + key[1:]: None if key in moved else version.get(key) for key in _MOVED},
        }
        for version in versions
    ]


def _schema(version: Manifest) -> Any:
    return (version.get("schema") or {}).get("openAPIV3Schema")


def _deprecation_problems(version: Manifest, path: str) -> list[FieldError]:
    text = version.get("deprecationWarning")
    here = f"{path}.deprecationWarning"
    if text is None:
        return []
    if not version.get("deprecated"):
        return [invalid(here, text, "can only be set for deprecated versions")]
    found: list[FieldError] = []
    if len(text.encode()) > 256:
        found.append(invalid(here, text, "must be <= 256 characters long"))
    if not text:
        found.append(invalid(here, text, "must not be an empty string"))
    for index, letter in enumerate(text):
        if not letter.isprintable():
            position = len(text[:index].encode())
            detail = (
                "must only contain printable UTF-8 characters; non-printable character found at index "
                f"{position}"
            )
            found.append(invalid(here, text, detail))
            break
    return found


def _schema_problems(version: Manifest, path: str) -> list[FieldError]:
    schema = _schema(version)
    if not schema:
        return []
    has_status = (version.get("subresources") or {}).get("status") is not None
    return schema_problems(schema, f"{path}.openAPIV3Schema", has_status)


def _subresource_problems(version: Manifest, path: str) -> list[FieldError]:
    scale: Manifest | None = (version.get("subresources") or {}).get("scale")
    if scale is None:
        return []
    found: list[FieldError] = []
    for key, roots, detail in (
        ("specReplicasPath", (".spec.",), "should be a json path under .spec"),
        ("statusReplicasPath", (".status.",), "should be a json path under .status"),
        (
            "labelSelectorPath",
            (".spec.", ".status."),
            "should be a json path under either .spec or .status",
        ),
    ):
        here = f"{path}.scale.{key}"
        text = scale.get(key) or ""
        if not text:
            if key != "labelSelectorPath":
                found.append(required(here))
        elif problem := _path_problem(text):
            found.append(invalid(here, text, problem))
        elif not text.startswith(roots):
            found.append(invalid(here, text, detail))
    return found


def _path_problem(text: str) -> str:
    return "" if text.startswith(".") else "must be a simple json path starting with ."


def _column_problems(version: Manifest, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
        here = f"{path}[{index}]"
        types = f"must be one of {','.join(_COLUMN_TYPES)}"
        formats = f"must be one of {','.join(_COLUMN_FORMATS)}"
        kind, form, text = column.get("type") or "", column.get("format") or "", column.get("jsonPath") or ""
        if not column.get("name"):
            found.append(required(f"{here}.name"))
        if not kind:
            found.append(required(f"{here}.type", types))
        elif kind not in _COLUMN_TYPES:
            found.append(invalid(f"{here}.type", kind, types))
        if form and form not in _COLUMN_FORMATS:
            found.append(invalid(f"{here}.format", form, formats))
        if not text:
            found.append(required(f"{here}.JSONPath"))
        elif problem := _path_problem(text):
            found.append(invalid(f"{here}.JSONPath", text, problem))
    return found


def _selectable_problems(version: Manifest, path: str) -> list[FieldError]:
    schema = _schema(version)
    selectable: list[Manifest] = version.get("selectableFields") or []
    if not isinstance(schema, dict):
        return []
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, field in enumerate(selectable):
        here = f"{path}[{index}].jsonPath"
        text = field.get("jsonPath") or ""
        if not text:
            found.append(required(here))
            continue
        place, problem = _schema_at(schema, text)
        if problem:
            found.append(invalid(here, text, f"is an invalid path: {problem}"))
            continue
        if text.startswith(".metadata"):
            found.append(invalid(here, text, "must not point to fields in metadata"))
        if place.get("type") not in ("string", "boolean", "integer"):
            detail = (
                "must point to a field of type string, boolean or integer. Enum string fields and strings "
                "with formats are allowed."
            )
            found.append(invalid(here, text, detail))
        if text in seen:
            found.append(duplicate(here, text))
        seen.add(text)
    if len(seen) > _MAX_SELECTABLE:
        found.append(too_many(path, len(seen), _MAX_SELECTABLE))
    return found


def _schema_at(schema: Mapping[str, Any], path: str) -> tuple[Mapping[str, Any], str]:
    """The schema of a field, or the reason why there is none."""
    if "[" in path or "]" in path:
        return {}, "array notation is not allowed"
    if not path.startswith("."):
        return {}, f"expected [ or . but got: {path.partition('.')[0]}"
    for step in path[1:].split("."):
        if not step:
            return {}, "unexpected end of JSON path"
        properties = schema.get("properties")
        additional = schema.get("additionalProperties")
        part = properties.get(step) if isinstance(properties, dict) else additional
        if not isinstance(part, dict):
            return {}, "does not refer to a valid field"
        schema = part
    return schema, ""
