"""`moorage compare`: several configurations on the same workload, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from moorage.cli.commands.simulate import Output
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
    Until,
    WorkloadFiles,
    ZoneCount,
)
from moorage.cli.version_options import EmulatedVersion, FeatureGateFlags


def compare(
    configurations: Annotated[
        list[str],
        typer.Argument(
            metavar="CONFIGURATION",
            help="Files with a KubeSchedulerConfiguration, or `default`; FILE@1.36 or FILE@1.37: as in that "
            "version of Kubernetes. The others are compared with the first.",
        ),
    ],
    cluster: ClusterFiles = None,
    nodes: NodeCount = 0,
    node_cpu: NodeCpu = "8",
    node_memory: NodeMemory = "32Gi",
    zones: ZoneCount = 3,
    shape: Shapes = None,
    workload: WorkloadFiles = None,
    skip_bad: SkipBad = False,
    generate: GeneratedCount = 0,
    mean_interval: MeanInterval = DEFAULT_INTERVAL,
    mean_duration: MeanDuration = DEFAULT_DURATION,
    pod_cpu: PodCpu = DEFAULT_POD_CPU,
    pod_memory: PodMemory = DEFAULT_POD_MEMORY,
    priorities: Priorities = "0",
    script: ScriptFile = None,
    until: Until = None,
    restart: Restart = True,
    seed: Seed = 0,
    plugin: PluginFiles = None,
    emulated_version: EmulatedVersion = None,
    feature_gates: FeatureGateFlags = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="The form of the output.")] = Output.TABLE,
    top: Annotated[
        int,
        typer.Option(min=0, help="Show so many pods and nodes that differ, those that differ most first."),
    ] = 5,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.html", help="Write a page with plots, which needs nothing from elsewhere."
        ),
    ] = None,
) -> None:
    """Compare configurations on the same workload: who waits longer, and which plugin moved which pod.

    Simulates the workload with each configuration, as moorage simulate does, with the same seed.
    For example: moorage compare default default@1.36 --nodes 10 --generate 100 --seed 7
    """
    from moorage.cli.compare import CompareOptions, show_comparison
    from moorage.cli.scenario_options import GeneratedPods, ScenarioOptions
    from moorage.simulation.shapes import NodeShape

    show_comparison(
        CompareOptions(
            configurations,
            ScenarioOptions(
                cluster or [],
                NodeShape("node", nodes, zones, resources={"cpu": node_cpu, "memory": node_memory}),
                shape or [],
                workload or [],
                skip_bad,
                GeneratedPods(
                    generate, float(mean_interval), float(mean_duration), pod_cpu, pod_memory, priorities
                ),
                script,
            ),
            None if until is None else float(until),
            restart,
            seed,
            plugin,
            emulated_version,
            feature_gates,
            top,
        ),
        as_json=output is Output.JSON,
        report=report,
    )
