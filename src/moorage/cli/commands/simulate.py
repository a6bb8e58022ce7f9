"""`moorage simulate`: what would happen to this workload on that cluster?"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from moorage.cli.cluster_flags import Context, Controllers, Kubeconfig
from moorage.cli.generator_flags import (
    DEFAULT_BURST_SIZE,
    DEFAULT_GANG_SIZE,
    ArrivalProcess,
    BurstSize,
    DurationDistribution,
    GangShare,
    GangSize,
    PodResources,
)
from moorage.cli.plugin_options import PluginFiles
from moorage.cli.scenario_flags import (
    DEFAULT_DURATION,
    DEFAULT_INTERVAL,
    DEFAULT_POD_CPU,
    DEFAULT_POD_MEMORY,
    ClusterFiles,
    GeneratedCount,
    MeanDuration,
    MeanInterval,
    NodeCount,
    NodeCpu,
    NodeMemory,
    PodCpu,
    PodMemory,
    Priorities,
    Restart,
    ScriptFile,
    Seed,
    Shapes,
    SkipBad,
    TraceFormatFlag,
    TraceUnit,
    Until,
    WorkloadFiles,
    ZoneCount,
)
from moorage.cli.version_options import EmulatedVersion, FeatureGateFlags
from moorage.simulation.random_times import Arrivals, Durations
from moorage.simulation.traces.format_names import DEFAULT_TRACE_UNIT


class Output(StrEnum):
    """The forms of results."""

    TABLE = "table"
    JSON = "json"


def simulate(
    cluster: ClusterFiles = None,
    nodes: NodeCount = 0,
    node_cpu: NodeCpu = "8",
    node_memory: NodeMemory = "32Gi",
    zones: ZoneCount = 3,
    shape: Shapes = None,
    workload: WorkloadFiles = None,
    trace_format: TraceFormatFlag = None,
    trace_unit: TraceUnit = DEFAULT_TRACE_UNIT,
    skip_bad: SkipBad = False,
    generate: GeneratedCount = 0,
    mean_interval: MeanInterval = DEFAULT_INTERVAL,
    mean_duration: MeanDuration = DEFAULT_DURATION,
    pod_cpu: PodCpu = DEFAULT_POD_CPU,
    pod_memory: PodMemory = DEFAULT_POD_MEMORY,
    priorities: Priorities = "0",
    arrivals: ArrivalProcess = Arrivals.POISSON,
    burst_size: BurstSize = DEFAULT_BURST_SIZE,
    durations: DurationDistribution = Durations.LOGNORMAL,
    pod_resource: PodResources = None,
    gangs: GangShare = 0.0,
    gang_size: GangSize = DEFAULT_GANG_SIZE,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    script: ScriptFile = None,
    controllers: Controllers = False,
    until: Until = None,
    restart: Restart = True,
    seed: Seed = 0,
    config: Annotated[
        Path | None, typer.Option(help="A KubeSchedulerConfiguration; the default one without.")
    ] = None,
    plugin: PluginFiles = None,
    emulated_version: EmulatedVersion = None,
    feature_gates: FeatureGateFlags = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="The form of the output.")] = Output.TABLE,
    placements: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write every pod with its times and node as a table (.csv, .parquet)."
        ),
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
    from moorage.cli.scenario_options import GeneratedPods, ScenarioOptions
    from moorage.cli.simulate import SimulateOptions, show_simulation
    from moorage.simulation.shapes import NodeShape

    show_simulation(
        SimulateOptions(
            ScenarioOptions(
                cluster or [],
                NodeShape("node", nodes, zones, resources={"cpu": node_cpu, "memory": node_memory}),
                shape or [],
                workload or [],
                skip_bad,
                GeneratedPods(
                    generate,
                    float(mean_interval),
                    float(mean_duration),
                    pod_cpu,
                    pod_memory,
                    priorities,
                    arrivals,
                    burst_size,
                    durations,
                    pod_resource or (),
                    gangs,
                    gang_size,
                ),
                script,
                trace_format,
                trace_unit,
                controllers,
                kubeconfig,
                context,
            ),
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
