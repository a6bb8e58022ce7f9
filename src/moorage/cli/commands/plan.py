"""`moorage plan`: what would fit, which nodes to have, and what happens when nodes go."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from moorage.cli.option_groups import takes
from moorage.cli.plain_help import PlainCommand, PlainGroup
from moorage.cli.plugin_options import PluginFiles
from moorage.cli.scenario_flags import Seed
from moorage.cli.scenario_groups import cluster_options
from moorage.cli.version_options import EmulatedVersion, FeatureGateFlags

if TYPE_CHECKING:
    from moorage.cli.plan_options import SchedulerChoice
    from moorage.cli.scenario_options import ClusterOptions

app = typer.Typer(
    name="plan",
    cls=PlainGroup,
    help="Plan on paper: what fits, which nodes to have, drains, consolidation, failures.\n\n"
    "The production scheduler makes every decision, and nothing is changed in any cluster.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


class Output(StrEnum):
    """The forms of results."""

    TABLE = "table"
    JSON = "json"


_EVICTIONS: Final = "Evictions"

Config = Annotated[Path | None, typer.Option(help="A KubeSchedulerConfiguration; the default one without.")]
OutputForm = Annotated[Output, typer.Option("--output", "-o", help="The form of the output.")]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Also evict pods without a controller; the plan creates them again.",
        rich_help_panel=_EVICTIONS,
    ),
]
DeleteEmptyDirData = Annotated[
    bool,
    typer.Option(
        "--delete-emptydir-data",
        help="Also evict pods with emptyDir volumes, whose contents are lost.",
        rich_help_panel=_EVICTIONS,
    ),
]


def _scheduler(
    seed: Seed = 0,
    config: Config = None,
    plugin: PluginFiles = None,
    emulated_version: EmulatedVersion = None,
    feature_gates: FeatureGateFlags = None,
) -> SchedulerChoice:
    """Which scheduler decides."""
    from moorage.cli.plan_options import SchedulerChoice

    return SchedulerChoice(config, plugin, emulated_version, feature_gates, seed)


@app.command(cls=PlainCommand)
@takes(cluster=cluster_options, scheduler=_scheduler)
def fit(
    *,
    pods: Annotated[
        list[Path],
        typer.Argument(
            help="Manifests of pods, or of controllers, which stand for theirs.", show_default=False
        ),
    ],
    cluster: ClusterOptions,
    maximum: Annotated[
        int | None, typer.Option("--max", min=1, help="Stop after this number of rounds.")
    ] = None,
    scheduler: SchedulerChoice,
    output: OutputForm = Output.TABLE,
) -> None:
    """Show how many more of some pods fit, on which nodes, and what runs out first.

    Several pods are a set: a round places all of them, and the last round is the last that fits as a whole.
    For example: moorage plan fit examples/pod.yaml --from examples/cluster.yaml
    """
    from moorage.cli.plan import show_fit

    show_fit(
        cluster,
        pods,
        scheduler,
        maximum,
        as_json=output is Output.JSON,
    )


@app.command("nodes", cls=PlainCommand)
@takes(cluster=cluster_options, scheduler=_scheduler)
def nodes_command(
    *,
    catalogue: Annotated[
        Path,
        typer.Option(help="The shapes of nodes that can be had, with prices (YAML).", show_default=False),
    ],
    workload: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="The backlog: manifests of pods or controllers; may be repeated."),
    ] = None,
    cluster: ClusterOptions,
    max_simulations: Annotated[
        int | None,
        typer.Option(min=1, help="How many sets of nodes are simulated at most, to find a cheaper one."),
    ] = None,
    scheduler: SchedulerChoice,
    output: OutputForm = Output.TABLE,
) -> None:
    """Find the nodes of a catalogue that fit a backlog at least cost, verified by simulation.

    A solver gives a lower bound and a proposal; the simulated scheduler says whether everything is placed.
    Nodes of a cluster that is given are used, too, and its pending pods are part of the backlog.
    For example: moorage plan nodes --catalogue examples/catalogue.yaml --workload examples/backlog.yaml
    """
    from moorage.cli.plan import show_nodes

    show_nodes(
        cluster,
        workload or [],
        scheduler,
        catalogue,
        max_simulations,
        as_json=output is Output.JSON,
    )


@app.command(cls=PlainCommand)
@takes(cluster=cluster_options, scheduler=_scheduler)
def drain(
    *,
    target: Annotated[str, typer.Argument(help="A node, or a zone: all its nodes.", show_default=False)] = "",
    selector: Annotated[
        str, typer.Option("--selector", "-l", metavar="LABEL=VALUE,...", help="Drain the nodes with labels.")
    ] = "",
    cluster: ClusterOptions,
    force: Force = False,
    delete_emptydir_data: DeleteEmptyDirData = False,
    scheduler: SchedulerChoice,
    output: OutputForm = Output.TABLE,
) -> None:
    """Drain nodes on paper: where pods would go, which would be pending, what blocks the drain.

    Pods are evicted in order, as disruption budgets allow it. Exits with status 1 if the drain would not end.
    For example: moorage plan drain west-1 --from examples/fleet.yaml
    """
    from moorage.cli.plan import show_drain

    show_drain(
        cluster,
        scheduler,
        target,
        selector,
        bare=force,
        empty_dir=delete_emptydir_data,
        as_json=output is Output.JSON,
    )


@app.command(cls=PlainCommand)
@takes(cluster=cluster_options, scheduler=_scheduler)
def consolidate(
    *,
    cluster: ClusterOptions,
    force: Force = False,
    delete_emptydir_data: DeleteEmptyDirData = False,
    ignore_safe_to_evict: Annotated[
        bool,
        typer.Option(
            "--ignore-safe-to-evict",
            help="Also evict pods whose annotation cluster-autoscaler.kubernetes.io/safe-to-evict is false.",
            rich_help_panel=_EVICTIONS,
        ),
    ] = False,
    scheduler: SchedulerChoice,
    output: OutputForm = Output.TABLE,
) -> None:
    """Show which nodes could be emptied now, and the moves in an order that keeps disruption budgets.

    The price of a node is its annotation moorage.io/price-per-hour, or that of its --shape.
    For example: moorage plan consolidate --from examples/fleet.yaml
    """
    from moorage.cli.plan import show_consolidation

    show_consolidation(
        cluster,
        scheduler,
        bare=force,
        empty_dir=delete_emptydir_data,
        unsafe=ignore_safe_to_evict,
        as_json=output is Output.JSON,
    )


@app.command(cls=PlainCommand)
@takes(cluster=cluster_options, scheduler=_scheduler)
def failures(
    *,
    by: Annotated[
        str, typer.Option(metavar="zone|node|LABEL", help="What fails: each zone, node, or value of a label.")
    ] = "zone",
    cluster: ClusterOptions,
    force: Force = False,
    scheduler: SchedulerChoice,
    output: OutputForm = Output.TABLE,
) -> None:
    """Show what the failure of each zone, or of each node, would leave pending.

    The nodes and their pods are gone at once, and pods with a controller are created again.
    For example: moorage plan failures --from examples/fleet.yaml
    """
    from moorage.cli.plan import show_failures

    show_failures(
        cluster,
        scheduler,
        by,
        bare=force,
        as_json=output is Output.JSON,
    )
