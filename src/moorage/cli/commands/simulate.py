"""`moorage simulate`: what would happen to this workload on that cluster?"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from moorage.cli.durations import duration
from moorage.cli.plugin_options import PluginFiles
from moorage.cli.version_options import EmulatedVersion, FeatureGateFlags
from moorage.config.duration import Duration


class Output(StrEnum):
    """The forms of results."""

    TABLE = "table"
    JSON = "json"


_DEFAULT_INTERVAL: Final = Duration(1)
_DEFAULT_DURATION: Final = Duration(600)
_CLUSTER = "Cluster"
_WORKLOAD = "Workload"


def simulate(
    cluster: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Begin with the objects of a file, as `kubectl get -o yaml` prints them; may be repeated. "
            "Pods without a node arrive at the start.",
            rich_help_panel=_CLUSTER,
        ),
    ] = None,
    nodes: Annotated[
        int, typer.Option(min=0, help="How many nodes there are.", rich_help_panel=_CLUSTER)
    ] = 0,
    node_cpu: Annotated[str, typer.Option(help="The cores of each node.", rich_help_panel=_CLUSTER)] = "8",
    node_memory: Annotated[
        str, typer.Option(help="The memory of each node.", rich_help_panel=_CLUSTER)
    ] = "32Gi",
    zones: Annotated[
        int, typer.Option(min=1, help="The zones that nodes are spread over.", rich_help_panel=_CLUSTER)
    ] = 3,
    shape: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE,...",
            help="Nodes of a shape: name=large,count=10,cpu=32,memory=128Gi,nvidia.com/gpu=8,zones=3,"
            "price=2.5 (by hour); may be repeated.",
            rich_help_panel=_CLUSTER,
        ),
    ] = None,
    workload: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Pods from manifests (.yaml, .json), with the annotations moorage.io/arrival and "
            "moorage.io/duration, or from a trace (.jsonl, .csv).",
            rich_help_panel=_WORKLOAD,
        ),
    ] = None,
    skip_bad: Annotated[
        bool,
        typer.Option(
            "--skip-bad",
            help="Count lines of a trace that cannot be read, instead of ending.",
            rich_help_panel=_WORKLOAD,
        ),
    ] = False,
    generate: Annotated[
        int, typer.Option(min=0, help="Generate as many random pods.", rich_help_panel=_WORKLOAD)
    ] = 0,
    mean_interval: Annotated[
        Duration,
        typer.Option(
            parser=duration,
            metavar="DURATION",
            help="Mean time between two of them; 0: all at the start.",
            rich_help_panel=_WORKLOAD,
        ),
    ] = _DEFAULT_INTERVAL,
    mean_duration: Annotated[
        Duration,
        typer.Option(
            parser=duration,
            metavar="DURATION",
            help="Mean run time of them; 0: they run until the end.",
            rich_help_panel=_WORKLOAD,
        ),
    ] = _DEFAULT_DURATION,
    pod_cpu: Annotated[
        str, typer.Option(help="Requests of cpu to choose among.", rich_help_panel=_WORKLOAD)
    ] = "100m,250m,500m,1,2,4",
    pod_memory: Annotated[
        str, typer.Option(help="Requests of memory to choose among.", rich_help_panel=_WORKLOAD)
    ] = "128Mi,256Mi,512Mi,1Gi,2Gi,4Gi",
    priorities: Annotated[
        str, typer.Option(help="Priorities to choose among.", rich_help_panel=_WORKLOAD)
    ] = "0",
    script: Annotated[
        Path | None,
        typer.Option(
            help="What happens to nodes: a file with events such as {at: 2h, drain: node-3}; actions are "
            "cordon, drain, fail, recover, add, remove.",
        ),
    ] = None,
    until: Annotated[
        Duration | None,
        typer.Option(
            parser=duration,
            metavar="DURATION",
            help="End at this time.  [default: when nothing is going to change any more]",
        ),
    ] = None,
    restart: Annotated[
        bool,
        typer.Option(
            "--restart/--no-restart",
            help="Create pods again that were preempted, drained or lost with their node.",
        ),
    ] = True,
    seed: Annotated[int, typer.Option(help="The same seed gives the same results.")] = 0,
    config: Annotated[
        Path | None, typer.Option(help="A KubeSchedulerConfiguration; the default one without.")
    ] = None,
    plugin: PluginFiles = None,
    emulated_version: EmulatedVersion = None,
    feature_gates: FeatureGateFlags = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="The form of the output.")] = Output.TABLE,
    placements: Annotated[
        Path | None, typer.Option(metavar="FILE.csv", help="Write every pod with its times and node as CSV.")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.html", help="Write a page with plots, which needs nothing from elsewhere."
        ),
    ] = None,
) -> None:
    """Simulate a workload on a cluster, in virtual time, with the production scheduler.

    Shows where pods go, how long they wait, what stays pending and why, and how full nodes are over time.
    For example: moorage simulate --nodes 10 --generate 500 --seed 7
    """
    from moorage.cli.simulate import GeneratedPods, SimulateOptions, show_simulation
    from moorage.simulation.shapes import NodeShape

    show_simulation(
        SimulateOptions(
            cluster or [],
            NodeShape("node", nodes, zones, resources={"cpu": node_cpu, "memory": node_memory}),
            shape or [],
            workload or [],
            skip_bad,
            GeneratedPods(
                generate, float(mean_interval), float(mean_duration), pod_cpu, pod_memory, priorities
            ),
            script,
            None if until is None else float(until),
            restart,
            seed,
            config,
            plugin,
            emulated_version,
            feature_gates,
        ),
        as_json=output is Output.JSON,
        placements=placements,
        report=report,
    )
