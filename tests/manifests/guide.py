"""The guide, taken apart: files to write, commands to run, and what they print."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

GUIDE = Path(__file__).parent.parent.parent / "docs/how-to/deploying.md"
_BLOCK = re.compile(r"```(?P<kind>\w+)\n(?P<body>.*?)```\n?", re.DOTALL)
_FILE = re.compile(r"`(?P<name>[\w.-]+\.(yaml|py))`[^`]*$")


@dataclass(frozen=True)
class File:
    """A file that the reader writes."""

    name: str
    text: str


@dataclass(frozen=True)
class Command:
    """A command that the reader runs; `prints` is what the guide shows of its output, with … for anything."""

    text: str
    prints: str = ""


Step = File | Command


def steps(chapter: str) -> list[Step]:
    """What the reader of a chapter (`## …`) does, in order."""
    chapters = re.split(r"^(?=## )", GUIDE.read_text(), flags=re.MULTILINE)
    (found,) = (each for each in chapters if each.startswith(f"## {chapter}\n"))
    return list(_steps(found))


def _steps(text: str) -> Iterator[Step]:
    waiting: Command | None = None
    end = 0
    for block in _BLOCK.finditer(text):
        before, end = text[end : block.start()], block.end()
        kind, body = block["kind"], block["body"]
        if kind == "text":
            assert waiting is not None, body
            yield Command(waiting.text, body)
            waiting = None
            continue
        if waiting is not None:
            yield waiting
            waiting = None
        if kind in ("yaml", "python"):
            named = _FILE.search(before)
            assert named is not None, f"which file is this?\n{body}"
            yield File(named["name"], body)
        elif kind == "console":
            *commands, last = (Command(line.removeprefix("$ ")) for line in body.splitlines())
            yield from commands
            waiting = last
    if waiting is not None:
        yield waiting


def is_shown(expected: str, actual: str) -> bool:
    """Whether an output has all lines that the guide shows, however wide its columns are."""
    shown = [re.escape(" ".join(line.split())).replace("…", ".*") for line in expected.splitlines()]
    lines = [" ".join(line.split()) for line in actual.splitlines()]
    return all(any(re.fullmatch(pattern, line) for line in lines) for pattern in shown)
