"""The controllers that recordings need: without a scheduler of their own, in the test's process.

Volumes are bound and made as they were when the recordings were made; devices of a pod that is replaced by
one on another node are given back.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Final

from moorage.api.labels import HOSTNAME
from moorage.api.manifests import Manifest, annotations_of
from moorage.api.persistent_volumes import SELECTED_NODE, class_of
from moorage.client.client import Client
from moorage.client.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from moorage.clock import LoopClock
from moorage_cluster.controllers.cluster import Cluster
from moorage_cluster.controllers.controller import Controller
from moorage_cluster.controllers.manager import ControllerManager, MakeController
from moorage_cluster.controllers.persistent_volumes import PersistentVolumeBinder
from moorage_cluster.controllers.resource_claims import ResourceClaimRelease
from moorage_cluster.controllers.volume_facts import STORAGE_PROVISIONER, reference_to


class Provisioner(Controller):
    """Makes the volume that a claim asks for, whoever is to make it, on the node that was selected."""

    name = "provisioner"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._claims = cluster.informer(PERSISTENT_VOLUME_CLAIM)
        self._volumes = cluster.informer(PERSISTENT_VOLUME)
        self.watch(PERSISTENT_VOLUME_CLAIM)

    async def reconcile(self, namespace: str, name: str) -> float | None:
        claim = self._claims.get(namespace, name)
        if claim is None or claim["spec"].get("volumeName") or "deletionTimestamp" in claim["metadata"]:
            return None
        annotations = annotations_of(claim)
        driver, node_name = annotations.get(STORAGE_PROVISIONER), annotations.get(SELECTED_NODE)
        if driver and node_name and self._volumes.get("", _volume_name(claim)) is None:
            await self.cluster.create(PERSISTENT_VOLUME, "", _volume(claim, driver, node_name))
        return None


CONTROLLERS: Final[dict[str, tuple[MakeController, ...]]] = {
    "late-binding": (PersistentVolumeBinder,),
    "provisioning": (PersistentVolumeBinder, Provisioner),
    "dra": (ResourceClaimRelease,),
    "dra-deep": (ResourceClaimRelease,),
    "partitions": (ResourceClaimRelease,),
}
"""By family. All others stay away: the status of a disruption budget, say, is to be as recorded."""


@asynccontextmanager
async def controlled(client: Client, family: str) -> AsyncIterator[None]:
    """The controllers of a family are at work while the context lasts."""
    manager = ControllerManager(Cluster(client, LoopClock(), Random(0)), CONTROLLERS.get(family, ()))
    running = asyncio.ensure_future(manager.run())
    try:
        yield
    finally:
        running.cancel()
        await asyncio.wait((running,))


def _volume_name(claim: Manifest) -> str:
    return f"pvc-{claim['metadata']['uid']}"


def _volume(claim: Manifest, driver: str, node_name: str) -> Manifest:
    here = {"key": HOSTNAME, "operator": "In", "values": [node_name]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": _volume_name(claim)},
        "spec": {
            "capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]},
            "accessModes": claim["spec"]["accessModes"],
            "volumeMode": claim["spec"]["volumeMode"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": class_of(claim),
            "claimRef": reference_to(claim),
            "csi": {"driver": driver, "volumeHandle": _volume_name(claim)},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        },
    }
