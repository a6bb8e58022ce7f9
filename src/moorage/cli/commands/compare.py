"""`moorage compare`: several configurations on the same workload, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from moorage.cli.commands.simulate import Output
from moorage.cli.option_groups import takes
from moorage.cli.plugin_options import PluginFiles
from moorage.cli.scenario_flags import Restart, Seed, Until
from moorage.cli.scenario_groups import scenario_options
from moorage.cli.version_options import EmulatedVersion, FeatureGateFlags

if TYPE_CHECKING:
    from moorage.cli.scenario_options import ScenarioOptions


@takes(scenario=scenario_options)
def compare(
    configurations: Annotated[
        list[str],
        typer.Argument(
            metavar="CONFIGURATION",
            help="Files with a KubeSchedulerConfiguration, or `default`; FILE@1.36 or FILE@1.37: as in that "
            "version of Kubernetes. The others are compared with the first.",
        ),
    ],
    scenario: ScenarioOptions,
    until: Until = None,
    restart: Restart = True,
    seed: Seed = 0,
    plugin: PluginFiles = None,
    emulated_version: EmulatedVersion = None,
    feature_gates: FeatureGateFlags = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="The form of the output.")] = Output.TABLE,
    top: Annotated[
        int,
        typer.Option(min=0, help="Number of pods and nodes with the largest differences that are shown."),
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

    show_comparison(
        CompareOptions(
            configurations,
            scenario,
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
