"""Files that commands write."""

from __future__ import annotations

from pathlib import Path

from moorage.api.decode import InputError


def write_file(path: Path, text: str) -> None:
    """Write a file, which appears when it is complete; InputError if that is not possible."""
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise InputError(str(path), f"cannot be written: {error.strerror}") from None
