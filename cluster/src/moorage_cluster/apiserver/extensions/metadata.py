"""The metadata of custom objects and of objects inside them: fields, their types, how patches merge them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from moorage.api.manifests import Manifest, copy
from moorage.apimachinery import errors
from moorage.apimachinery.fields import invalid
from moorage.apimachinery.schema.shape import ANYTHING, SCALAR, Form, Shape

META_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})

_TEXTS: Final = Shape(Form.MAP, items=SCALAR)
_OWNER_FIELDS: Final[Mapping[str, type]] = {
    "apiVersion": str,
    "kind": str,
    "name": str,
    "uid": str,
    "controller": bool,
    "blockOwnerDeletion": bool,
}
_MANAGER_FIELDS: Final[Mapping[str, type]] = {
    "manager": str,
    "operation": str,
    "apiVersion": str,
    "time": str,
    "fieldsType": str,
    "fieldsV1": dict,
    "subresource": str,
}
_SCALARS: Final[Mapping[str, type]] = {
    "name": str,
    "generateName": str,
    "namespace": str,
    "selfLink": str,
    "uid": str,
    "resourceVersion": str,
    "generation": int,
    "creationTimestamp": str,
    "deletionTimestamp": str,
    "deletionGracePeriodSeconds": int,
}
_NAMES: Final = {str: "string", bool: "boolean", int: "integer", dict: "object", list: "array"}

METADATA_SHAPE: Final = Shape(
    Form.OBJECT,
    fields={
        **dict.fromkeys(_SCALARS, SCALAR),
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "finalizers": Shape(Form.LIST, items=SCALAR, is_set=True, merges=True),
        "ownerReferences": Shape(
            Form.LIST,
            items=Shape(Form.OBJECT, fields=dict.fromkeys(_OWNER_FIELDS, SCALAR), atomic=True),
            keys=("uid",),
            merge_key="uid",
            merges=True,
        ),
        "managedFields": Shape(Form.LIST, items=ANYTHING, atomic=True),
    },
)


def decode_metadata(value: Any, path: str, unknown: list[str]) -> Manifest:
    """A copy of some metadata without nulls and unknown fields; ApiError (400) if a type is wrong."""
    decoded: Manifest = {}
    for key, item in _checked(value, dict, path).items():
        here = f"{path}.{key}"
        known = _SCALARS.get(key)
        if item is None and (known or key in METADATA_SHAPE.fields):
            continue
        if known:
            decoded[key] = _checked(item, known, here)
        elif key in ("labels", "annotations"):
            decoded[key] = {
                name: _checked("" if text is None else text, str, f"{here}.{name}")
                for name, text in _checked(item, dict, here).items()
            }
        elif key == "finalizers":
            texts = _checked(item, list, here)
            decoded[key] = [_checked(text, str, f"{here}[{i}]") for i, text in enumerate(texts)]
        elif key == "ownerReferences":
            owners = _checked(item, list, here)
            decoded[key] = [
                _struct(owner, _OWNER_FIELDS, f"{here}[{i}]", unknown) for i, owner in enumerate(owners)
            ]
        elif key == "managedFields":
            entries = _checked(item, list, here)
            decoded[key] = [
                _struct(entry, _MANAGER_FIELDS, f"{here}[{i}]", unknown) for i, entry in enumerate(entries)
            ]
        else:
            unknown.append(here)
    return decoded


def _struct(value: Any, fields: Mapping[str, type], path: str, unknown: list[str]) -> Manifest:
    found: Manifest = {}
    for key, item in _checked(value, dict, path).items():
        expected = fields.get(key)
        if expected is None:
            unknown.append(f"{path}.{key}")
        elif item is not None:
            found[key] = copy(_checked(item, expected, f"{path}.{key}"))
    return found


def _checked(value: Any, expected: type, path: str) -> Any:
    if type(value) is not expected:
        raise errors.bad_request(str(invalid(path, value, f"must be of type {_NAMES[expected]}")))
    return value
