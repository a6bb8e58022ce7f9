"""Files that commands write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from moorage.api.decode import InputError


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """A file to write instead, which takes the place of `path` when it is complete.

    InputError if that is not possible, at once if nothing can be written there.
    """
    part = path.with_name(f"{path.name}.part")
    try:
        part.touch()
        yield part
        part.replace(path)
    except OSError as error:
        raise InputError(str(path), f"cannot be written: {error.strerror or error}") from None
    finally:
        part.unlink(missing_ok=True)


def write_file(path: Path, text: str) -> None:
    """Write a file, which appears when it is complete; InputError if that is not possible."""
    with replaced(path) as part:
        part.write_text(text, encoding="utf-8")
