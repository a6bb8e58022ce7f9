"""The data directory: its files are made readable for their owner only, also existing ones."""

from __future__ import annotations

import logging
import os
import shlex
import stat
from pathlib import Path
from typing import Final

DATABASE: Final = "objects.db"

_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO

log = logging.getLogger(__name__)


def prepare(directory: Path) -> None:
    """Prepare a directory for secrets: its files private, no symbolic links among them.

    OSError if it belongs to another user or every user may write to it: they could put a database or keys of
    their own in place of ours. If others may only enter or read it, it is used, with a warning.
    """
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    _check(directory)
    with os.scandir(directory) as entries:
        for entry in entries:
            _make_private(entry)
    # SQLite gives its log the mode of the database, which must exist for that.
    os.close(os.open(directory / DATABASE, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600))


def _check(directory: Path) -> None:
    info = directory.stat()
    fix = f"chmod 700 {shlex.quote(str(directory))}"
    if info.st_uid != os.geteuid():
        raise PermissionError(f"the directory is owned by another user (uid {info.st_uid})")
    if info.st_mode & stat.S_IWOTH:
        raise PermissionError(f"every user may write to the directory; run: {fix}")
    if info.st_mode & _OTHERS:
        log.warning("other users may enter the data directory %s; run: %s", directory, fix)


def _make_private(entry: os.DirEntry[str]) -> None:
    if entry.is_symlink():
        raise PermissionError(f"{entry.name} is a symbolic link, which is not followed here")
    if entry.is_file() and entry.stat().st_mode & _OTHERS:
        os.chmod(entry.path, 0o600)
