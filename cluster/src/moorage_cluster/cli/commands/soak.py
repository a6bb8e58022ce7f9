"""`moorage soak`: hours of churn, and what grows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer


def soak(
    hours: Annotated[float, typer.Option(help="Duration, in hours of the cluster.", min=0.001)] = 1.0,
    virtual: Annotated[
        bool, typer.Option("--virtual", help="Run in this process and in virtual time: hours take minutes.")
    ] = False,
    pods_per_second: Annotated[float, typer.Option(help="Rate at which pods are created.", min=0.01)] = 2.0,
    live: Annotated[int, typer.Option(help="Number of pods at a time.", min=1)] = 300,
    templates: Annotated[
        int,
        typer.Option(
            help="Number of templates of workloads, at least twice the pods at a time: what is remembered "
            "of each fills caches at first.",
            min=1,
        ),
    ] = 2000,
    nodes: Annotated[int, typer.Option(help="Number of nodes.", min=1)] = 20,
    samples: Annotated[
        int, typer.Option(help="Number of measurements, at equal intervals; leaks need 16.", min=1)
    ] = 120,
    gangs: Annotated[bool, typer.Option(help="Have gangs among the workloads, as in v1.37.")] = True,
    seed: Annotated[int, typer.Option(help="The seed of the workloads.", min=0)] = 0,
    chart: Annotated[Path | None, typer.Option(help="Draw the measurements into this SVG file.")] = None,
    output: Annotated[
        Literal["table", "json"], typer.Option("--output", "-o", help="The form of the report.")
    ] = "table",
) -> None:
    """Create and delete workloads of all kinds for hours, and find out what grows.

    Deployments, StatefulSets, Jobs, gangs, and pods with spreading, affinity, volumes, devices and priority
    come and go at an even rate in a cluster on this machine. Memory, descriptors, tasks, throughput and
    latencies are measured at equal intervals. What grows with the number of pods in the second half is a
    leak: the report says what, and the exit status is 1.
    """
    from moorage_cluster.cli.soak import run
    from moorage_cluster.soak.run import SoakSettings

    settings = SoakSettings(
        seconds=hours * 3600,
        pods_per_second=pods_per_second,
        live=live,
        templates=templates,
        nodes=nodes,
        samples=samples,
        seed=seed,
        has_groups=gangs,
        is_virtual=virtual,
    )
    run(settings, chart, output)
