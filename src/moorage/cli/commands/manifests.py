"""`moorage manifests`: objects that install a scheduler, for `kubectl apply -f -`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from moorage.cli.plugin_options import PLUGIN_HELP
from moorage.cli.version_options import EmulatedVersion, FeatureGateFlags
from moorage.manifests.defaults import CONTROL_PLANE, MEMORY_LIMIT
from moorage.version import __version__


def manifests(
    name: Annotated[
        str,
        typer.Option(
            help="What everything is called: the objects, the lease and, without --config, the profile."
        ),
    ] = "moorage",
    namespace: Annotated[str, typer.Option(help="Where it runs; the namespace must exist.")] = CONTROL_PLANE,
    image: Annotated[str, typer.Option(help="The image with moorage in it.")] = f"moorage:{__version__}",
    replicas: Annotated[int, typer.Option(help="How many processes; one of them schedules.", min=1)] = 2,
    config: Annotated[
        Path | None,
        typer.Option(help="A KubeSchedulerConfiguration; without it, one profile with all default plugins."),
    ] = None,
    plugin: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE.py", help=f"{PLUGIN_HELP} It is printed as part of the ConfigMap."),
    ] = None,
    memory: Annotated[
        str, typer.Option(help="The memory limit of a process; half of it is requested.")
    ] = MEMORY_LIMIT,
    node: Annotated[str, typer.Option(help="Put the pods on this node, without any scheduler's help.")] = "",
    pod_monitor: Annotated[
        bool,
        typer.Option(
            "--pod-monitor/--no-pod-monitor",
            help="Tell Prometheus' operator of it, or not, where that is not installed.",
        ),
    ] = True,
    reader: Annotated[
        bool,
        typer.Option(
            "--reader", help="Print only a read-only ClusterRole, NAME-reader, which `moorage explain` needs."
        ),
    ] = False,
    helm_values: Annotated[
        bool,
        typer.Option(
            "--helm-values",
            help="Print values for the Helm chart instead, for `helm install --values`; the namespace is the "
            "release's.",
        ),
    ] = False,
    network_policy: Annotated[
        bool,
        typer.Option(
            "--network-policy/--no-network-policy",
            help="Allow scrapes, the API server and DNS and nothing else, or leave this to others.",
        ),
    ] = True,
    emulated_version: EmulatedVersion = None,
    feature_gates: FeatureGateFlags = None,
    shadow: Annotated[
        bool,
        typer.Option(
            "--shadow",
            help="Run it in shadow mode, with permissions to read only: it compares its decisions with those "
            "of the cluster's scheduler. Say --replicas 1.",
        ),
    ] = False,
) -> None:
    """Print what puts a scheduler into a cluster: account, roles, NetworkPolicy, Deployment, PodMonitor."""
    from moorage.cli.manifests import print_manifests

    print_manifests(
        name=name,
        namespace=namespace,
        image=image,
        replicas=replicas,
        config=config,
        plugin=plugin,
        memory=memory,
        node=node,
        pod_monitor=pod_monitor,
        network_policy=network_policy,
        emulated_version=emulated_version,
        feature_gates=feature_gates,
        reader=reader,
        for_helm=helm_values,
        shadow=shadow,
    )
