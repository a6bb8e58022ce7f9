"""From JSON, YAML or plain dicts to objects, with errors that name file, field and reason in one line."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from moorage.api import devices, node, pod, storage, workloads
from moorage.api.base import Object
from moorage.api.quantity import Quantity, parse_quantity

T = TypeVar("T")

KINDS: dict[str, type[Object]] = {
    kind.__name__: kind
    for kind in (
        pod.Pod,
        node.Node,
        node.Namespace,
        storage.PersistentVolume,
        storage.PersistentVolumeClaim,
        storage.StorageClass,
        storage.CSINode,
        storage.CSIDriver,
        storage.CSIStorageCapacity,
        storage.VolumeAttachment,
        workloads.Service,
        workloads.ReplicaSet,
        workloads.ReplicationController,
        workloads.StatefulSet,
        workloads.PodDisruptionBudget,
        workloads.PodGroup,
        devices.DeviceClass,
        devices.ResourceClaim,
        devices.ResourceSlice,
    )
}
"""Every kind that scheduling reads, by its name."""

_AT = re.compile(r"^(?P<reason>.*?)(?: - at `(?:key in )?\$(?P<path>[^`]*)`)?$", re.DOTALL)


_GZIP = b"\x1f\x8b"
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")
_TYPE_NAMES = {int: "int", str: "str", float: "float", bool: "bool", list: "array", dict: "object"}


class InputError(Exception):
    """Input that cannot be used; the message is one line: where, and why."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"{where}: {reason}" if where else reason)
        self.where = where
        self.reason = reason


def decode_hook(kind: type, value: Any) -> Any:
    """What msgspec asks for types it does not know."""
    if kind is Quantity:
        if isinstance(value, str):
            return parse_quantity(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return parse_quantity(str(value))
        raise ValueError(f"{value!r} is not a quantity (like 100m, 1.5Gi or 2e3)")
    raise NotImplementedError(kind)


def convert(value: Any, kind: type[T], where: str = "") -> T:
    """A plain value as `kind`; nulls count as absent, as they do in Kubernetes."""
    try:
        plain = _without_nulls(value)
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
    """A path to the value a reason speaks of, with map keys, which msgspec writes as [...], named."""
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


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def decode_object(manifest: Any, where: str = "") -> Object | None:
    """A manifest as an object, or None for a kind that scheduling does not read."""
    if not isinstance(manifest, Mapping):
        raise InputError(where, f"expected an object with a kind, got {_kind_of(manifest)}")
    name = manifest.get("kind")
    if not isinstance(name, str) or not name:
        raise InputError(where, "kind: missing")
    kind = KINDS.get(name)
    if kind is None:
        return None
    metadata = manifest.get("metadata")
    called = metadata.get("name") if isinstance(metadata, Mapping) else None
    label = f"{name} {called}" if called else name
    return convert(manifest, kind, ": ".join(filter(None, (where, label))))


def _kind_of(value: Any) -> str:
    names: dict[type, str] = {
        list: "a list",
        str: "text",
        int: "a number",
        float: "a number",
        bool: "true or false",
    }
    return "nothing" if value is None else names.get(type(value), type(value).__name__)


class _YamlLoader(yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader):  # type: ignore[misc]
    """YAML as Kubernetes reads it: times stay text, `on` and `yes` stay words' booleans of YAML 1.1."""


_YamlLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_text(path: Path) -> str:
    """A file's text, unpacked if it is compressed with gzip; or InputError."""
    try:
        contents = path.read_bytes()
        if contents.startswith(_GZIP):
            contents = gzip.decompress(contents)
        return contents.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(str(path), "not UTF-8 text") from None
    except (EOFError, zlib.error):
        raise InputError(str(path), "a broken gzip file") from None
    except OSError as error:
        raise InputError(str(path), error.strerror or str(error)) from None


def load_documents(text: str, where: str) -> list[Any]:
    """The YAML (or JSON) documents in a text; empty ones are left out."""
    try:
        return [document for document in yaml.load_all(text, Loader=_YamlLoader) if document is not None]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{where}: line {mark.line + 1}" if mark is not None else where
        raise InputError(place, f"not YAML: {getattr(error, 'problem', None) or 'cannot be read'}") from None


def load_json(path: Path) -> Any:
    """A JSON file's contents, or InputError."""
    try:
        return json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise InputError(f"{path}: line {error.lineno}", f"not JSON: {error.msg}") from None


def load_objects(path: Path) -> list[Object]:
    """All objects in a manifest file, lists unfolded; kinds that scheduling does not read are left out."""
    objects = []
    for manifest in _unfold(load_documents(read_text(path), str(path))):
        decoded = decode_object(manifest, str(path))
        if decoded is not None:
            objects.append(decoded)
    return objects


def _unfold(documents: list[Any]) -> Iterator[Any]:
    for document in documents:
        if isinstance(document, Mapping) and isinstance(document.get("items"), list):
            yield from document["items"]
        else:
            yield document
