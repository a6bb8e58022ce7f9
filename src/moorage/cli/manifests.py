"""`moorage manifests`: objects that install a scheduler, for `kubectl apply -f -`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import typer

from moorage.api.decode import InputError
from moorage.api.files import read_text
from moorage.api.manifests import Manifest
from moorage.cli.plugin_loading import with_plugins
from moorage.cli.version_options import GATES_FLAG, VERSION_FLAG, emulated
from moorage.config.load import parse_config, read_document
from moorage.explain.cluster_reader import needed_permissions
from moorage.framework.interface.handle import Handle
from moorage.framework.loading.registry import RegistryError
from moorage.framework.runtime.framework import Framework
from moorage.framework.runtime.profiles import Profiles
from moorage.manifests.bundle import as_yaml, bundle
from moorage.manifests.checks import check
from moorage.manifests.helm_values import helm_values
from moorage.manifests.installation import (
    SHADOW_CONFIGURATION,
    Installation,
    files_of,
    lease_of,
    shipped_configuration,
)
from moorage.manifests.objects import RBAC, new_object
from moorage.manifests.permissions import cluster_permissions, rules, shadow_permissions
from moorage.scheduler.watched_kinds import read_kinds

_WRONG = 1
"""Exit status: the input is wrong."""


def print_manifests(
    *,
    name: str,
    namespace: str,
    image: str,
    replicas: int,
    config: Path | None,
    plugin: list[Path] | None,
    memory: str,
    node: str,
    pod_monitor: bool,
    network_policy: bool,
    reader: bool,
    for_helm: bool,
    emulated_version: str | None,
    feature_gates: list[str] | None,
    shadow: bool,
) -> None:
    """Print the objects as YAML; exits with status 1 if anything given for them is wrong.

    reader: print only the role that explanations need.
    for_helm: print values of the Helm chart in place of objects.
    """
    try:
        version = emulated(emulated_version, feature_gates)
        where = str(config) if config else "--config"
        given = read_document(config) if config else SHADOW_CONFIGURATION if shadow else None
        document = shipped_configuration(given, name, namespace, where)
        if shadow:
            document["leaderElection"] = {"leaderElect": False}
        effective = parse_config(document, where, version)
        found = with_plugins(effective, plugin)
        profiles = Profiles(*found, Handle(version=version)).values()
        installation = Installation(
            name,
            namespace,
            image,
            replicas,
            files_of(document, _plugin_files(plugin or [])),
            lease_of(effective),
            (shadow_permissions if shadow else cluster_permissions)(profiles),
            node,
            pod_monitor,
            memory,
            network_policy,
            _flags(emulated_version, feature_gates),
            shadow,
        )
        check(installation, effective)
    except (InputError, RegistryError) as error:
        typer.echo(f"moorage manifests: {error}", err=True)
        raise typer.Exit(_WRONG) from None
    if for_helm:
        documents = [helm_values(installation)]
    elif reader:
        documents = [_reader(installation, profiles)]
    else:
        documents = bundle(installation)
    typer.echo(as_yaml(documents), nl=False)


def _reader(installation: Installation, profiles: Iterable[Framework]) -> Manifest:
    """The role of those who explain pods: what the profiles' plugins read, and no more."""
    allowed = rules(needed_permissions(read_kinds(profiles)))
    return new_object(
        f"{RBAC}/v1", "ClusterRole", f"{installation.name}-reader", "", installation, rules=allowed
    )


def _flags(emulated_version: str | None, feature_gates: list[str] | None) -> tuple[str, ...]:
    """The options of the version and its gates, for the scheduler that is installed."""
    chosen = () if emulated_version is None else (f"{VERSION_FLAG}={emulated_version}",)
    return (*chosen, *(f"{GATES_FLAG}={gates}" for gates in feature_gates or ()))


def _plugin_files(paths: list[Path]) -> dict[str, str]:
    """The contents of the plugins' files by file name; names must be unique."""
    files: dict[str, str] = {}
    for path in paths:
        if path.name in files:
            raise InputError("--plugin", f"there are two files {path.name}; they must have different names")
        files[path.name] = read_text(path)
    return files
