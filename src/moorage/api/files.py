"""Objects from files: YAML or JSON, plain or compressed, as kubectl writes and reads them."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml

from moorage.api.decode import InputError, is_declared_cluster_wide, kind_of
from moorage.api.devices import DeviceClass, DeviceTaintRule, ResourceSlice
from moorage.api.node import Namespace, Node
from moorage.api.storage import CSIDriver, CSINode, PersistentVolume, StorageClass, VolumeAttachment
from moorage.api.yaml_reading import YamlError, compose_all_yaml, load_all_yaml

CLUSTER_WIDE = (
    Node,
    Namespace,
    PersistentVolume,
    StorageClass,
    CSINode,
    CSIDriver,
    VolumeAttachment,
    DeviceClass,
    DeviceTaintRule,
    ResourceSlice,
)
"""The kinds that are in no namespace."""

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_GZIP = b"\x1f\x8b"

ReadT = TypeVar("ReadT")


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


def load_documents(text: str, where: str, load_all: Callable[[str], list[Any]] = load_all_yaml) -> list[Any]:
    """The YAML (or JSON) documents in a text; empty ones are left out."""
    if text.lstrip()[:1] in ("{", "["):
        # Most YAML parsers read JSON, at a hundredth of the speed.
        try:
            return [_parsed_json(text, where)]
        except json.JSONDecodeError:
            pass
    return [document for document in _read_yaml(load_all, text, where) if document is not None]


def compose_documents(text: str, where: str) -> list[yaml.Node]:
    """The YAML (or JSON) documents in a text as trees of nodes."""
    return _read_yaml(compose_all_yaml, text, where)


def _read_yaml(read: Callable[[str], list[ReadT]], text: str, where: str) -> list[ReadT]:
    try:
        return read(text)
    except YamlError as error:
        place = where if error.line is None else f"{where}: line {error.line}"
        raise InputError(place, f"not YAML: {error.reason}") from None


def _parsed_json(text: str, where: str) -> Any:
    """JSON without lone surrogates, which escapes can contain but UTF-8 cannot encode."""
    try:
        document = json.loads(text)
    except RecursionError:
        raise InputError(where, "nested too deeply") from None
    if _SURROGATE.search(text):
        try:
            json.dumps(document, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise InputError(where, "contains text that is not valid Unicode") from None
    return document


def load_json(path: Path) -> Any:
    """A JSON file's contents, or InputError."""
    try:
        return _parsed_json(read_text(path), str(path))
    except json.JSONDecodeError as error:
        raise InputError(f"{path}: line {error.lineno}", f"not JSON: {error.msg}") from None


Located = tuple[Any, str]
"""A manifest, and where it is, for errors."""


def load_manifests(path: Path) -> list[Located]:
    """All manifests in a file, lists unfolded."""
    return unfolded(load_documents(read_text(path), str(path)), str(path))


def unfolded(documents: Iterable[Any], where: str) -> list[Located]:
    """Manifests of which some are lists: their items take their place."""
    return list(_unfold(documents, where))


def completed(manifest: Any, number: int, where: str) -> Any:
    """A manifest as kubectl sends it: namespaced objects without a namespace are in `default`.

    Objects with only a generateName get a name with this number. Kinds that scheduling does not read, and
    values that cannot be objects, are left unchanged.
    """
    kind = kind_of(manifest)
    meta = manifest.get("metadata") or {} if kind is not None else None
    if kind is None or not isinstance(meta, Mapping):
        return manifest
    if not meta.get("name") and not meta.get("generateName"):
        raise InputError(f"{where}: {kind.__name__}" if where else kind.__name__, "metadata.name: missing")
    name = meta.get("name") or f"{meta['generateName']}{number:05}"
    is_cluster_wide = issubclass(kind, CLUSTER_WIDE) or is_declared_cluster_wide(kind)
    place = {} if is_cluster_wide else {"namespace": meta.get("namespace") or "default"}
    return {**manifest, "metadata": {**meta, "name": name, **place}}


def _unfold(documents: Iterable[Any], where: str) -> Iterator[Located]:
    for document in documents:
        items = document.get("items") if isinstance(document, Mapping) else None
        kind = str(document.get("kind", "")) if isinstance(document, Mapping) else ""
        if not kind.endswith("List"):
            yield document, where
        elif not isinstance(items, list):
            raise InputError(f"{where}: {kind}", "items: expected a list")
        else:
            for index, item in enumerate(items):
                yield _of_list(item, document, kind), f"{where}: items[{index}]"


def _of_list(item: Any, document: Mapping[str, Any], kind: str) -> Any:
    """An item of a list; the API server leaves out the items' type, which the list's own kind determines."""
    if isinstance(item, Mapping) and "kind" not in item and kind != "List":
        return {"apiVersion": document.get("apiVersion"), "kind": kind.removesuffix("List"), **item}
    return item
