"""Options of commands with an API server of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from moorage.cli.durations import duration
from moorage.config.duration import Duration, parse_duration
from moorage_cluster.apiserver.auth.modes import Authorization

DEFAULT_EVENT_TTL: Final = parse_duration("1h")
DEFAULT_PORT: Final = 6443
DEFAULT_KUBECONFIG: Final = Path("moorage.kubeconfig")

EventTtl = Annotated[
    Duration,
    typer.Option(
        parser=duration,
        metavar="DURATION",
        help="Keep events this long after they were last written; 0: always.",
    ),
]
DataDirectory = Annotated[
    Path | None, typer.Option(help="Keep everything in this directory; without it, in memory only.")
]
KubeconfigFile = Annotated[
    Path, typer.Option(help="Where to write the kubeconfig, with the token that lets you in.")
]
MaxReadsInFlight = Annotated[
    int,
    typer.Option(
        "--max-requests-inflight",
        help="The most requests that read in flight; others are refused with 429. Watches are exempt. 0: no "
        "limit.",
        min=0,
    ),
]
MaxWritesInFlight = Annotated[
    int,
    typer.Option(
        "--max-mutating-requests-inflight",
        help="The most requests that write in flight; others are refused with 429. 0: no limit.",
        min=0,
    ),
]
AuthorizationMode = Annotated[
    Authorization,
    typer.Option(help="RBAC: Roles and their bindings decide; AlwaysAllow: who has a token may do all."),
]
