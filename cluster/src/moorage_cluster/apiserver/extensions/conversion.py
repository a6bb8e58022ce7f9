"""Objects of a custom kind as they are kept, and as each served version shows them.

They are kept in the storage version. What was written before the definition changed is read by the schema
that the definition has now: unknown fields are dropped, defaults filled in; its resourceVersion stays.
"""

from __future__ import annotations

from collections.abc import Mapping

from moorage.api.manifests import Manifest
from moorage_cluster.apiserver.extensions.structural import CustomSchema


class CustomConversion:
    """Between the kept form of a custom kind and one of its versions, as strategy `None` converts."""

    def __init__(self, schemas: Mapping[str, CustomSchema], api_version: str, storage: str) -> None:
        self._schemas = schemas
        """All versions of the definition by their apiVersion."""
        self._api_version = api_version
        self._storage = storage

    def from_storage(self, obj: Manifest) -> Manifest:
        """An object of this version; defaults are those of the version that the object is kept in."""
        kept = self._schemas.get(obj["apiVersion"])
        if kept is not None:
            obj = kept.decode(obj).obj
            kept.apply_defaults(obj)
        return self._converted(obj, self._api_version)

    def to_storage(self, obj: Manifest) -> Manifest:
        """The form that is kept, without what the storage version does not know."""
        if self._api_version == self._storage:
            return obj
        return {**self._converted(obj, self._storage), "metadata": obj["metadata"]}

    def _converted(self, obj: Manifest, api_version: str) -> Manifest:
        if obj["apiVersion"] == api_version:
            return obj
        return {**self._schemas[api_version].decode(obj).obj, "apiVersion": api_version}
