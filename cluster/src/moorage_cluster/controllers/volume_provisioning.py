"""The built-in provisioner: creates host-path volumes for claims of its storage classes, and deletes them.

It uses the same annotations as any external provisioner: the binder names the provisioner in the claim, with
delayed binding once the scheduler has selected a node. With the class's parameter `topology: node` a
volume can be reached only from that node; otherwise from everywhere.
"""

from __future__ import annotations

from typing import Final

from moorage.api.labels import HOSTNAME
from moorage.api.manifests import Manifest, annotations_of, copy
from moorage.api.persistent_volumes import DEFAULT_CLASS, SELECTED_NODE, WAIT_FOR_FIRST_CONSUMER, class_of
from moorage.client.informer import EventType
from moorage.client.kinds import NODE, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS
from moorage.http.errors import RequestError
from moorage_cluster.controllers.cluster import Cluster
from moorage_cluster.controllers.controller import Controller
from moorage_cluster.controllers.volume_facts import (
    PROVISIONED_BY,
    STORAGE_PROVISIONER,
    claim_key,
    phase_of,
    reference_to,
)

PROVISIONER: Final = "moorage.io/hostpath"
"""The name of this provisioner in storage classes."""

_VOLUMES_DIRECTORY: Final = "/var/lib/moorage/volumes"


def default_storage_class() -> Manifest:
    """The default class `standard`, with binding mode WaitForFirstConsumer."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": "standard",
            "annotations": {DEFAULT_CLASS[0]: "true"},
        },
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": WAIT_FOR_FIRST_CONSUMER,
    }


class HostPathProvisioner(Controller):
    """Reconciles claims to provision and, under their bare names, volumes to delete."""

    name = PROVISIONER

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._claims = cluster.informer(PERSISTENT_VOLUME_CLAIM)
        self._volumes = cluster.informer(PERSISTENT_VOLUME)
        self._classes = cluster.informer(STORAGE_CLASS)
        self._nodes = cluster.informer(NODE)
        self.watch(PERSISTENT_VOLUME_CLAIM, self._claim_changed)
        self.watch(PERSISTENT_VOLUME, self._volume_changed)

    def _claim_changed(self, type: EventType, claim: Manifest, before: Manifest | None) -> None:
        if annotations_of(claim).get(STORAGE_PROVISIONER) == PROVISIONER:
            self.enqueue(claim["metadata"]["namespace"], claim["metadata"]["name"])

    def _volume_changed(self, type: EventType, volume: Manifest, before: Manifest | None) -> None:
        if annotations_of(volume).get(PROVISIONED_BY) == PROVISIONER and phase_of(volume) == "Released":
            self.enqueue("", volume["metadata"]["name"])

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Provision a claim's volume, or delete a volume."""
        if namespace:
            claim = self._claims.get(namespace, name)
            if claim is not None:
                await self._provision(claim)
            return None
        volume = self._volumes.get("", name)
        if (
            volume is not None
            and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete"
            and phase_of(volume) == "Released"
            and "deletionTimestamp" not in volume["metadata"]
        ):
            await self.cluster.delete(PERSISTENT_VOLUME, volume)
        return None

    async def _provision(self, claim: Manifest) -> None:
        meta, annotations = claim["metadata"], annotations_of(claim)
        storage_class = self._classes.get("", class_of(claim) or "")
        name = f"pvc-{meta['uid']}"
        if (
            storage_class is None
            or storage_class["provisioner"] != PROVISIONER
            or claim["spec"].get("volumeName")
            or "deletionTimestamp" in meta
            or self._volumes.get("", name) is not None
        ):
            return
        node_name = annotations.get(SELECTED_NODE, "")
        if not node_name and storage_class["volumeBindingMode"] == WAIT_FOR_FIRST_CONSUMER:
            return
        node = self._nodes.get("", node_name) if node_name else None
        if node_name and node is None:
            await self._choose_again(claim, f'failed to get target node: node "{node_name}" not found')
            return
        doing = f'External provisioner is provisioning volume for claim "{claim_key(claim)}"'
        await self.cluster.record_event(claim, "Normal", "Provisioning", doing, self.name)
        try:
            await self.cluster.create(PERSISTENT_VOLUME, "", _volume(name, claim, storage_class, node))
        except RequestError as error:
            if not error.already_exists:
                class_name = storage_class["metadata"]["name"]
                message = f'failed to provision volume with StorageClass "{class_name}": {error.message}'
                await self.cluster.record_event(claim, "Warning", "ProvisioningFailed", message, self.name)
                raise
        done = f"Successfully provisioned volume {name}"
        await self.cluster.record_event(claim, "Normal", "ProvisioningSucceeded", done, self.name)

    async def _choose_again(self, claim: Manifest, problem: str) -> None:
        """Remove the selected node, so that the scheduler selects another."""
        await self.cluster.record_event(claim, "Warning", "ProvisioningFailed", problem, self.name)
        new = copy(claim)
        del new["metadata"]["annotations"][SELECTED_NODE]
        await self.cluster.update(PERSISTENT_VOLUME_CLAIM, new)


def _volume(name: str, claim: Manifest, storage_class: Manifest, node: Manifest | None) -> Manifest:
    asked = claim["spec"]
    is_block = asked.get("volumeMode") == "Block"
    spec: Manifest = {
        "capacity": {"storage": asked["resources"]["requests"]["storage"]},
        "accessModes": asked["accessModes"],
        "volumeMode": asked.get("volumeMode") or "Filesystem",
        "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
        "storageClassName": class_of(claim) or "",
        "claimRef": reference_to(claim),
        "hostPath": {
            "path": f"{_VOLUMES_DIRECTORY}/{name}",
            "type": "BlockDevice" if is_block else "DirectoryOrCreate",
        },
    }
    if asked.get("volumeAttributesClassName"):
        spec["volumeAttributesClassName"] = asked["volumeAttributesClassName"]
    if node is not None and (storage_class.get("parameters") or {}).get("topology") == "node":
        spec["nodeAffinity"] = _only_on(node)
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: PROVISIONER}},
        "spec": spec,
    }


def _only_on(node: Manifest) -> Manifest:
    meta = node["metadata"]
    hostname = (meta.get("labels") or {}).get(HOSTNAME, meta["name"])
    here = {"key": HOSTNAME, "operator": "In", "values": [hostname]}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}
