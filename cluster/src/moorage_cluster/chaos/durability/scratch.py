"""Directories for databases that are thrown away; in memory where possible, since nothing is to survive."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_MEMORY: Final = Path("/dev/shm")


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """A directory that is removed in the end."""
    in_memory = _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK)
    with tempfile.TemporaryDirectory(prefix="moorage-chaos-", dir=_MEMORY if in_memory else None) as name:
        yield Path(name).resolve()
