"""`moorage queue`: what waits in a running scheduler."""

from __future__ import annotations

from typing import Annotated

import typer

from moorage.cli.scheduler_options import (
    DEFAULT_SCHEDULER_ADDRESS,
    CertificateAuthority,
    Kubeconfig,
    Output,
    Scheduler,
    SkipVerification,
)


def queue(
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="Only pods of this namespace; else of all.")
    ] = "",
    output: Output = "table",
    scheduler: Scheduler = DEFAULT_SCHEDULER_ADDRESS,
    kubeconfig: Kubeconfig = None,
    certificate_authority: CertificateAuthority = None,
    insecure_skip_tls_verify: SkipVerification = False,
) -> None:
    """Show which pods a running scheduler has in its queue: why, since when, and what would wake them."""
    from moorage.cli.inspection import SchedulerAddress, show_queue

    address = SchedulerAddress(scheduler, kubeconfig, certificate_authority, insecure_skip_tls_verify)
    show_queue(address, namespace, as_json=output == "json")
