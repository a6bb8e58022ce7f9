"""The Warning header: warnings in addition to the answer, kept short and free of control characters."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_MAX_CHARACTERS: Final = 4096
"""Maximum characters of all warnings; beyond it each one is shortened, and the rest is dropped."""
_MAX_CHARACTERS_EACH: Final = 256
_UNSENDABLE: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters, and halves of surrogate pairs."""


def warning_header(texts: Iterable[str]) -> str:
    """Warnings as a header's value, without duplicates; those that no header can contain are left out."""
    said = [text for text in dict.fromkeys(texts) if text and not _UNSENDABLE.search(text)]
    if sum(map(len, said)) > _MAX_CHARACTERS:
        said = _cut(said)
    return ", ".join(map(_quoted_warning, said))


def _cut(texts: list[str]) -> list[str]:
    kept, length = [], 0
    for text in texts:
        if length >= _MAX_CHARACTERS:
            break
        kept.append(text[:_MAX_CHARACTERS_EACH])
        length += len(kept[-1])
    return kept


def _quoted_warning(text: str) -> str:
    clean = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{clean}"'
