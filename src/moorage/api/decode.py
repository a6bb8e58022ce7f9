"""From plain dicts to objects, with errors that name file, field and reason in one line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

import msgspec

from moorage.api import devices, node, pod, pod_groups, storage, workloads
from moorage.api.base import Object
from moorage.api.manifests import without_nulls
from moorage.api.quantity import Quantity, parse_quantity

T = TypeVar("T")

_GROUPS: dict[str, tuple[type[Object], ...]] = {
    "": (
        pod.Pod,
        node.Node,
        node.Namespace,
        storage.PersistentVolume,
        storage.PersistentVolumeClaim,
        workloads.Service,
        workloads.ReplicationController,
    ),
    "apps": (workloads.ReplicaSet, workloads.StatefulSet),
    "policy": (workloads.PodDisruptionBudget,),
    "resource.k8s.io": (
        devices.DeviceClass,
        devices.DeviceTaintRule,
        devices.ResourceClaim,
        devices.ResourceSlice,
    ),
    "scheduling.k8s.io": (pod_groups.PodGroup, pod_groups.CompositePodGroup),
    "storage.k8s.io": (
        storage.StorageClass,
        storage.CSINode,
        storage.CSIDriver,
        storage.CSIStorageCapacity,
        storage.VolumeAttachment,
    ),
}

KINDS: dict[str, type[Object]] = {kind.__name__: kind for kinds in _GROUPS.values() for kind in kinds}
"""Every kind that scheduling reads, by its name."""

_GROUP_OF = {kind.__name__: group for group, kinds in _GROUPS.items() for kind in kinds}


class DeclaredType(NamedTuple):
    """The type of objects of a kind that a plugin has declared."""

    type: type[Object]
    namespaced: bool


_DECLARED: dict[tuple[str, str], DeclaredType] = {}
"""By group and name. There are as many as the loaded plugins declare."""


def declare_type(group: str, declared: DeclaredType) -> None:
    """Read objects of one more kind, which is named as its type, or read them as another type than before."""
    _DECLARED[group, declared.type.__name__] = declared


def type_named(group: str, name: str) -> type[Object] | None:
    """The type of objects of a kind; None for one that scheduling does not read."""
    declared = _DECLARED.get((group, name))
    return KINDS.get(name) if declared is None else declared.type


def all_types() -> tuple[type[Object], ...]:
    """The types of all kinds that scheduling and the loaded plugins read."""
    return (*KINDS.values(), *(declared.type for declared in _DECLARED.values()))


def is_declared_cluster_wide(kind: type[Object]) -> bool:
    """Whether a plugin has declared that objects of this type are in no namespace."""
    return any(each.type is kind and not each.namespaced for each in _DECLARED.values())


_AT = re.compile(r"^(?P<reason>.*?)(?: - at `(?:key in )?\$(?P<path>[^`]*)`)?$", re.DOTALL)


_STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")
_TYPE_NAMES = {int: "int", str: "str", float: "float", bool: "bool", list: "array", dict: "object"}


class InputError(Exception):
    """Input that cannot be used; the message is one line: where, and why."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"{where}: {reason}" if where else reason)
        self.where = where
        self.reason = reason


def decode_hook(kind: type, value: Any) -> Any:
    """msgspec's hook for types it does not support."""
    if kind is Quantity:
        if not isinstance(value, str | int | float) or isinstance(value, bool):
            raise ValueError(f"{value!r} is not a quantity (like 100m, 1.5Gi or 2e3)")
        quantity = parse_quantity(str(value))
        if quantity < 0:
            raise ValueError(f"{value!r} is negative")
        return quantity
    raise NotImplementedError(kind)


def convert(value: Any, kind: type[T], where: str = "") -> T:
    """A plain value as `kind`; nulls count as absent, as they do in Kubernetes."""
    try:
        plain = without_nulls(value)
    except RecursionError:
        raise InputError(where, "contains itself, or is nested too deeply") from None
    try:
        return msgspec.convert(plain, kind, dec_hook=decode_hook)
    except msgspec.ValidationError as error:
        raise _input_error(error, plain, where) from None


def _input_error(error: msgspec.ValidationError, value: Any, where: str) -> InputError:
    match = _AT.match(str(error))
    assert match is not None
    reason = match["reason"]
    steps = [name or index for name, index in _STEP.findall(match["path"] or "")]
    path = "".join(_named(steps, value, reason) or match["path"] or "").lstrip(".")
    return InputError(": ".join(filter(None, (where, path))), reason[:1].lower() + reason[1:])


def _named(steps: list[str], value: Any, reason: str) -> list[str] | None:
    """The path to the value of an error, with the map keys that msgspec writes as [...]."""
    if not steps:
        wrong = repr(value) in reason or f"got `{_TYPE_NAMES.get(type(value))}`" in reason
        return [] if wrong or "missing required field" in reason else None
    step, rest = steps[0], steps[1:]
    if isinstance(value, list):
        if not step.isdigit() or int(step) >= len(value):
            return None
        items: list[tuple[str, Any]] = [(f"[{step}]", value[int(step)])]
    elif isinstance(value, dict):
        keys = list(value) if step == "..." else [step]
        items = [(f".{key}", value.get(key)) for key in keys]
    else:
        return None
    for name, item in items:
        found = _named(rest, item, reason)
        if found is not None:
            return [name, *found]
    return None


def decode_object(manifest: Any, where: str = "") -> Object | None:
    """A manifest as an object, or None for a kind that scheduling does not read."""
    if not isinstance(manifest, Mapping):
        raise InputError(where, f"expected an object with a kind, got {_type_of(manifest)}")
    name = manifest.get("kind")
    if not isinstance(name, str) or not name:
        raise InputError(where, "kind: missing")
    kind = kind_of(manifest)
    if kind is None:
        return None
    metadata = manifest.get("metadata")
    called = metadata.get("name") if isinstance(metadata, Mapping) else None
    label = f"{name} {called}" if called else name
    return convert(manifest, kind, ": ".join(filter(None, (where, label))))


def kind_of(manifest: Any) -> type[Object] | None:
    """The kind of a manifest, or None for one that scheduling does not read."""
    name = manifest.get("kind") if isinstance(manifest, Mapping) else None
    if not isinstance(name, str):
        return None
    group = _group(manifest)
    if name in KINDS and group in (None, _GROUP_OF[name]):
        return KINDS[name]
    declared = None if group is None else _DECLARED.get((group, name))
    return None if declared is None else declared.type


def _group(manifest: Mapping[str, Any]) -> str | None:
    """The API group a manifest names, or None if it names none: `v1` is of the core group, which is empty."""
    version = manifest.get("apiVersion")
    if not isinstance(version, str) or not version:
        return None
    group, slash, _ = version.partition("/")
    return group if slash else ""


def _type_of(value: Any) -> str:
    names: dict[type, str] = {
        list: "a list",
        str: "text",
        int: "a number",
        float: "a number",
        bool: "true or false",
    }
    return "nothing" if value is None else names.get(type(value), type(value).__name__)
