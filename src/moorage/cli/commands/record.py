"""`moorage record`: a recording for `moorage replay`, from a scheduler's log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from moorage.cli.version_options import EmulatedVersion, FeatureGateFlags


def record(
    from_klog: Annotated[
        Path,
        typer.Option(
            "--from-klog", metavar="FILE", help="The log of kube-scheduler, or of moorage run, at -v=10."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The recording to write (JSON).")],
    kubeconfig: Annotated[Path | None, typer.Option(help="The cluster; else as kubectl finds it.")] = None,
    config: Annotated[
        Path | None, typer.Option(help="The scheduler's KubeSchedulerConfiguration; else the default one.")
    ] = None,
    emulated_version: EmulatedVersion = None,
    feature_gates: FeatureGateFlags = None,
) -> None:
    """Write a recording of the attempts in a scheduler's log, with the cluster as it is now.

    Pods that have been deleted since are not in the recording: record before the cluster changes. To record
    a scheduler at work, with all changes of the cluster, use `moorage run --record` or
    `moorage run --shadow --record`.
    """
    from moorage.cli.record import record_log

    record_log(
        from_klog,
        output,
        kubeconfig,
        config,
        emulated_version=emulated_version,
        feature_gates=feature_gates,
    )
