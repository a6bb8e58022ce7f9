"""Pod templates of workloads: equality and hashes."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, Final

import msgspec

from moorage.api.manifests import Manifest, copy

_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Without vowels, and without digits that look like letters: names cannot form words."""
_HASH_LENGTH: Final = 10


def content_hash(content: Any, collisions: int = 0) -> str:
    """A short, stable hash of some content; a count of collisions changes it."""
    raw = msgspec.json.encode(content, order="sorted")
    digest = blake2b(raw, digest_size=16, salt=collisions.to_bytes(8, "big")).digest()
    number = int.from_bytes(digest, "big")
    letters = []
    for _ in range(_HASH_LENGTH):
        number, letter = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[letter])
    return "".join(letters)


def without_label(template: Manifest, label: str) -> Manifest:
    """A template without one of its labels, and without empty fields."""
    plain: Manifest = _without_nothing(template)
    labels = dict((plain.get("metadata") or {}).get("labels") or {})
    labels.pop(label, None)
    return {**plain, "metadata": {**(plain.get("metadata") or {}), "labels": labels}}


def with_label(template: Manifest, label: str, value: str) -> Manifest:
    """A copy of a template with a label."""
    changed: Manifest = copy(template)
    meta = changed.setdefault("metadata", {})
    meta["labels"] = {**(meta.get("labels") or {}), label: value}
    return changed


def _without_nothing(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nothing(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nothing(item) for item in value]
    return value
