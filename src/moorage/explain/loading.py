"""A cluster to explain pods in, from an API server or from a dump, and a pod of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from msgspec.structs import replace

from moorage.api.base import Object
from moorage.api.coscheduling import with_labelled_group
from moorage.api.decode import InputError
from moorage.api.files import load_manifests
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.client.client import Client
from moorage.client.connect import connected
from moorage.client.credentials import Access
from moorage.client.server_version import server_version
from moorage.emulation.kubernetes_version import KubernetesVersion
from moorage.explain.cluster_reader import ClusterContent, left_out_texts, read_cluster, read_pod
from moorage.explain.pod_list import PodInfos
from moorage.http.errors import ConnectionFailed, RequestError
from moorage.scheduler.watched_kinds import has_labelled_groups, read_kinds
from moorage.sim.admission import Admission
from moorage.sim.cluster import SimulatedCluster

NewCluster = Callable[[KubernetesVersion | None], SimulatedCluster]
"""Makes an empty cluster with the profiles to evaluate; None: of the default version."""
NewReading = Callable[[], AbstractAsyncContextManager[Client]]
"""Makes a client for reading a cluster, as `readable` does."""


class LoadedCluster:
    """A cluster with all its objects, and the pod that is asked about.

    notes: what is missing in it, one line each.
    """

    def __init__(self, cluster: SimulatedCluster, pod: Pod, notes: Iterable[str] = ()) -> None:
        self.cluster = cluster
        self.notes = list(notes)
        self.pod = self._with_known_profile(pod)

    def _with_known_profile(self, pod: Pod) -> Pod:
        known = with_known_profile(self.cluster, pod)
        if known is not pod:
            self.notes.append(
                f"the pod's scheduler is {pod.spec.scheduler_name}; it is evaluated with profile "
                f"{known.spec.scheduler_name} (--config names others)"
            )
        return known


def with_known_profile(cluster: SimulatedCluster, pod: Pod) -> Pod:
    """The pod, for the only profile there is if it wants a scheduler that is not configured."""
    if cluster.profiles.of(pod) is not None or len(cluster.profiles) != 1:
        return pod
    (profile,) = cluster.profiles
    return replace(pod, spec=replace(pod.spec, scheduler_name=profile))


async def load_from_server(
    access: Access, namespace: str, name: str, new_cluster: NewCluster
) -> LoadedCluster:
    """A pod and its cluster from an API server; InputError if they cannot be read."""
    async with readable(access) as client:
        return await load_with(client, namespace, name, new_cluster)


@asynccontextmanager
async def readable(access: Access) -> AsyncIterator[Client]:
    """A client for reading a cluster; InputError where the API server fails."""
    try:
        async with connected(access, user_agent="moorage-explain") as client:
            yield client
    except ConnectionFailed as error:
        raise InputError("", f"the API server does not answer: {error}") from None
    except RequestError as error:
        raise InputError("", f"the API server at {access.endpoint.url} fails: {error.message}") from None


async def load_with(client: Client, namespace: str, name: str, new_cluster: NewCluster) -> LoadedCluster:
    """The same with a client; also RequestError and ConnectionFailed."""
    version = await server_version(client)
    pod = await read_pod(client, namespace, name)
    cluster = new_cluster(version)
    return loaded(cluster, pod, await read_cluster(client, read_kinds(cluster.profiles.values())))


def loaded(cluster: SimulatedCluster, pod: Pod, content: ClusterContent) -> LoadedCluster:
    """An empty cluster with what was read of an API server."""
    objects: Iterable[Object] = content.objects
    if has_labelled_groups(cluster.profiles.values()):
        cluster.cache.pod_groups.follow_labels()
        pod = with_labelled_group(pod)
        objects = (with_labelled_group(each) if isinstance(each, Pod) else each for each in objects)
    fill(cluster, objects, pod)
    return LoadedCluster(cluster, pod, left_out_texts(content.forbidden))


def load_from_dump(
    paths: Sequence[Path], namespace: str, name: str, new_cluster: NewCluster
) -> LoadedCluster:
    """A pod and its cluster from files as `kubectl get -o json` or `-o yaml` writes them; or InputError."""
    cluster = new_cluster(None)  # Before objects are read: plugins may declare their kinds.
    where = ", ".join(map(str, paths))
    manifests = [located for path in paths for located in load_manifests(path)]
    objects = Admission(manifests).objects(manifests)
    if not any(isinstance(each, Node) for each in objects):
        raise InputError(where, "there are no nodes in it")
    key = f"{namespace}/{name}"
    pod = next((each for each in objects if isinstance(each, Pod) and each.key == key), None)
    if pod is None:
        raise InputError(where, f"there is no pod {name} in namespace {namespace}")
    fill(cluster, objects, pod)
    return LoadedCluster(cluster, pod)


def fill(cluster: SimulatedCluster, objects: Iterable[Object], pod: Pod | None = None) -> None:
    """Put objects into a cluster, with the nominations and groups of pods without a node.

    pod: the pod that is asked about, whose own nomination is left out.
    """
    cache, infos, placed = cluster.cache, PodInfos(), []
    for each in objects:
        if not isinstance(each, Pod):
            cache.put(each)
            continue
        if each.spec.scheduling_group is not None and not each.finished:
            cache.pod_groups.add(each)
        if each.spec.node_name:
            if not each.finished:
                placed.append(infos.of(each))
        elif each.status.nominated_node_name and (pod is None or each.uid != pod.uid):
            cache.nominations.put(each, each.status.nominated_node_name)
    cache.add_pods(placed)
