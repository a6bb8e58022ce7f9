"""The scale subresource of custom kinds: where an object keeps its replicas, as autoscaling/v1 Scale."""

from __future__ import annotations

from typing import Any, Final

from moorage.api.manifests import Manifest
from moorage.api.text import quoted
from moorage.apimachinery import errors
from moorage.apimachinery.fields import FieldError, invalid

_MAX_INT32: Final = 2**31 - 1
_GO_TYPES: Final = {
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
    list: "[]interface {}",
    dict: "map[string]interface {}",
    type(None): "<nil>",
}
_COPIED: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


class _AccessError(ValueError):
    """Something on the way to a field, or the field itself, is of another type than expected."""


def scale_paths(crd: Manifest, version: str) -> Manifest | None:
    """A version's `subresources.scale`; None: it has no scale."""
    for each in crd["spec"].get("versions") or ():
        if each.get("name") == version:
            scale: Manifest | None = (each.get("subresources") or {}).get("scale")
            return scale
    return None


def scale_of(obj: Manifest, crd: Manifest) -> Manifest:
    """An object's scale."""
    paths = _paths(obj, crd)
    try:
        wanted = _at(obj, paths["specReplicasPath"], int)
        present = _at(obj, paths["statusReplicasPath"], int)
        selector = _at(obj, paths.get("labelSelectorPath") or "", str)
    except _AccessError as error:
        raise errors.internal(str(error)) from None
    if wanted is None:
        raise errors.internal(f"the spec replicas field {quoted(paths['specReplicasPath'])} does not exist")
    status: Manifest = {"replicas": present or 0}
    if selector:
        status["selector"] = selector
    meta = obj["metadata"]
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: meta[key] for key in _COPIED if key in meta},
        "spec": {"replicas": wanted} if wanted else {},
        "status": status,
    }


def with_scale(obj: Manifest, scale: Manifest, crd: Manifest) -> Manifest:
    """A copy of an object with the replicas of a scale; a scale without replicas means 0."""
    path: str = _paths(obj, crd)["specReplicasPath"]
    spec = scale.get("spec") or {}
    replicas = spec.get("replicas") if isinstance(spec, dict) else None
    if replicas is None:
        replicas = 0
    if type(replicas) is not int:
        raise errors.bad_request(str(invalid("spec.replicas", replicas, "must be of type integer")))
    changed = dict(obj)
    part = changed
    *steps, last = _steps(path)
    for index, step in enumerate(steps):
        inner = part.get(step, {})
        if not isinstance(inner, dict):
            where = "." + ".".join(steps[: index + 1])
            raise errors.internal(f"value cannot be set because {where} is not a map[string]interface{{}}")
        part[step] = dict(inner)
        part = part[step]
    part[last] = replicas
    wanted_version = (scale.get("metadata") or {}).get("resourceVersion")
    if wanted_version:
        changed["metadata"] = {**obj["metadata"], "resourceVersion": wanted_version}
    return changed


def scale_problems(obj: Manifest, paths: Manifest | None, status_only: bool = False) -> list[FieldError]:
    """The errors of the fields of an object that its scale shows."""
    if not paths:
        return []
    found: list[FieldError] = []
    counted = ("statusReplicasPath",) if status_only else ("specReplicasPath", "statusReplicasPath")
    for key in counted:
        path: str = paths[key]
        try:
            replicas = _at(obj, path, int) or 0
        except _AccessError as error:
            found.append(invalid(path, 0, str(error)))
            continue
        if replicas < 0:
            found.append(invalid(path, replicas, "should be a non-negative integer"))
        elif replicas > _MAX_INT32:
            found.append(invalid(path, replicas, f"should be less than or equal to {_MAX_INT32}"))
    selector_path = paths.get("labelSelectorPath") or ""
    try:
        _at(obj, selector_path, str)
    except _AccessError as error:
        found.append(invalid(selector_path, "", str(error)))
    return found


def _paths(obj: Manifest, crd: Manifest) -> Manifest:
    paths = scale_paths(crd, str(obj.get("apiVersion", "")).rpartition("/")[2])
    if not paths:
        raise errors.unknown_path()
    return paths


def _steps(path: str) -> list[str]:
    return path.removeprefix(".").split(".")


def _at(obj: Manifest, path: str, expected: type) -> Any:
    """What is at a path; None: nothing."""
    if not path:
        return None
    value: Any = obj
    steps = _steps(path)
    for index, step in enumerate(steps):
        if value is None:
            return None
        if not isinstance(value, dict):
            raise _AccessError(_mismatch(steps[: index + 1], value, "map[string]interface{}"))
        if step not in value:
            return None
        value = value[step]
    if type(value) is not expected:
        raise _AccessError(_mismatch(steps, value, _GO_TYPES[expected]))
    return value


def _mismatch(steps: list[str], value: Any, expected: str) -> str:
    shown = "<nil>" if value is None else str(value).lower() if isinstance(value, bool) else value
    found = _GO_TYPES[type(value)]
    return f".{'.'.join(steps)} accessor error: {shown} is of the type {found}, expected {expected}"
