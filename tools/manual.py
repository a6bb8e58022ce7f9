"""Write the manual pages of all commands: `python -m tools.manual build/man`.

A page has what `--help` prints; commands write both through the same formatter interface.
"""

from __future__ import annotations

import argparse
import os
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer

from moorage import __version__
from moorage.cli.main import app

PROGRAM = "moorage"
_WIDTH = 72
"""Maximum length of a line of text, in characters."""


def main() -> None:
    """Write the pages into a folder, in place of those that are there."""
    parser = argparse.ArgumentParser(description="Write the manual pages of all commands.")
    parser.add_argument("folder", type=Path, help="what becomes share/man")
    folder: Path = parser.parse_args().folder
    shutil.rmtree(folder, ignore_errors=True)
    section = folder / "man1"
    section.mkdir(parents=True)
    for name, text in pages().items():
        (section / f"{name}.1").write_text(text, encoding="utf-8")


def pages() -> dict[str, str]:
    """All pages by name: `moorage`, `moorage-plan`, `moorage-plan-fit`."""
    root = typer.main.get_command(app)
    return dict(_pages(root, typer.Context(root, info_name=PROGRAM)))


def _pages(command: Any, context: Any) -> Iterator[tuple[str, str]]:
    parts = {
        name: each.load() if hasattr(each, "load") else each
        for name, each in getattr(command, "commands", {}).items()
    }
    yield _name(context.command_path), _page(command, context, list(parts))
    for name, part in parts.items():
        yield from _pages(part, typer.Context(part, info_name=name, parent=context))


def _name(path: str) -> str:
    return path.replace(" ", "-")


def _page(command: Any, context: Any, parts: Sequence[str]) -> str:
    name = _name(context.command_path)
    text = Roff()
    text.lines.append(f'.TH "{name.upper()}" "1" "{_date()}" "moorage {__version__}" "moorage"')
    text.heading("NAME")
    summary = (command.help or "").partition("\n\n")[0].rstrip(".")
    text.lines += [f"{escaped(name)} \\-", *filled(summary)]
    command.format_help(context, text)
    above = [_name(context.parent.command_path)] if context.parent is not None else []
    see = [*above, *(f"{name}-{part}" for part in parts)]
    text.heading("SEE ALSO")
    text.lines.append(" ,\n".join(f".BR {escaped(each)} (1)" for each in see))
    return "\n".join(text.lines) + "\n"


class Roff:
    """What help is written to, as a manual page."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def heading(self, title: str) -> None:
        """Begin a section."""
        self.lines.append(f'.SH "{title}"')

    def write_usage(self, program: str, words: str = "", prefix: str | None = None) -> None:
        """Write how the command is called, and begin its description."""
        self.heading("SYNOPSIS")
        self.lines.append(f"\\fB{escaped(program)}\\fR {escaped(words)}")
        self.heading("DESCRIPTION")

    def write_paragraph(self) -> None:
        """Sections are paragraphs."""

    def write_text(self, text: str) -> None:
        """Write paragraphs, which are separated by empty lines."""
        for number, paragraph in enumerate(text.strip().split("\n\n")):
            if number:
                self.lines.append(".PP")
            self.lines += filled(paragraph)

    def write_dl(self, rows: Sequence[tuple[str, str]], **_: Any) -> None:
        """Write terms with what they mean."""
        for term, meaning in rows:
            self.lines += [".TP", f"\\fB{escaped(term)}\\fR", *filled(meaning)]

    @contextmanager
    def section(self, title: str) -> Iterator[None]:
        """Write a section."""
        self.heading(title.upper())
        yield

    @contextmanager
    def indentation(self) -> Iterator[None]:
        """A page is indented by whoever shows it."""
        yield


def _date() -> str:
    """The day of the source, if that is known."""
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    return f"{datetime.fromtimestamp(int(seconds), UTC):%Y-%m-%d}" if seconds else ""


def filled(text: str) -> list[str]:
    """A paragraph as lines of a page."""
    lines = textwrap.wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False)
    return [escaped(line) for line in lines]


def escaped(text: str) -> str:
    """Text that is printed as it is."""
    plain = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{plain}" if plain.startswith((".", "'")) else plain


if __name__ == "__main__":
    main()
