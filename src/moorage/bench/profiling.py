"""A flame graph of the measured part of a run, recorded by pyinstrument."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from moorage.api.decode import InputError

if TYPE_CHECKING:
    from pyinstrument.renderers import Renderer

_INTERVAL_SECONDS = 0.001


class CpuProfile:
    """Samples this process every millisecond while enabled."""

    def __init__(self, file: Path) -> None:
        try:
            from pyinstrument import Profiler
        except ImportError:
            raise InputError(
                "--profile", "pyinstrument is not installed; get it with: pip install 'moorage[profile]'"
            ) from None
        self._file = file
        self._renderer = _renderer(file)
        self._profiler = Profiler(interval=_INTERVAL_SECONDS, async_mode="disabled")
        self._has_seen = False

    def sample(self, begins: bool) -> None:
        """Start or stop sampling."""
        if begins:
            self._has_seen = True
            self._profiler.start()
        elif self._profiler.is_running:
            self._profiler.stop()

    def write(self) -> bool:
        """Write the flame graph; returns whether there were any samples."""
        self.sample(False)
        if self._has_seen:
            try:
                self._file.write_text(self._profiler.output(self._renderer), encoding="utf-8")
            except OSError as error:
                raise InputError(str(self._file), f"cannot be written: {error.strerror}") from None
        return self._has_seen


def _renderer(file: Path) -> Renderer:
    from pyinstrument.renderers import ConsoleRenderer, HTMLRenderer, SpeedscopeRenderer

    match file.suffix:
        case ".html":
            return HTMLRenderer()
        case ".json":
            return SpeedscopeRenderer(show_all=True)
        case ".txt":
            return ConsoleRenderer(show_all=True)
    raise InputError("--profile", f"{file}: the name ends in .html, .json (speedscope) or .txt")
