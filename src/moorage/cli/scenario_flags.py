"""The options of commands that read a scenario: a cluster, a workload, and what happens to nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from moorage.cli.durations import duration
from moorage.config.duration import Duration
from moorage.simulation.traces.format_names import DEFAULT_TRACE_UNIT, TraceFormat

DEFAULT_INTERVAL: Final = Duration(1)
DEFAULT_DURATION: Final = Duration(600)
DEFAULT_POD_CPU: Final = "100m,250m,500m,1,2,4"
DEFAULT_POD_MEMORY: Final = "128Mi,256Mi,512Mi,1Gi,2Gi,4Gi"
_CLUSTER: Final = "Cluster"
_WORKLOAD: Final = "Workload"

ClusterFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--from",
        metavar="FILE",
        help="Begin with the objects of a file, as `kubectl get -o yaml` prints them, or with the machines "
        "of a trace (machine_meta.csv, openb_node_list_*.csv); may be repeated. Pods without a node arrive "
        "at the start.",
        rich_help_panel=_CLUSTER,
    ),
]

NodeCount = Annotated[int, typer.Option(min=0, help="How many nodes there are.", rich_help_panel=_CLUSTER)]

NodeCpu = Annotated[str, typer.Option(help="The cores of each node.", rich_help_panel=_CLUSTER)]

NodeMemory = Annotated[str, typer.Option(help="The memory of each node.", rich_help_panel=_CLUSTER)]

ZoneCount = Annotated[
    int, typer.Option(min=1, help="The zones that nodes are spread over.", rich_help_panel=_CLUSTER)
]

Shapes = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE,...",
        help="Nodes of a shape: name=large,count=10,cpu=32,memory=128Gi,nvidia.com/gpu=8,zones=3,"
        "price=2.5 (by hour); may be repeated.",
        rich_help_panel=_CLUSTER,
    ),
]

WorkloadFiles = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="Pods from manifests (.yaml, .json), with the annotations moorage.io/arrival and "
        "moorage.io/duration, or from a trace (.jsonl, .csv, .parquet, or as it was published).",
        rich_help_panel=_WORKLOAD,
    ),
]

TraceFormatFlag = Annotated[
    TraceFormat | None,
    typer.Option(
        "--trace-format",
        metavar="FORMAT",
        help=f"The format of the trace: {', '.join(TraceFormat)}.  [default: by the name of the file]",
        rich_help_panel=_WORKLOAD,
    ),
]

TraceUnit = Annotated[
    str,
    typer.Option(
        metavar=DEFAULT_TRACE_UNIT,
        help="What the whole machine has that amounts in a published trace are shares of.",
        rich_help_panel=_WORKLOAD,
    ),
]

SkipBad = Annotated[
    bool,
    typer.Option(
        "--skip-bad",
        help="Count lines of a trace that cannot be read, instead of ending.",
        rich_help_panel=_WORKLOAD,
    ),
]

GeneratedCount = Annotated[
    int, typer.Option(min=0, help="Generate as many random pods.", rich_help_panel=_WORKLOAD)
]

MeanInterval = Annotated[
    Duration,
    typer.Option(
        parser=duration,
        metavar="DURATION",
        help="Mean time between two of them; 0: all at the start.",
        rich_help_panel=_WORKLOAD,
    ),
]

MeanDuration = Annotated[
    Duration,
    typer.Option(
        parser=duration,
        metavar="DURATION",
        help="Mean run time of them; 0: they run until the end.",
        rich_help_panel=_WORKLOAD,
    ),
]

PodCpu = Annotated[
    str,
    typer.Option(
        help="Requests of cpu to choose among, with weights or without: 100m:5,2:1.",
        rich_help_panel=_WORKLOAD,
    ),
]

PodMemory = Annotated[
    str, typer.Option(help="Requests of memory to choose among.", rich_help_panel=_WORKLOAD)
]

Priorities = Annotated[str, typer.Option(help="Priorities to choose among.", rich_help_panel=_WORKLOAD)]

ScriptFile = Annotated[
    Path | None,
    typer.Option(
        help="What happens to nodes: a file with events such as {at: 2h, drain: node-3}; actions are "
        "cordon, drain, fail, recover, add, remove.",
    ),
]

Until = Annotated[
    Duration | None,
    typer.Option(
        parser=duration,
        metavar="DURATION",
        help="End at this time.  [default: when nothing is going to change any more]",
    ),
]

Restart = Annotated[
    bool,
    typer.Option(
        "--restart/--no-restart",
        help="Create pods again that were preempted, drained or lost with their node.",
    ),
]

Seed = Annotated[int, typer.Option(help="The same seed gives the same results.")]
