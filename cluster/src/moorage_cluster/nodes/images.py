"""The images on a node: pulled when needed, listed in its status, collected when its disk is full."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from moorage.api.manifests import Manifest

_MAX_LISTED_IMAGES: Final = 50
"""Maximum number of images in a node's status: the largest ones, as with the kubelet."""
_MIN_IMAGE_BYTES: Final = 5_000_000
_SPREAD: Final = 395_000_000
INODES_PER_IMAGE: Final = 2_000


@lru_cache(maxsize=4096)
def full_name(image: str) -> str:
    """An image's name with registry and tag, as container runtimes report it."""
    first, slash, _ = image.partition("/")
    if not slash:
        image = f"docker.io/library/{image}"
    elif "." not in first and ":" not in first and first != "localhost":
        image = f"docker.io/{image}"
    last = image.rpartition("/")[2]
    return image if ":" in last or "@" in last else f"{image}:latest"


@lru_cache(maxsize=4096)
def digest_name(image: str) -> str:
    """An image by its digest, which is simulated by the digest of its name."""
    name = full_name(image)
    if "@" in name:
        return name
    return f"{name.rpartition(':')[0]}@sha256:{hashlib.sha256(name.encode()).hexdigest()}"


@lru_cache(maxsize=4096)
def size_of(image: str) -> int:
    """The size of an image in bytes: simulated, but always the same."""
    return _MIN_IMAGE_BYTES + int.from_bytes(hashlib.sha256(full_name(image).encode()).digest()[:8]) % _SPREAD


@dataclass(slots=True)
class _Image:
    names: tuple[str, ...]
    size: int
    ready_at: float


class Images:
    """The images of one node, by their full names."""

    def __init__(self, listed: Iterable[Manifest] = ()) -> None:
        self._images: dict[str, _Image] = {}
        for known in listed:
            names = tuple(known.get("names") or ())
            if names:
                self._images[full_name(names[-1])] = _Image(names, known.get("sizeBytes", 0), 0.0)

    def need(self, image: str, now: float, pull_seconds: float) -> float:
        """When an image is present; if it is not, its pull begins now."""
        name = full_name(image)
        known = self._images.get(name)
        if known is None:
            names = (digest_name(name), name) if "@" not in name else (name,)
            known = self._images[name] = _Image(names, size_of(name), now + pull_seconds)
        return max(known.ready_at, now)

    def has(self, image: str) -> bool:
        """Whether an image is present or being pulled."""
        return full_name(image) in self._images

    @property
    def bytes_used(self) -> int:
        """The disk usage of all images, in bytes."""
        return sum(image.size for image in self._images.values())

    @property
    def inodes_used(self) -> int:
        """The number of inodes of all images."""
        return len(self._images) * INODES_PER_IMAGE

    def collect(self, in_use: Iterable[str]) -> int:
        """Remove all unused images; returns the number of freed bytes."""
        kept = {full_name(image) for image in in_use}
        gone = [name for name in self._images if name not in kept]
        return sum(self._images.pop(name).size for name in gone)

    def listed(self, now: float) -> list[Manifest]:
        """The images as a node's status lists them: the largest first."""
        there = [image for image in self._images.values() if image.ready_at <= now]
        there.sort(key=lambda image: image.size, reverse=True)
        return [{"names": list(image.names), "sizeBytes": image.size} for image in there[:_MAX_LISTED_IMAGES]]
