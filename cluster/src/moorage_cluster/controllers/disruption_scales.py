"""Desired replicas of the controllers of pods: the base of a budget's percentages."""

from __future__ import annotations

from collections.abc import Iterable

from moorage.api.manifests import Manifest
from moorage.client.kinds import DEPLOYMENT, REPLICA_SET, REPLICATION_CONTROLLER, STATEFUL_SET, Kind
from moorage.http.errors import RequestError
from moorage_cluster.controllers.cluster import Cluster, controller_of

_KNOWN = {
    ("", "ReplicationController"): REPLICATION_CONTROLLER,
    ("apps", "ReplicaSet"): REPLICA_SET,
    ("apps", "StatefulSet"): STATEFUL_SET,
}


class UnknownScaleError(Exception):
    """The number of expected pods cannot be determined."""


class Scales:
    """Finds the controllers of pods: those of Kubernetes, and others by their scale subresource."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        for kind in (*_KNOWN.values(), DEPLOYMENT):
            cluster.informer(kind)

    async def total(self, pods: Iterable[Manifest]) -> tuple[int, list[str]]:
        """The replicas of all controllers of pods, and the names of the pods that have no controller."""
        replicas: dict[str, int] = {}
        asked: set[str] = set()
        unmanaged = []
        for pod in pods:
            owner = controller_of(pod)
            if owner is None:
                unmanaged.append(pod["metadata"]["name"])
            elif owner["uid"] not in asked:
                found = await self._find(owner, pod["metadata"]["namespace"])
                if found is None:
                    raise UnknownScaleError(f'found no controllers for pod "{pod["metadata"]["name"]}"')
                asked.add(owner["uid"])
                replicas[found[0]] = found[1]
        return sum(replicas.values()), unmanaged

    async def _find(self, owner: Manifest, namespace: str) -> tuple[str, int] | None:
        """The uid and the replicas of a controller, or of the Deployment that owns it."""
        group = owner["apiVersion"].rpartition("/")[0]
        kind = _KNOWN.get((group, owner["kind"]))
        if kind is None:
            return await self._scale(owner, namespace)
        found = self._known(kind, owner, namespace)
        above = controller_of(found) if found else None
        if above is not None and above["kind"] == "Deployment":
            found = self._known(DEPLOYMENT, above, namespace)
        return (found["metadata"]["uid"], found["spec"].get("replicas", 1)) if found else None

    def _known(self, kind: Kind, owner: Manifest, namespace: str) -> Manifest | None:
        found = self._cluster.informer(kind).get(namespace, owner["name"])
        return found if found and found["metadata"]["uid"] == owner["uid"] else None

    async def _scale(self, owner: Manifest, namespace: str) -> tuple[str, int] | None:
        group, _, version = owner["apiVersion"].rpartition("/")
        root = f"/apis/{group}/{version}" if group else f"/api/{version}"
        plural, has_scale = await self._resource(root, owner)
        if not has_scale:
            name = f"{plural}.{group}" if group else plural
            raise UnknownScaleError(f"{name} does not implement the scale subresource")
        try:
            scale = await self._cluster.client.call(
                "GET", f"{root}/namespaces/{namespace}/{plural}/{owner['name']}/scale"
            )
        except RequestError as error:
            if error.is_not_found:
                return None
            raise
        if scale["metadata"].get("uid") != owner["uid"]:
            return None
        return owner["uid"], (scale.get("spec") or {}).get("replicas", 0)

    async def _resource(self, root: str, owner: Manifest) -> tuple[str, bool]:
        """The plural of an owner's kind, and whether it has a scale subresource."""
        try:
            found = await self._cluster.client.call("GET", root)
        except RequestError as error:
            if not error.is_not_found:
                raise
            found = {"resources": []}
        names = {each["name"]: each["kind"] for each in found["resources"]}
        plural = next(
            (name for name, kind in names.items() if kind == owner["kind"] and "/" not in name), None
        )
        if plural is None:
            problem = f'no matches for kind "{owner["kind"]}" in version "{owner["apiVersion"]}"'
            raise UnknownScaleError(problem)
        return plural, f"{plural}/scale" in names
