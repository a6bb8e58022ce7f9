"""`moorage decide`: where would these pods go, and why?"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import typer

from moorage.api.base import Object
from moorage.api.decode import InputError
from moorage.api.files import load_manifests
from moorage.api.pod import Pod
from moorage.api.pod_groups import Group, group_of, key_of
from moorage.cli.decide_groups import GroupDecisions
from moorage.cli.decision_tables import print_group, print_pod
from moorage.cli.ignored_groups import not_honoured
from moorage.cli.plugin_loading import with_plugins
from moorage.cli.version_options import emulated
from moorage.clock import LoopClock
from moorage.config.load import default_config, load_config
from moorage.emulation.kubernetes_version import KubernetesVersion
from moorage.explain.group_report import GroupReport
from moorage.explain.placing import placed
from moorage.explain.report import Report
from moorage.framework.loading.registry import RegistryError
from moorage.services.extender_client import http_extenders
from moorage.sim.admission import Admission
from moorage.sim.cluster import SimulatedCluster, ended

NO_NODE, UNREADABLE = 1, 2
"""Exit statuses: a pod is unschedulable; the input could not be used."""


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
    """Decide about the pods of a file one after another, groups of pods as a whole; print the decisions."""
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
    raise typer.Exit(NO_NODE if any(map(_lacks_node, reports)) else 0)


def _print(decided: Report | GroupReport, top: int) -> None:
    if isinstance(decided, Report):
        print_pod(decided, top)
    else:
        print_group(decided)


def _lacks_node(decided: Report | GroupReport) -> bool:
    pods = (decided,) if isinstance(decided, Report) else decided.all_members()
    return any(pod.node is None for pod in pods)


def _reports(
    cluster: list[Path],
    pod_file: Path,
    config_file: Path | None,
    plugins: list[Path] | None,
    version: KubernetesVersion,
    seed: int,
) -> list[Report | GroupReport]:
    configuration = default_config(version) if config_file is None else load_config(config_file, version)
    found = with_plugins(configuration, plugins)  # Before objects are read: plugins may declare their kinds.
    extenders = http_extenders(configuration.extenders, LoopClock())
    keeps_whole = extenders.want_whole_objects
    manifests = [located for file in cluster for located in load_manifests(file)]
    asked_manifests = load_manifests(pod_file)
    admission = Admission([*manifests, *asked_manifests], version.features)
    objects = admission.objects(manifests, keeps_whole=keeps_whole)
    asked = admission.objects(asked_manifests, keeps_whole=keeps_whole)
    pods = [item for item in asked if isinstance(item, Pod)]
    if not pods:
        raise InputError(str(pod_file), "there is no Pod in it")
    objects += [item for item in asked if not isinstance(item, Pod)]
    groups = {key_of(item): item for item in objects if isinstance(item, Group)}
    for line in not_honoured(pods, groups.get, version):
        typer.echo(f"warning: {line}", err=True)
    simulated = SimulatedCluster(objects, *found, seed, extenders, version)
    return list(_in_order(simulated, pods, objects, seed))


def _in_order(
    cluster: SimulatedCluster, pods: Sequence[Pod], objects: Sequence[Object], seed: int
) -> Iterator[Report | GroupReport]:
    """The decisions about pods in their order; a group has the place of its first pod."""
    if not cluster.cache.pod_groups.is_enabled:
        yield from (placed(cluster, pod) for pod in pods)
        return
    groups = GroupDecisions(cluster, pods, objects, seed)
    for pod in pods:
        if standing := ended(pod):
            yield Report(pod.key, None, standing, (), 0)
        elif group_of(pod) is None:
            yield placed(cluster, pod)
        else:
            yield from groups.about(pod)
