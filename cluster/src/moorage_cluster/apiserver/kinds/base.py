"""Common behaviour of many kinds: a status from the start, and metadata that status updates do not change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.api.manifests import Manifest, copy
from moorage_cluster.apiserver.strategy import Strategy

_KEPT_BY_STATUS = ("labels", "annotations", "finalizers", "ownerReferences", "managedFields", "generation")


class StatusStrategy(Strategy):
    """A kind that always has a status, with its counters at zero before the first status update."""

    has_status = True
    empty_status: Mapping[str, Any] = {}
    """The fields of a status that are present even when they were never set."""

    def default(self, obj: Manifest) -> None:
        """Add an empty spec and status if they are missing."""
        obj.setdefault("spec", {})
        status = obj.setdefault("status", {})
        for key, value in self.empty_status.items():
            if key not in status:
                status[key] = copy(value)

    def prepare_create(self, obj: Manifest) -> None:
        """Clear the status, regardless of what the client sends."""
        super().prepare_create(obj)
        obj["status"] = copy(dict(self.empty_status))


def keep_metadata(obj: Manifest, old: Manifest) -> None:
    """Keep a status update from changing the metadata, for the kinds that require it."""
    metadata, before = obj["metadata"], old["metadata"]
    for key in _KEPT_BY_STATUS:
        if key in before:
            metadata[key] = before[key]
        else:
            metadata.pop(key, None)
