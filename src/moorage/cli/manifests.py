"""`moorage manifests`: objects that install a scheduler, for `kubectl apply -f -`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from moorage.api.decode import InputError
from moorage.api.files import read_text
from moorage.cli.plugin_options import PLUGIN_HELP, with_plugins
from moorage.config.load import parse_config, read_document
from moorage.framework.loading.registry import RegistryError
from moorage.framework.runtime.profiles import Profiles
from moorage.manifests.bundle import as_yaml, bundle
from moorage.manifests.checks import check
from moorage.manifests.installation import (
    CONTROL_PLANE,
    MEMORY_LIMIT,
    Installation,
    files_of,
    lease_of,
    shipped_configuration,
)
from moorage.manifests.permissions import cluster_permissions
from moorage.version import __version__

_WRONG = 1
"""Exit status: the input is wrong."""


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
    network_policy: Annotated[
        bool,
        typer.Option(
            "--network-policy/--no-network-policy",
            help="Allow scrapes, the API server and DNS and nothing else, or leave this to others.",
        ),
    ] = True,
) -> None:
    """Print what puts a scheduler into a cluster: account, roles, NetworkPolicy, Deployment, PodMonitor."""
    try:
        where = str(config) if config else "--config"
        document = shipped_configuration(read_document(config) if config else None, name, namespace, where)
        effective = parse_config(document, where)
        found = with_plugins(effective, plugin)
        installation = Installation(
            name,
            namespace,
            image,
            replicas,
            files_of(document, _plugin_files(plugin or [])),
            lease_of(effective),
            cluster_permissions(Profiles(*found).values()),
            node,
            pod_monitor,
            memory,
            network_policy,
        )
        check(installation, effective)
    except (InputError, RegistryError) as error:
        typer.echo(f"moorage manifests: {error}", err=True)
        raise typer.Exit(_WRONG) from None
    typer.echo(as_yaml(bundle(installation)), nl=False)


def _plugin_files(paths: list[Path]) -> dict[str, str]:
    """The contents of the plugins' files by file name; names must be unique."""
    files: dict[str, str] = {}
    for path in paths:
        if path.name in files:
            raise InputError("--plugin", f"there are two files {path.name}; they must have different names")
        files[path.name] = read_text(path)
    return files
