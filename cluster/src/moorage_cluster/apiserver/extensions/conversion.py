"""Conversion of custom objects between the storage version and the served versions.

They are stored in the storage version. Objects written before the definition changed are read with its
current schema: unknown fields are dropped, defaults filled in; its resourceVersion stays.
"""

from __future__ import annotations

from collections.abc import Mapping

from moorage.api.manifests import Manifest
from moorage_cluster.apiserver.extensions.structural import CustomSchema


class CustomConversion:
    """Conversion between the stored form of a custom kind and one of its versions, with strategy `None`."""

    def __init__(self, schemas: Mapping[str, CustomSchema], api_version: str, storage: str) -> None:
        self._schemas = schemas
        """All versions of the definition by their apiVersion."""
        self._api_version = api_version
        self._storage = storage

    def from_storage(self, obj: Manifest) -> Manifest:
        """An object of this version; defaults are those of the version that the object is stored in."""
        kept = self._schemas.get(obj["apiVersion"])
        if kept is not None:
            obj = kept.decode(obj).obj
            kept.apply_defaults(obj)
        return self._converted(obj, self._api_version)

    def to_storage(self, obj: Manifest) -> Manifest:
        """The stored form, without fields that are unknown to the storage version."""
        if self._api_version == self._storage:
            return obj
        return {**self._converted(obj, self._storage), "metadata": obj["metadata"]}

    def _converted(self, obj: Manifest, api_version: str) -> Manifest:
        if obj["apiVersion"] == api_version:
            return obj
        return {**self._schemas[api_version].decode(obj).obj, "apiVersion": api_version}
