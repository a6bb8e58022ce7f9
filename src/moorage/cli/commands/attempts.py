"""`moorage attempts`: what a running scheduler remembers of a pod."""

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


def attempts(
    pod: Annotated[str, typer.Argument(help="The pod's name.")],
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="The pod's namespace.")] = "default",
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Show new attempts as they come.")] = False,
    output: Output = "table",
    scheduler: Scheduler = DEFAULT_SCHEDULER_ADDRESS,
    kubeconfig: Kubeconfig = None,
    certificate_authority: CertificateAuthority = None,
    insecure_skip_tls_verify: SkipVerification = False,
) -> None:
    """Show the last attempts of a running scheduler to schedule a pod, with the numbers of each moment.

    A scheduler remembers ten attempts of each pod (--remembered-attempts), also of pods that are gone.
    """
    from moorage.cli.inspection import SchedulerAddress, show_attempts

    address = SchedulerAddress(scheduler, kubeconfig, certificate_authority, insecure_skip_tls_verify)
    show_attempts(address, namespace, pod, watch=watch, as_json=output == "json")
