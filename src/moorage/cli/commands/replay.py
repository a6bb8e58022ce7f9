"""`moorage replay`: compare our decisions with recorded ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def replay(
    files: Annotated[list[Path], typer.Argument(help="Recordings (JSON).", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
    show: Annotated[int, typer.Option(help="How many differences to show for each family.")] = 3,
) -> None:
    """Make the decisions of recordings again and compare feasible nodes, every score and every message."""
    from moorage.cli.replay import compare_recordings

    compare_recordings(files, as_json=as_json, show=show)
