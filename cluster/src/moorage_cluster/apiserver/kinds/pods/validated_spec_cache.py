"""Specs that were found without fault: pods made from one template are judged once.

Specs are known by their encoded form. All that differs between the pods of a template is the name of the
volume with their token, which is made up for each; it is left out, as long as there is only one such name.
"""

from __future__ import annotations

import re
from typing import Final

from moorage.api.manifests import Manifest
from moorage_cluster.apiserver.store import encode

_TOKEN_VOLUME: Final = re.compile(rb'"kube-api-access-[a-z0-9]{5}"')
_DEPENDS_ON_THE_POD: Final = b'"ephemeral"'
"""Claims of ephemeral volumes are named after their pod."""
_MOST: Final = 1000
_LONGEST_BYTES: Final = 16_384


class SoundSpecs:
    """Remembers specs in which nothing is wrong."""

    def __init__(self) -> None:
        self._known: dict[bytes, list[str]] = {}

    def key(self, spec: Manifest) -> bytes:
        """By what a spec is known; empty: it is not remembered."""
        raw = encode(spec)
        if len(raw) > _LONGEST_BYTES:
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
        """The warnings about a sound spec; None: it is not known."""
        return self._known.get(key)

    def add(self, key: bytes, warnings: list[str]) -> None:
        """Remember a spec; the oldest is forgotten for it."""
        if key:
            self._known[key] = warnings
            if len(self._known) > _MOST:
                del self._known[next(iter(self._known))]
