"""More options of the cluster that a scenario begins with: a live one, and controllers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

_CLUSTER: Final = "Cluster"

Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        help="Begin with a live cluster, which is only read: this is the kubeconfig to use.",
        rich_help_panel=_CLUSTER,
    ),
]

Context = Annotated[
    str,
    typer.Option(
        help="Begin with the live cluster of this context, of --kubeconfig or of what kubectl uses.",
        rich_help_panel=_CLUSTER,
    ),
]

Controllers = Annotated[
    bool,
    typer.Option(
        "--controllers",
        help="Run the controllers of Deployments, Jobs and so on for the objects of --from, too. They run "
        "anyway if the workload has such objects.",
        rich_help_panel=_CLUSTER,
    ),
]
