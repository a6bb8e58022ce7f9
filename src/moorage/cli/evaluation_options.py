"""Options of commands that evaluate pods."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EvaluatedConfig = Annotated[
    Path | None,
    typer.Option(
        help="The KubeSchedulerConfiguration to evaluate with; without it, kube-scheduler's defaults."
    ),
]
