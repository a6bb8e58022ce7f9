"""Markdown from plain text: docstrings and help are written for people, not for Markdown."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence
from typing import Final

_CODE: Final = re.compile(r"(`[^`]+`)")
_SPECIAL: Final = re.compile(r"([\\`*_<>\[\]{}|#$])")
_AT_LINE_START: Final = re.compile(r"^([-+%=~]|\d+(?=[.)]))")
_ENTRY: Final = re.compile(r"^(?P<names>[a-z_]\w*(?:, [a-z_]\w*)*): (?P<text>.*)$", re.DOTALL)
_INDENT: Final = "    "


def escaped(text: str) -> str:
    """Text on one line, of which only `code` has a meaning in Markdown."""
    parts = _CODE.split(" ".join(text.split()))
    plain = "".join(part if index % 2 else _SPECIAL.sub(r"\\\1", part) for index, part in enumerate(parts))
    return _AT_LINE_START.sub(r"\\\1", plain)


def code(text: str) -> str:
    """Text as code within a line; empty for no text."""
    fence = "``" if "`" in text else "`"
    space = " " if "`" in text else ""
    return f"{fence}{space}{' '.join(text.split())}{space}{fence}" if text else ""


def block(text: str, language: str = "python") -> str:
    """Lines of code."""
    return f"```{language}\n{text.rstrip()}\n```"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; cells are Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, row))} |" for row in lines)


def _cell(text: str) -> str:
    """A cell: a bar that is not escaped, as in code, would end it."""
    return re.sub(r"(?<!\\)\|", r"\|", text)


def docstring(text: str | None) -> str:
    """A docstring as Markdown: paragraphs, indented code, and lists of `name: meaning`."""
    return "\n\n".join(map(_paragraph, _blocks(text)))


def entries(text: str | None) -> dict[str, str]:
    """What a docstring says of single names, in its lists of `name: meaning`."""
    found = [_ENTRY.match(entry) for block in _blocks(text) for entry in _entries(block)]
    return {
        name: " ".join(entry["text"].split())
        for entry in found
        if entry is not None
        for name in entry["names"].split(", ")
    }


def without_entries(text: str | None) -> str:
    """A docstring as Markdown, without its lists of `name: meaning`."""
    return "\n\n".join(_paragraph(block) for block in _blocks(text) if not _is_list(block))


def _blocks(text: str | None) -> list[list[str]]:
    """The lines of a docstring, divided where one is empty."""
    found = re.split(r"\n\s*\n", inspect.cleandoc(text or ""))
    return [each.splitlines() for each in found if each.strip()]


def _is_list(lines: list[str]) -> bool:
    return all(_ENTRY.match(each) for each in _entries(lines))


def _paragraph(lines: list[str]) -> str:
    if all(line.startswith(_INDENT) for line in lines):
        return block(inspect.cleandoc("\n".join(lines)))
    if _is_list(lines):
        return "\n".join(map(_item, _entries(lines)))
    return escaped(" ".join(lines))


def _entries(lines: list[str]) -> list[str]:
    """Lines joined with those that go on after them: each entry begins with a name and a colon."""
    found: list[str] = []
    for line in lines:
        if not found or _ENTRY.match(line):
            found.append(line)
        else:
            found[-1] += f" {line.strip()}"
    return found


def _item(entry: str) -> str:
    found = _ENTRY.match(entry)
    assert found is not None
    names = ", ".join(code(name) for name in found["names"].split(", "))
    return f"- {names}: {escaped(found['text'])}"
