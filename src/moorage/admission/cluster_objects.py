"""The objects of a cluster that the admission of pods reads, from manifests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from moorage.admission.plugin import NAMESPACES, NODES
from moorage.admission.plugins.limit_ranger import LIMIT_RANGES
from moorage.admission.plugins.priority import PRIORITY_CLASSES
from moorage.admission.plugins.runtime_class import RUNTIME_CLASSES
from moorage.admission.policy_defaults import default_limit_range, default_priority_class
from moorage.admission.system_objects import system_namespaces, system_priority_classes
from moorage.api.manifests import Manifest
from moorage.apimachinery.errors import bad_request
from moorage.apimachinery.schema.builtin import known_schema
from moorage.apimachinery.schema.decoding import decode_kind

_READ: Final = {
    "Namespace": ("v1", NAMESPACES),
    "Node": ("v1", NODES),
    "LimitRange": ("v1", LIMIT_RANGES),
    "PriorityClass": ("scheduling.k8s.io/v1", PRIORITY_CLASSES),
    "RuntimeClass": ("node.k8s.io/v1", RUNTIME_CLASSES),
}
"""The kinds that are read, with their API version and their collection."""
_NAMESPACED: Final = frozenset((LIMIT_RANGES,))
_DEFAULTS: Final[dict[str, Callable[[Manifest], None]]] = {
    LIMIT_RANGES: default_limit_range,
    PRIORITY_CLASSES: default_priority_class,
}


class ClusterObjects:
    """Objects by collection, decoded and with defaults; those that every cluster has are there already."""

    def __init__(self) -> None:
        self._collections: dict[str, dict[tuple[str, str], Manifest]] = {}
        for manifest in (*system_namespaces(), *system_priority_classes()):
            self.add(manifest)

    def add(self, manifest: Any) -> None:
        """Add an object, if admission reads its kind; ApiError if it is invalid."""
        kind = manifest.get("kind") if isinstance(manifest, dict) else None
        if not isinstance(kind, str) or kind not in _READ:
            return
        api_version, collection = _READ[kind]
        if manifest.get("apiVersion") not in (None, api_version):
            return
        obj = decode_kind(json_copy(manifest), api_version, kind, known_schema(api_version, kind)).obj
        name = obj["metadata"].get("name")
        if not name:
            raise bad_request(f"{kind}: metadata.name: missing")
        if set_defaults := _DEFAULTS.get(collection):
            set_defaults(obj)
        namespace = obj["metadata"].get("namespace", "default") if collection in _NAMESPACED else ""
        self._collections.setdefault(collection, {})[namespace, name] = obj

    def find(self, storage: str, namespace: str, name: str) -> Manifest | None:
        """One object of a collection, not to be changed."""
        return self._collections.get(storage, {}).get((namespace, name))

    def all(self, storage: str, namespace: str | None = None) -> Iterable[Manifest]:
        """All objects of a collection, in one namespace or in all; not to be changed."""
        found = self._collections.get(storage, {})
        return [obj for (place, _), obj in found.items() if namespace in (None, place)]


def json_copy(manifest: Any) -> Any:
    """A copy as decoded from JSON; ApiError (400) if it cannot be written as JSON."""
    try:
        return msgspec.json.decode(msgspec.json.encode(manifest))
    except (RecursionError, TypeError, ValueError) as error:
        raise bad_request(f"the object cannot be written as JSON: {error}") from None
