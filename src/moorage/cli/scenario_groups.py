"""The options of a cluster, and of a scenario, as groups that commands take."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    ScriptFile,
    Shapes,
    SkipBad,
    TraceFormatFlag,
    TraceUnit,
    WorkloadFiles,
    ZoneCount,
)
from moorage.simulation.random_times import Arrivals, Durations
from moorage.simulation.traces.format_names import DEFAULT_TRACE_UNIT

if TYPE_CHECKING:  # What a command does is imported when it does it.
    from moorage.cli.scenario_options import ClusterOptions, ScenarioOptions


def cluster_options(
    cluster: ClusterFiles = None,
    nodes: NodeCount = 0,
    node_cpu: NodeCpu = "8",
    node_memory: NodeMemory = "32Gi",
    zones: ZoneCount = 3,
    shape: Shapes = None,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> ClusterOptions:
    """What a scenario or a plan begins with."""
    from moorage.cli.scenario_options import ClusterOptions
    from moorage.simulation.shapes import NodeShape

    uniform = NodeShape("node", nodes, zones, resources={"cpu": node_cpu, "memory": node_memory})
    return ClusterOptions(cluster or [], uniform, shape or [], kubeconfig, context)


def scenario_options(
    cluster: ClusterFiles = None,
    nodes: NodeCount = 0,
    node_cpu: NodeCpu = "8",
    node_memory: NodeMemory = "32Gi",
    zones: ZoneCount = 3,
    shape: Shapes = None,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    controllers: Controllers = False,
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
    script: ScriptFile = None,
) -> ScenarioOptions:
    """What is simulated."""
    from moorage.cli.scenario_options import GeneratedPods, ScenarioOptions

    return ScenarioOptions(
        cluster_options(cluster, nodes, node_cpu, node_memory, zones, shape, kubeconfig, context),
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
    )
