"""What is to be installed: names, image, configuration and plugins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from moorage.api.manifests import Manifest, copy
from moorage.config.load import dump_yaml, parse_config
from moorage.config.types import API_VERSION, KIND, SchedulerConfiguration
from moorage.manifests.permissions import Permission

CONFIG_FILE: Final = "config.yaml"
MEMORY_LIMIT: Final = "1280Mi"
"""Twice what 5,000 nodes with 30,000 pods take while all of the pods are being scheduled."""
CONTROL_PLANE: Final = "kube-system"
"""The namespace of what a cluster cannot do without."""


class Lease(NamedTuple):
    """What the replicas agree by on the one that schedules."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Installation:
    """A scheduler in a cluster."""

    name: str
    namespace: str
    image: str
    replicas: int
    files: Mapping[str, str]
    """The configuration and the plugins, by file name."""
    lease: Lease | None
    """None: there is one replica, and it always schedules."""
    permissions: Sequence[Permission]
    """What it may do wherever pods are."""
    node: str = ""
    """The node that its pods are put on without any scheduler; empty: one finds them a place."""
    is_monitored: bool = True
    """Whether Prometheus' operator is told of it."""
    memory_limit: str = MEMORY_LIMIT
    """What a process may take; half of it is requested."""
    has_network_policy: bool = True

    @property
    def plugins(self) -> list[str]:
        """The names of the plugins' files."""
        return [name for name in self.files if name != CONFIG_FILE]


def shipped_configuration(document: Any, name: str, namespace: str, where: str) -> Manifest:
    """The configuration that goes into the cluster: as it was given, with a lease of its own.

    A lease that the document names stays. The process is somebody by its pod's account, so what the document
    says about a kubeconfig does not go along.
    """
    if document is None:
        document = {"apiVersion": API_VERSION, "kind": KIND, "profiles": [{"schedulerName": name}]}
    parse_config(document, where)
    shipped: Manifest = copy(document)
    election = shipped.get("leaderElection") or {}
    shipped["leaderElection"] = {"resourceName": name, "resourceNamespace": namespace, **election}
    connection = {
        field: value
        for field, value in (shipped.pop("clientConnection", None) or {}).items()
        if field != "kubeconfig"
    }
    if connection:
        shipped["clientConnection"] = connection
    return shipped


def lease_of(config: SchedulerConfiguration) -> Lease | None:
    """The lease that a configuration speaks of, if any."""
    election = config.leader_election
    return Lease(election.resource_namespace, election.resource_name) if election.leader_elect else None


def files_of(configuration: Manifest, plugins: Mapping[str, str]) -> dict[str, str]:
    """What is mounted into the pods."""
    return {CONFIG_FILE: dump_yaml(configuration), **plugins}
