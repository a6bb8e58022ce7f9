"""One recording of seeded writes: what was done to the files, and what must be there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from moorage_cluster.chaos.durability.file_operations import Image, Operation, images
from moorage_cluster.chaos.durability.recording_vfs import RecordingVfs
from moorage_cluster.chaos.durability.scratch import scratch_directory
from moorage_cluster.chaos.durability.writes import Found, Recorded, Write, found_in, recorded


class Recording:
    """Writes, done once; is_synced: with a journal whose writes survive power failures."""

    def __init__(self, writes: Iterable[Write], *, is_synced: bool = False) -> None:
        self.is_synced = is_synced
        with scratch_directory() as directory, RecordingVfs(directory) as vfs:
            self.recorded: Recorded = recorded(
                directory, writes, lambda: len(vfs.operations), is_synced=is_synced
            )
            self.operations: list[Operation] = vfs.operations

    def images(self, begin: int, end: int, step: int = 1) -> Iterator[tuple[int, Image]]:
        """The files after some numbers of operations; each image is valid until the next."""
        for number, image in enumerate(images(self.operations[: end - 1])):
            if number >= begin and (number - begin) % step == 0:
                yield number, image

    def problem(self, found: Found, lowest: int, highest: int) -> str:
        """What is wrong with what was found, if its revision must be between two."""
        if found.problem:
            return found.problem
        if found.refusal:
            return f"it is refused: {found.refusal}"
        if not lowest <= found.revision <= highest:
            return f"revision {found.revision} is not between {lowest} and {highest}"
        return ""

    def look(self, image: Image, directory: Path) -> Found:
        """What is found in files."""
        image.write(directory)
        return found_in(directory, self.recorded.expected)
