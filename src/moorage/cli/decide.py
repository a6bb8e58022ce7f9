"""`moorage decide`: where would this pod go, and why?"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from moorage.api.decode import InputError
from moorage.api.files import load_manifests
from moorage.api.pod import Pod
from moorage.cli.plugin_loading import with_plugins
from moorage.cli.version_options import emulated
from moorage.clock import LoopClock
from moorage.config.load import default_config, load_config
from moorage.emulation.kubernetes_version import KubernetesVersion
from moorage.explain.report import NodeReport, Report, report
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.status import Code, PluginError
from moorage.framework.loading.registry import RegistryError
from moorage.services.extender_client import http_extenders
from moorage.sim.admission import Admission
from moorage.sim.cluster import SimulatedCluster

NO_NODE, UNREADABLE = 1, 2
"""Exit statuses: the pod is unschedulable; the input could not be used."""


def show_decisions(
    cluster: list[Path],
    pod: Path,
    config: Path | None,
    plugins: list[Path] | None,
    *,
    emulated_version: str | None,
    feature_gates: list[str] | None,
    seed: int,
    top: int,
    as_json: bool,
) -> None:
    """Decide about the pods of a file one after another, and print the decisions."""
    try:
        version = emulated(emulated_version, feature_gates)
        reports = _reports(cluster, pod, config, plugins, version, seed)
    except (InputError, RegistryError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(UNREADABLE) from None
    if as_json:
        typer.echo(json.dumps([each.as_dict() for each in reports], indent=2))
    else:
        for each in reports:
            _print(each, top)
    raise typer.Exit(NO_NODE if any(each.node is None for each in reports) else 0)


def _reports(
    cluster: list[Path],
    pod_file: Path,
    config_file: Path | None,
    plugins: list[Path] | None,
    version: KubernetesVersion,
    seed: int,
) -> list[Report]:
    configuration = default_config(version) if config_file is None else load_config(config_file, version)
    extenders = http_extenders(configuration.extenders, LoopClock())
    keeps_whole = extenders.want_whole_objects
    manifests = [located for file in cluster for located in load_manifests(file)]
    admission = Admission(manifests)
    objects = admission.objects(manifests, keeps_whole=keeps_whole)
    asked = admission.objects(load_manifests(pod_file), keeps_whole=keeps_whole)
    pods = [item for item in asked if isinstance(item, Pod)]
    if not pods:
        raise InputError(str(pod_file), "there is no Pod in it")
    found = with_plugins(configuration, plugins)
    simulated = SimulatedCluster(objects, *found, seed, extenders, version)
    return [_place(simulated, pod) for pod in pods]


def _place(cluster: SimulatedCluster, pod: Pod) -> Report:
    """Decide about one pod, and apply the decision, so that the next pod sees it.

    A pod that is already on a node is removed first: then the decision explains why it would go there.
    """
    if standing := _not_tried(cluster, pod):
        return Report(pod.key, None, standing, (), 0)
    pod = cluster.take_out(pod)
    cycle = CycleState()
    decision = cluster.decide(pod, cycle)
    made = report(decision)
    if decision.node is not None:
        status = cluster.bind(pod, decision.node, cycle)
        if status.code is not Code.SUCCESS:
            by = f"{status.plugin}: " if status.plugin else ""
            return Report(pod.key, None, f"{by}{status.message}", made.nodes, made.tied)
    elif decision.post_filter is not None and decision.post_filter.nominated_node:
        cluster.cache.nominations.put(pod, decision.post_filter.nominated_node)
    return made


def _not_tried(cluster: SimulatedCluster, pod: Pod) -> str:
    """Why a scheduler would not attempt a pod; empty if it would."""
    if pod.finished:
        return f"the pod has ended ({pod.status.phase})"
    if pod.terminating:
        return "the pod is being deleted"
    try:
        gate = cluster.framework_of(pod).pre_enqueue(pod)
    except PluginError as error:
        return str(error)
    return "" if gate is None else gate.message


def _print(decided: Report, top: int) -> None:
    console = Console(markup=False, highlight=False)
    if decided.node is None:
        console.print(f"{decided.pod} fits nowhere: {decided.message}", soft_wrap=True)
        if decided.nominated:
            going = ", ".join(decided.victims) or "pods that are leaving already"
            console.print(f"evicting {going} would make room on {decided.nominated}", soft_wrap=True)
    else:
        tie = f" (one of {decided.tied} equally good)" if decided.tied > 1 else ""
        console.print(f"{decided.pod} goes to {decided.node}{tie}", soft_wrap=True, style="bold")
    feasible = [node for node in decided.nodes if not node.reasons]
    if len(feasible) == 1:
        console.print("no other node fits, so there was nothing to score")
    elif feasible:
        console.print(_score_table(feasible[:top]))
        if len(feasible) > top:
            console.print(f"... and {len(feasible) - top} more feasible nodes")
    refused = Counter((n.refused_by, ", ".join(n.reasons)) for n in decided.nodes if n.reasons)
    if refused:
        table = Table("refused by", "why", "nodes", title="refused", title_justify="left")
        for (plugin, why), count in refused.most_common():
            table.add_row(Text(plugin), Text(why), str(count))
        console.print(table)


def _score_table(nodes: list[NodeReport]) -> Table:
    table = Table("node", "total", "scores (weighted)", title="feasible", title_justify="left")
    table.columns[0].no_wrap = True
    for node in nodes:
        scores = sorted((node.scores or {}).items(), key=lambda item: -item[1])
        made_of = ", ".join(f"{plugin} {score}" for plugin, score in scores if score)
        total = "" if node.total is None else str(node.total)
        table.add_row(Text(node.node), total, Text(made_of), style="bold green" if node.chosen else "")
    return table
