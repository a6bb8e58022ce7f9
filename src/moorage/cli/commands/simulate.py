"""`moorage simulate`: what would happen to this workload on that cluster?"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from moorage.cli.option_groups import takes
from moorage.cli.plugin_options import PluginFiles
from moorage.cli.scenario_flags import Restart, Seed, Until
from moorage.cli.scenario_groups import scenario_options
from moorage.cli.version_options import EmulatedVersion, FeatureGateFlags

if TYPE_CHECKING:
    from moorage.cli.scenario_options import ScenarioOptions


class Output(StrEnum):
    """The forms of results."""

    TABLE = "table"
    JSON = "json"


@takes(scenario=scenario_options)
def simulate(
    scenario: ScenarioOptions,
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
    from moorage.cli.simulate import SimulateOptions, show_simulation

    show_simulation(
        SimulateOptions(
            scenario,
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
