"""`moorage decide`: where would this pod go, and why?"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from moorage.api.decode import InputError, load_objects
from moorage.api.pod import Pod
from moorage.cluster.cache import Cache
from moorage.config.load import default_config, load_config
from moorage.engine.decision import Decision
from moorage.engine.engine import Engine
from moorage.explain.report import NodeReport, Report, report
from moorage.framework.profiles import Profiles
from moorage.framework.registry import RegistryError
from moorage.plugins import default_registry

NO_NODE, UNREADABLE = 1, 2
"""Exit statuses: the pod fits nowhere; the input could not be used."""


def decide(
    cluster: Annotated[
        list[Path],
        typer.Argument(help="The cluster: files as `kubectl get -o yaml` gives them.", show_default=False),
    ],
    pod: Annotated[Path, typer.Option(help="A file with the pod (or pods) to place.")],
    config: Annotated[
        Path | None, typer.Option(help="A KubeSchedulerConfiguration; the default one without.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Chooses among equally good nodes.")] = 0,
    top: Annotated[int, typer.Option(help="How many of the feasible nodes to show.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print the decisions as JSON.")] = False,
) -> None:
    """Show where the scheduler would place pods in a cluster, with every score and every refusal.

    Several pods are placed one after another, each counting for the next.
    """
    try:
        decisions = _decisions(cluster, pod, config, seed)
    except (InputError, RegistryError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(UNREADABLE) from None
    reports = [report(decision) for decision in decisions]
    if as_json:
        typer.echo(json.dumps([each.as_dict() for each in reports], indent=2))
    else:
        for each in reports:
            _print(each, top)
    raise typer.Exit(NO_NODE if any(each.node is None for each in reports) else 0)


def _decisions(cluster: list[Path], pod_file: Path, config_file: Path | None, seed: int) -> list[Decision]:
    cache = Cache(item for file in cluster for item in load_objects(file))
    pods = [item for item in load_objects(pod_file) if isinstance(item, Pod)]
    if not pods:
        raise InputError(str(pod_file), "there is no Pod in it")
    configuration = default_config() if config_file is None else load_config(config_file)
    profiles = Profiles(configuration, default_registry())
    engine = Engine(configuration.percentage_of_nodes_to_score, seed)
    decisions = []
    for pod in pods:
        framework = profiles.of(pod)
        if framework is None:
            names = ", ".join(profiles)
            raise InputError(
                str(pod_file), f"pod {pod.name} wants scheduler {pod.spec.scheduler_name}; there is {names}"
            )
        decision = engine.decide(framework, pod, cache.snapshot())
        decisions.append(decision)
        if decision.node is not None:
            cache.assume_pod(pod, decision.node)
    return decisions


def _print(decided: Report, top: int) -> None:
    console = Console()
    if decided.node is None:
        console.print(f"[bold]{decided.pod}[/] fits nowhere: {decided.message}", highlight=False)
        if decided.nominated:
            going = ", ".join(decided.victims) or "pods that are leaving already"
            console.print(f"evicting {going} would make room on {decided.nominated}", highlight=False)
    else:
        tie = f" (one of {decided.tied} equally good)" if decided.tied > 1 else ""
        console.print(f"[bold]{decided.pod}[/] goes to [bold green]{decided.node}[/]{tie}", highlight=False)
    feasible = [node for node in decided.nodes if not node.refused_by and not node.reasons]
    if feasible:
        console.print(_score_table(feasible[:top]))
        if len(feasible) > top:
            console.print(f"... and {len(feasible) - top} more feasible nodes")
    refused = Counter((n.refused_by, ", ".join(n.reasons)) for n in decided.nodes if n.reasons)
    if refused:
        table = Table("refused by", "why", "nodes", title="refused", title_justify="left")
        for (plugin, why), count in refused.most_common():
            table.add_row(plugin, why, str(count))
        console.print(table)


def _score_table(nodes: list[NodeReport]) -> Table:
    table = Table("node", "total", "scores (weighted)", title="feasible", title_justify="left")
    table.columns[0].no_wrap = True
    for node in nodes:
        scores = sorted((node.scores or {}).items(), key=lambda item: -item[1])
        made_of = ", ".join(f"{plugin} {score}" for plugin, score in scores if score)
        total = "" if node.total is None else str(node.total)
        table.add_row(node.node, total, made_of, style="bold green" if node.chosen else "")
    return table
