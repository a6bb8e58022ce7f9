"""`moorage plan`: reads what a plan is about, makes it, and prints it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, TypeVar

import msgspec
import typer

from moorage.api.base import Object
from moorage.api.decode import InputError
from moorage.api.labels import ZONE
from moorage.api.node import Node
from moorage.cli.garbage_collection import long_running
from moorage.cli.plan_options import SchedulerChoice
from moorage.cli.plan_progress import PlanProgress
from moorage.cli.plan_tables import (
    consolidation_text,
    drain_text,
    failures_text,
    fit_text,
    node_set_text,
)
from moorage.cli.scenario_options import ClusterOptions
from moorage.framework.loading.registry import RegistryError
from moorage.planning.catalogue import read_catalogue
from moorage.planning.consolidation import Consolidation, plan_consolidation
from moorage.planning.drain import Drain, plan_drain
from moorage.planning.evictions import Permissions
from moorage.planning.failures import Failures, plan_failures
from moorage.planning.fit import Fit, plan_fit
from moorage.planning.inputs import Planned, read_planned, require_nodes
from moorage.planning.node_set import MAX_SIMULATIONS, NodeSet, plan_nodes
from moorage.planning.results import Progress
from moorage.simulation.scenario import ScenarioSource
from moorage.simulation.settings import Settings

_NOT_POSSIBLE: Final = 1
"""Exit status: what was planned cannot be done."""
_UNREADABLE: Final = 2
"""Exit status: the input could not be used."""
_INTERRUPTED: Final = 128 + signal.SIGINT
"""Exit status: it was interrupted."""

PlanT = TypeVar("PlanT", Fit, NodeSet, Drain, Consolidation, Failures)
Make = Callable[[Planned, Settings, Progress], PlanT]


def show_fit(
    cluster: ClusterOptions,
    pods: Sequence[Path],
    scheduler: SchedulerChoice,
    maximum: int | None,
    *,
    as_json: bool,
) -> None:
    """Print how many more of some pods fit."""

    def make(planned: Planned, settings: Settings, progress: Progress) -> Fit:
        return plan_fit(require_nodes(planned.cluster), planned.pods, settings, maximum, progress)

    result = _made("fit", "rounds", cluster, scheduler, make, pods)
    is_partial = not result.complete and result.rounds != maximum
    _show(result, fit_text, as_json=as_json)
    _end("fit", is_partial=is_partial)


def show_nodes(
    cluster: ClusterOptions,
    workload: Sequence[Path],
    scheduler: SchedulerChoice,
    catalogue: Path,
    max_simulations: int | None,
    *,
    as_json: bool,
) -> None:
    """Print the nodes of a catalogue that fit a backlog; exits with status 1 if there are none."""

    def make(planned: Planned, settings: Settings, progress: Progress) -> NodeSet:
        shapes = read_catalogue(catalogue)
        most = MAX_SIMULATIONS if max_simulations is None else max_simulations
        return plan_nodes(planned.cluster, planned.pods, shapes, settings, most, progress)

    result = _made("nodes", "simulations", cluster, scheduler, make, workload)
    _show(result, node_set_text, as_json=as_json)
    _end("nodes", is_partial=not result.complete, is_possible=result.verified)


def show_drain(
    cluster: ClusterOptions,
    scheduler: SchedulerChoice,
    target: str,
    selector: str,
    *,
    bare: bool,
    empty_dir: bool,
    as_json: bool,
) -> None:
    """Print what a drain would do; exits with status 1 if it would not end with all pods on nodes."""

    def make(planned: Planned, settings: Settings, progress: Progress) -> Drain:
        names = _targets(require_nodes(planned.cluster), target, selector)
        return plan_drain(planned.cluster, names, settings, Permissions(bare, empty_dir), progress)

    result = _made("drain", "nodes", cluster, scheduler, make)
    _show(result, drain_text, as_json=as_json)
    _end("drain", is_partial=not result.complete, is_possible=result.succeeds)


def show_consolidation(
    cluster: ClusterOptions,
    scheduler: SchedulerChoice,
    *,
    bare: bool,
    empty_dir: bool,
    unsafe: bool,
    as_json: bool,
) -> None:
    """Print which nodes could be emptied."""

    def make(planned: Planned, settings: Settings, progress: Progress) -> Consolidation:
        permitted = Permissions(bare, empty_dir, unsafe)
        return plan_consolidation(require_nodes(planned.cluster), settings, permitted, progress)

    result = _made("consolidate", "nodes", cluster, scheduler, make)
    _show(result, consolidation_text, as_json=as_json)
    _end("consolidate", is_partial=not result.complete)


def show_failures(
    cluster: ClusterOptions, scheduler: SchedulerChoice, by: str, *, bare: bool, as_json: bool
) -> None:
    """Print what failures would leave pending."""
    label = ZONE if by == "zone" else by

    def make(planned: Planned, settings: Settings, progress: Progress) -> Failures:
        cluster = require_nodes(planned.cluster)
        return plan_failures(cluster, settings, label, progress, recreates_bare=bare)

    result = _made("failures", "failures", cluster, scheduler, make)
    _show(result, failures_text, as_json=as_json)
    _end("failures", is_partial=not result.complete)


def _made(
    name: str,
    noun: str,
    cluster: ClusterOptions,
    scheduler: SchedulerChoice,
    make: Make[PlanT],
    new_pods: Sequence[Path] = (),
) -> PlanT:
    """A plan; exits with status 2 and one line if the input cannot be used."""
    command = f"moorage plan {name}"
    long_running(f"plan {name}")
    try:
        settings = scheduler.settings()
        live = cluster.live(settings, has_new_pods=bool(new_pods))
        source = ScenarioSource(cluster.files, cluster.all_shapes(), new_pods, live=live)
        planned = read_planned(source, settings.version)
        for note in live.notes:
            typer.echo(f"{command}: {note}", err=True)
        with PlanProgress(command, noun) as progress:
            return make(planned, settings, progress.update)
    except (InputError, RegistryError) as error:
        typer.echo(f"{command}: {error}", err=True)
        raise typer.Exit(_UNREADABLE) from None


def _show(result: PlanT, as_text: Callable[[PlanT], str], *, as_json: bool) -> None:
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(result)).decode())
    else:
        typer.echo(as_text(result))


def _end(name: str, *, is_partial: bool, is_possible: bool = True) -> None:
    if is_partial:
        typer.echo(f"moorage plan {name}: interrupted; the plan is what is known up to then", err=True)
        raise typer.Exit(_INTERRUPTED)
    if not is_possible:
        raise typer.Exit(_NOT_POSSIBLE)


def _targets(objects: Iterable[Object], target: str, selector: str) -> list[str]:
    """The names of the nodes to drain; InputError if there are none."""
    if bool(target) == bool(selector):
        raise InputError("", "name a node or a zone, or give --selector")
    nodes = sorted((each for each in objects if isinstance(each, Node)), key=lambda node: node.name)
    if selector:
        labels = dict(_equality(part) for part in selector.split(","))
        found = [node.name for node in nodes if labels.items() <= node.labels.items()]
        if not found:
            raise InputError("--selector", f"no node has the labels {selector}")
        return found
    found = [node.name for node in nodes if node.name == target]
    found = found or [node.name for node in nodes if node.labels.get(ZONE) == target]
    if not found:
        raise InputError("", f"there is no node and no zone {target}")
    return found


def _equality(text: str) -> tuple[str, str]:
    key, equals, value = (part.strip() for part in text.partition("="))
    if not key or not equals:
        raise InputError("--selector", f"{text!r} is not LABEL=VALUE")
    return key, value.removeprefix("=")
