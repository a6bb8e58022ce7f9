"""A cache of valid specs: pods created from one template are validated once.

The key is the encoded spec. Pods of one template differ only in the name of the volume with their token,
which is generated for each; it is left out of the key if there is only one such name.
"""

from __future__ import annotations

import re
from typing import Final

from moorage.api.manifests import Manifest
from moorage_cluster.apiserver.store import encode

_TOKEN_VOLUME: Final = re.compile(rb'"kube-api-access-[a-z0-9]{5}"')
_DEPENDS_ON_THE_POD: Final = b'"ephemeral"'
"""Specs with ephemeral volumes are not cached: their claims are named after the pod."""
_MAX_ENTRIES: Final = 1000
_MAX_BYTES: Final = 16_384


class ValidatedSpecCache:
    """A cache of valid specs."""

    def __init__(self) -> None:
        self._known: dict[bytes, list[str]] = {}

    def key(self, spec: Manifest) -> bytes:
        """The cache key of a spec; empty if it is not cached."""
        raw = encode(spec)
        if len(raw) > _MAX_BYTES:
            return b""
        if not spec.get("volumes"):
            return raw
        if _DEPENDS_ON_THE_POD in raw:
            return b""
        names = set(_TOKEN_VOLUME.findall(raw))
        if not names:
            return raw
        return raw.replace(names.pop(), b'"*"') if len(names) == 1 else b""

    def warnings(self, key: bytes) -> list[str] | None:
        """The warnings about a valid spec; None if it is not in the cache."""
        return self._known.get(key)

    def add(self, key: bytes, warnings: list[str]) -> None:
        """Add a spec; evicts the oldest when the cache is full."""
        if key:
            self._known[key] = warnings
            if len(self._known) > _MAX_ENTRIES:
                del self._known[next(iter(self._known))]
