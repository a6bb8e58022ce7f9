"""The parameters of an installation: names, image, configuration and plugins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from moorage.api.manifests import Manifest, copy
from moorage.client.permissions import Permission
from moorage.config.load import dump_yaml, parse_config
from moorage.config.types import API_VERSION, KIND, SchedulerConfiguration
from moorage.manifests.defaults import MEMORY_LIMIT

CONFIG_FILE: Final = "config.yaml"
SHADOW_CONFIGURATION: Final = {"apiVersion": API_VERSION, "kind": KIND}
"""The default configuration: shadow mode has the profile of the cluster's scheduler."""


class Lease(NamedTuple):
    """The lease of the replicas' leader election."""

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
    """None without leader election: there is one replica."""
    permissions: Sequence[Permission]
    """Its permissions in all namespaces."""
    node: str = ""
    """The node that its pods are assigned to without a scheduler; empty: they are scheduled."""
    is_monitored: bool = True
    """Whether there is a PodMonitor for Prometheus' operator."""
    memory_limit: str = MEMORY_LIMIT
    """Memory limit of a process; half of it is requested."""
    has_network_policy: bool = True
    flags: Sequence[str] = ()
    """Further options of the process."""
    is_shadow: bool = False
    """Whether it only compares its decisions with those of the cluster's scheduler."""

    @property
    def plugins(self) -> list[str]:
        """The names of the plugins' files."""
        return [name for name in self.files if name != CONFIG_FILE]


def shipped_configuration(document: Any, name: str, namespace: str, where: str) -> Manifest:
    """The configuration that is installed: as given, with its own lease.

    A lease that the document names is kept. The process authenticates with its pod's service account, so the
    document's kubeconfig is dropped.
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
    """The lease of a configuration, if it has leader election."""
    election = config.leader_election
    return Lease(election.resource_namespace, election.resource_name) if election.leader_elect else None


def files_of(configuration: Manifest, plugins: Mapping[str, str]) -> dict[str, str]:
    """The files that are mounted into the pods."""
    return {CONFIG_FILE: dump_yaml(configuration), **plugins}
