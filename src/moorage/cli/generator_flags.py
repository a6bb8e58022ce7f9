"""More options of generated pods: how they arrive, how long they run, devices, gangs."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from moorage.simulation.random_times import Arrivals, Durations

DEFAULT_BURST_SIZE: Final = 10
DEFAULT_GANG_SIZE: Final = 8
_WORKLOAD: Final = "Workload"

ArrivalProcess = Annotated[
    Arrivals,
    typer.Option(
        "--arrivals",
        help="How pods arrive: at random (poisson), each as long after the other (steady), many at once "
        "(bursts), or at random and most of them at noon (diurnal).",
        rich_help_panel=_WORKLOAD,
    ),
]

BurstSize = Annotated[
    int, typer.Option(min=1, help="How many pods are in a burst.", rich_help_panel=_WORKLOAD)
]

DurationDistribution = Annotated[
    Durations, typer.Option("--durations", help="How run times are distributed.", rich_help_panel=_WORKLOAD)
]

PodResources = Annotated[
    list[str] | None,
    typer.Option(
        "--pod-resource",
        metavar="NAME=AMOUNTS",
        help="Requests of an extended resource to choose among, such as nvidia.com/gpu=0:6,1:3,8:1 (with "
        "weights); may be repeated.",
        rich_help_panel=_WORKLOAD,
    ),
]

GangShare = Annotated[
    float,
    typer.Option(
        "--gangs",
        min=0.0,
        max=1.0,
        help="The share of pods in gangs, whose pods get nodes at once or not at all. They are PodGroups: "
        "with --emulated-version 1.37 --feature-gates GenericWorkload=true.",
        rich_help_panel=_WORKLOAD,
    ),
]

GangSize = Annotated[int, typer.Option(min=2, help="How many pods a gang has.", rich_help_panel=_WORKLOAD)]
