"""A data directory that can become full: for root a small file system, for others a limit of file sizes."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from moorage_cluster.chaos.real_processes.process import SupervisedProcess

_FILE_SYSTEM: Final = "64m"
"""Size of the file system: SQLite's log alone may take 16 MiB."""
_FILLER: Final = "filler"
_BLOCK_BYTES: Final = 4096


class Disk:
    """The data directory of a server."""

    def __init__(self, directory: Path, *, is_mounted: bool) -> None:
        self.directory = directory
        self.is_mounted = is_mounted
        """Whether it is a file system of its own."""
        self.has_been_full = False
        """Whether it has taken no more bytes: then a server may be unable to start."""

    def fill(self, server: SupervisedProcess) -> None:
        """Let no file grow from now on."""
        self.has_been_full = True
        if not self.is_mounted:
            sizes = [each.stat().st_size for each in self.directory.iterdir()]
            server.limit(resource.RLIMIT_FSIZE, max(sizes, default=0))
            return
        block = bytes(_BLOCK_BYTES)
        with (self.directory / _FILLER).open("ab", buffering=0) as filler:
            try:
                while filler.write(block):
                    pass
            except OSError:
                return  # No space is left.

    def empty(self, server: SupervisedProcess) -> None:
        """Let files grow again."""
        if self.is_mounted:
            (self.directory / _FILLER).unlink(missing_ok=True)
        else:
            server.limit(resource.RLIMIT_FSIZE, resource.RLIM_INFINITY)


@contextmanager
def data_disk(directory: Path) -> Iterator[Disk]:
    """A disk for a server's data; for root it is a file system in memory."""
    directory.mkdir(mode=0o700)
    is_mounted = os.geteuid() == 0 and _mount(directory)
    try:
        yield Disk(directory, is_mounted=is_mounted)
    finally:
        if is_mounted:
            subprocess.run(["umount", "--lazy", directory], check=False, capture_output=True)


def _mount(directory: Path) -> bool:
    """Whether a file system could be mounted; containers mostly may not."""
    words = ["mount", "-t", "tmpfs", "-o", f"size={_FILE_SYSTEM},mode=700", "tmpfs", str(directory)]
    try:
        return subprocess.run(words, check=False, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False
