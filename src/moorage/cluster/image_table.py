"""Which images are on which nodes."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from moorage.api.node import ContainerImage


@dataclass(slots=True)
class Image:
    """An image: its size as the first node reported it, and the rows of the nodes that have it."""

    size_bytes: int
    rows: set[int] = field(default_factory=set)
    _mask: NDArray[np.bool_] | None = None

    def mask(self, rows: int) -> NDArray[np.bool_]:
        """Which of the first `rows` nodes have the image. Shape (rows,)."""
        if self._mask is None or len(self._mask) != rows:
            self._mask = np.zeros(rows, bool)
            self._mask[list(self.rows)] = True
            self._mask.flags.writeable = False
        return self._mask

    def set(self, row: int, present: bool) -> None:
        """Set whether a node has the image."""
        (self.rows.add if present else self.rows.discard)(row)
        self._mask = None


class ImageTable:
    """Images by name; an image that no node has any more is removed."""

    def __init__(self) -> None:
        self.version = 0
        """Incremented whenever the images of a node change."""
        self._images: dict[str, Image] = {}

    def get(self, name: str) -> Image | None:
        """An image that some node has, or None."""
        return self._images.get(name)

    def on(self, row: int) -> set[str]:
        """The names of all images on a node."""
        return {name for name, image in self._images.items() if row in image.rows}

    def change(self, row: int, old: tuple[ContainerImage, ...], new: tuple[ContainerImage, ...]) -> None:
        """The images of a node changed."""
        if old == new:
            return
        self.version += 1
        for image in old:
            for name in image.names:
                self._clear(name, row)
        for image in new:
            for name in image.names:
                self._images.setdefault(name, Image(image.size_bytes)).set(row, True)

    def move(self, old_row: int, new_row: int, images: tuple[ContainerImage, ...]) -> None:
        """A node moved to another row."""
        for image in images:
            for name in image.names:
                known = self._images[name]
                known.set(new_row, True)
                known.set(old_row, False)

    def _clear(self, name: str, row: int) -> None:
        image = self._images.get(name)
        if image is not None:
            image.set(row, False)
            if not image.rows:
                del self._images[name]
