"""Files that only their owner may read: keys, tokens, kubeconfigs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def write_private(path: Path, content: bytes) -> None:
    """Write a file atomically, readable by its owner only at all times.

    Parent directories are created; a symbolic link is kept and its target replaced. Raises OSError.
    """
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    # mkstemp makes a new file with mode 0600 regardless of the umask; renaming it keeps the mode.
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def load_or_make_private(path: Path, make: Callable[[], bytes]) -> bytes:
    """The content of a private file, which is created if it is missing or empty."""
    with suppress(FileNotFoundError):
        if content := path.read_bytes():
            return content
    content = make()
    write_private(path, content)
    return content
