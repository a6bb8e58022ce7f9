"""Files that nobody else may read: keys, tokens, kubeconfigs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def write_private(path: Path, content: bytes) -> None:
    """Put a file in place at once, readable by its owner only, never for a moment by others.

    Parent directories are made; a link stays a link and what it leads to is replaced. OSError says what went
    wrong.
    """
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    # mkstemp makes a new file with mode 0600 whatever the umask; renaming it keeps the mode.
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
    """What a private file holds; if it is not there or empty, it is made."""
    with suppress(FileNotFoundError):
        if content := path.read_bytes():
            return content
    content = make()
    write_private(path, content)
    return content
