"""`moorage record`: a recording for `moorage replay`, from a scheduler's log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from moorage.cli.version_options import (
    GATES_FLAG,
    GATES_HELP,
    POSSIBLE_VERSIONS,
    VERSION_FLAG,
)


def record(
    from_klog: Annotated[
        list[Path],
        typer.Option(
            "--from-klog",
            metavar="FILE",
            help="The log of kube-scheduler, or of moorage run, at -v=10, as text or JSON, plain or "
            "compressed; may be repeated for a log that was rotated, oldest first.",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The recording to write (JSON).")],
    dump: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Read the cluster from a file, as `kubectl get -o json` writes it; may be repeated, "
            "also for the cluster at several times, oldest first.",
        ),
    ] = None,
    kubeconfig: Annotated[
        Path | None, typer.Option(help="The cluster, without --from; else as kubectl finds it.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="The scheduler's KubeSchedulerConfiguration; else the default one.")
    ] = None,
    emulated_version: Annotated[
        str | None,
        typer.Option(
            VERSION_FLAG,
            metavar="VERSION",
            help=f"Behave like Kubernetes {POSSIBLE_VERSIONS}.  [default: the version in the log]",
        ),
    ] = None,
    feature_gates: Annotated[
        list[str] | None, typer.Option(GATES_FLAG, metavar="GATES", help=GATES_HELP)
    ] = None,
) -> None:
    """Write a recording of the attempts in a scheduler's log.

    The log says what was decided, and when nodes and pods came and went; what they are like is read from the
    cluster as it is now, or from files. Attempts while something unknown was in the cluster are left out,
    and named. To record a scheduler at work, with all changes of the cluster, use `moorage run --record` or
    `moorage run --shadow --record`.
    """
    from moorage.cli.record import RecordOptions, record_log

    record_log(
        RecordOptions(from_klog, output, dump or [], kubeconfig, config, emulated_version, feature_gates)
    )
