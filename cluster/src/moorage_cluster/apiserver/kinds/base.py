"""What many kinds share: a status that shows from the start, and metadata that its writers leave alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.api.manifests import Manifest, copy
from moorage_cluster.apiserver.strategy import Strategy

_KEPT_BY_STATUS = ("labels", "annotations", "finalizers", "ownerReferences", "managedFields", "generation")


class StatusStrategy(Strategy):
    """A kind whose status always shows, with its counters at zero before anybody has written it."""

    has_status = True
    empty_status: Mapping[str, Any] = {}
    """The fields of a status that are shown even when nobody has set them."""

    def default(self, obj: Manifest) -> None:
        """A spec and a status are always there."""
        obj.setdefault("spec", {})
        status = obj.setdefault("status", {})
        for key, value in self.empty_status.items():
            if key not in status:
                status[key] = copy(value)

    def prepare_create(self, obj: Manifest) -> None:
        """The status starts empty, whatever the client says."""
        super().prepare_create(obj)
        obj["status"] = copy(dict(self.empty_status))


def keep_metadata(obj: Manifest, old: Manifest) -> None:
    """Let a status update change nothing in the metadata, as some kinds want it."""
    metadata, before = obj["metadata"], old["metadata"]
    for key in _KEPT_BY_STATUS:
        if key in before:
            metadata[key] = before[key]
        else:
            metadata.pop(key, None)
