"""A cluster to explain pods in, from an API server or from a dump, and a pod of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from moorage.api.base import Object
from moorage.api.decode import InputError
from moorage.api.files import load_manifests
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.resource_requests import resources_in_status
from moorage.client.client import Client
from moorage.client.connect import connected
from moorage.client.credentials import Access
from moorage.client.server_version import server_version
from moorage.cluster.pod_table import PodInfo, disks_of
from moorage.emulation.kubernetes_version import KubernetesVersion
from moorage.explain.cluster_reader import forbidden_text, read_cluster, read_pod
from moorage.http.errors import ConnectionFailed, RequestError
from moorage.scheduler.watched_kinds import needed_kinds
from moorage.sim.admission import Admission
from moorage.sim.cluster import SimulatedCluster

_encode: Final = msgspec.msgpack.Encoder(enc_hook=int).encode
"""Parts of a spec as a key; quantities are integers."""

NewCluster = Callable[[KubernetesVersion | None], SimulatedCluster]
"""Makes an empty cluster with the profiles to evaluate; None: of the default version."""


class LoadedCluster:
    """A cluster with all its objects, and the pod that is asked about.

    notes: what is missing in it, one line each.
    """

    def __init__(self, cluster: SimulatedCluster, pod: Pod, notes: Iterable[str] = ()) -> None:
        self.cluster = cluster
        self.notes = list(notes)
        self.pod = self._with_known_profile(pod)

    def _with_known_profile(self, pod: Pod) -> Pod:
        """The pod, for the only profile there is if it wants a scheduler that is not configured."""
        wanted = pod.spec.scheduler_name
        if self.cluster.profiles.of(pod) is not None or len(self.cluster.profiles) != 1:
            return pod
        (profile,) = self.cluster.profiles
        self.notes.append(
            f"the pod's scheduler is {wanted}; it is evaluated with profile {profile} (--config names others)"
        )
        return replace(pod, spec=replace(pod.spec, scheduler_name=profile))


async def load_from_server(
    access: Access, namespace: str, name: str, new_cluster: NewCluster
) -> LoadedCluster:
    """A pod and its cluster from an API server; InputError if they cannot be read."""
    try:
        async with connected(access, user_agent="moorage-explain") as client:
            return await _load(client, namespace, name, new_cluster)
    except ConnectionFailed as error:
        raise InputError("", f"the API server does not answer: {error}") from None
    except RequestError as error:
        raise InputError("", f"the API server at {access.endpoint.url} fails: {error.message}") from None


async def _load(client: Client, namespace: str, name: str, new_cluster: NewCluster) -> LoadedCluster:
    version = await server_version(client)
    pod = await read_pod(client, namespace, name)
    cluster = new_cluster(version)
    content = await read_cluster(client, needed_kinds(cluster.profiles.values()))
    fill(cluster, content.objects, pod)
    notes = [f"{forbidden_text(kind, 'list')}; explained without them" for kind in content.forbidden]
    return LoadedCluster(cluster, pod, notes)


def load_from_dump(
    paths: Sequence[Path], namespace: str, name: str, new_cluster: NewCluster
) -> LoadedCluster:
    """A pod and its cluster from files as `kubectl get -o json` or `-o yaml` writes them; or InputError."""
    where = ", ".join(map(str, paths))
    manifests = [located for path in paths for located in load_manifests(path)]
    objects = Admission(manifests).objects(manifests)
    if not any(isinstance(each, Node) for each in objects):
        raise InputError(where, "there are no nodes in it")
    key = f"{namespace}/{name}"
    pod = next((each for each in objects if isinstance(each, Pod) and each.key == key), None)
    if pod is None:
        raise InputError(where, f"there is no pod {name} in namespace {namespace}")
    cluster = new_cluster(None)
    fill(cluster, objects, pod)
    return LoadedCluster(cluster, pod)


def fill(cluster: SimulatedCluster, objects: Iterable[Object], pod: Pod) -> None:
    """Put objects into a cluster, with the nominations and groups of pods without a node."""
    cache, known = cluster.cache, _KnownPods()
    for each in objects:
        if not isinstance(each, Pod):
            cache.put(each)
            continue
        if each.spec.scheduling_group is not None:
            cache.pod_groups.add(each)
        if each.spec.node_name:
            cache.put_pod(each, known.like(each))
        elif each.status.nominated_node_name and each.uid != pod.uid:
            cache.nominations.put(each, each.status.nominated_node_name)


class _KnownPods:
    """Pods with the same values: what is computed of one is reused for the others."""

    def __init__(self) -> None:
        self._infos: dict[Hashable, PodInfo] = {}

    def like(self, pod: Pod) -> PodInfo | None:
        """The first pod with the values of a pod; None: it has claims or disks, or is being resized.

        Specs are compared without volumes: that of the service account has another name in each pod.
        """
        spec, meta = pod.spec, pod.metadata
        if pod.has_claims or disks_of(pod) or any(resources_in_status(pod)):
            return None
        parts = (spec.containers, spec.init_containers, spec.affinity, spec.overhead, spec.resources)
        key = (_encode(parts), meta.namespace, tuple(meta.labels.items()), meta.deletion_timestamp)
        known = self._infos.get(key)
        if known is None:
            known = self._infos[key] = PodInfo(pod)
        return known
