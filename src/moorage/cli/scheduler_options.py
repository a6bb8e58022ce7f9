"""Options of commands that ask a running scheduler."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from moorage.services.ports import SECURE_PORT

DEFAULT_SCHEDULER_ADDRESS: Final = f"https://127.0.0.1:{SECURE_PORT}"

SCHEDULER_SECTION: Final = "Scheduler"
"""Section of the help for options that say how a scheduler is reached."""

Scheduler = Annotated[
    str,
    typer.Option(
        "--scheduler",
        metavar="URL",
        help="The scheduler's secure port.",
        rich_help_panel=SCHEDULER_SECTION,
    ),
]
Kubeconfig = Annotated[
    Path | None,
    typer.Option(help="Whose credentials to use, as kubectl does; they must be allowed to get the path."),
]
CertificateAuthority = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="The CA of the scheduler's certificate; else the system's CAs.",
        rich_help_panel=SCHEDULER_SECTION,
    ),
]
SkipVerification = Annotated[
    bool,
    typer.Option(
        "--insecure-skip-tls-verify",
        help="Accept any certificate, such as the one that a scheduler without --tls-cert-file makes.",
        rich_help_panel=SCHEDULER_SECTION,
    ),
]
Output = Annotated[
    Literal["table", "json"], typer.Option("--output", "-o", metavar="FORMAT", help="table or json.")
]
