"""`moorage replay`: compare our decisions with recorded ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from moorage.cli.version_options import VERSION_FLAG, VERSION_HELP, FeatureGateFlags


def replay(
    files: Annotated[
        list[Path],
        typer.Argument(help="Recordings (JSON); a directory stands for all in it.", show_default=False),
    ],
    plugin: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE.py",
            help="A Python file with plugins that the recorded scheduler had; may be repeated.",
        ),
    ] = None,
    emulated_version: Annotated[
        str | None,
        typer.Option(
            VERSION_FLAG,
            metavar="VERSION",
            help=f"{VERSION_HELP}. [default: that of the recorded scheduler]",
        ),
    ] = None,
    feature_gates: FeatureGateFlags = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
    show: Annotated[int, typer.Option(help="How many differences to show for each family.")] = 3,
) -> None:
    """Make the decisions of recordings again and compare feasible nodes, every score and every message."""
    from moorage.cli.replay import compare_recordings

    compare_recordings(
        files,
        plugin,
        emulated_version=emulated_version,
        feature_gates=feature_gates,
        as_json=as_json,
        show=show,
    )
