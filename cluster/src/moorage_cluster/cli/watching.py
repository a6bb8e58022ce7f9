"""Files that somebody edits: noticing when they were saved."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Final

from moorage.client.waiting import sleep
from moorage.clock import Clock

_POLL_SECONDS: Final = 0.3

_Times = dict[Path, tuple[int, int, int] | None]
"""When each file was changed, its size and its number; None where there is no file."""

Files = Callable[[], Iterable[Path]]
"""The files to follow; they may become others."""


class Saved:
    """Notices that files were saved: when they look different, and do so twice in a row.

    Editors write a file in several steps, or put another one in its place: until two looks agree, nobody
    knows whether it is whole.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self._known = self._last = self._modification_times()

    def has_changed(self) -> bool:
        """Whether files were saved since they were last known to be."""
        now, before = self._modification_times(), self._last
        self._last = now
        known = {path: self._known.get(path, time) for path, time in now.items()}
        is_saved = now == before and now != known
        self._known = now if is_saved else known
        return is_saved

    def _modification_times(self) -> _Times:
        return {path: _modification_time(path) for path in self._files()}


def _modification_time(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


async def watch(files: Files, clock: Clock, saved: Callable[[], Awaitable[None]]) -> None:
    """Call back whenever files were saved, until cancelled."""
    saved_files = Saved(files)
    while True:
        await sleep(clock, _POLL_SECONDS)
        if saved_files.has_changed():
            await saved()
