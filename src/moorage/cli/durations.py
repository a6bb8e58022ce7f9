"""Durations as options of commands, in Go's notation."""

from __future__ import annotations

import typer

from moorage.config.duration import Duration, parse_duration


def duration(text: str | Duration) -> Duration:
    """The parser of an option: `1h30m`."""
    if isinstance(text, Duration):
        return text
    try:
        return parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
