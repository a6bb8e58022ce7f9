"""Objects from files: YAML or JSON, plain or compressed, as kubectl writes and reads them."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from msgspec.structs import replace

from moorage.api.as_sent import kept
from moorage.api.base import Object
from moorage.api.decode import InputError, decode_object
from moorage.api.devices import DeviceClass, ResourceSlice
from moorage.api.node import Namespace, Node
from moorage.api.storage import CSIDriver, CSINode, PersistentVolume, StorageClass, VolumeAttachment

CLUSTER_WIDE = (
    Node,
    Namespace,
    PersistentVolume,
    StorageClass,
    CSINode,
    CSIDriver,
    VolumeAttachment,
    DeviceClass,
    ResourceSlice,
)
"""The kinds that are in no namespace."""

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_GZIP = b"\x1f\x8b"


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
    if text.lstrip()[:1] in ("{", "["):
        # Most YAML parsers read JSON, at a hundredth of the speed.
        try:
            return [_parsed_json(text, where)]
        except json.JSONDecodeError:
            pass
    try:
        return [document for document in yaml.load_all(text, Loader=_YamlLoader) if document is not None]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{where}: line {mark.line + 1}" if mark is not None else where
        raise InputError(place, f"not YAML: {getattr(error, 'problem', None) or 'cannot be read'}") from None


def _parsed_json(text: str, where: str) -> Any:
    """JSON without halves of characters in it, which escapes can say but nothing can write."""
    document = json.loads(text)
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


def load_objects(path: Path, *, keeps_whole: bool = False) -> list[Object]:
    """All objects in a manifest file, lists unfolded; kinds that scheduling does not read are left out.

    As with kubectl, what is in no namespace is in `default`; what only has a generateName gets a name.
    keeps_whole: whether pods and nodes keep all that the file says of them.
    """
    objects = []
    for number, (manifest, where) in enumerate(
        _unfold(load_documents(read_text(path), str(path)), str(path))
    ):
        decoded = decode_object(manifest, where)
        if decoded is not None:
            completed = _completed(decoded, number, where)
            objects.append(kept(completed, manifest) if keeps_whole else completed)
    return objects


def _completed(item: Object, number: int, where: str) -> Object:
    meta = item.metadata
    if not meta.name and not meta.generate_name:
        raise InputError(f"{where}: {type(item).__name__}", "metadata.name: missing")
    name = meta.name or f"{meta.generate_name}{number:05}"
    namespace = meta.namespace or ("" if isinstance(item, CLUSTER_WIDE) else "default")
    return replace(item, metadata=replace(meta, name=name, namespace=namespace))


def _unfold(documents: list[Any], where: str) -> Iterator[tuple[Any, str]]:
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
    """An item of a list; the API server leaves out what the list's own kind says of all its items."""
    if isinstance(item, Mapping) and "kind" not in item and kind != "List":
        return {"apiVersion": document.get("apiVersion"), "kind": kind.removesuffix("List"), **item}
    return item
