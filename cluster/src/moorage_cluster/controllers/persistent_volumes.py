"""Persistent volumes: binding claims to volumes, requesting new ones, and releasing them.

Claims and volumes are reconciled one by one, and binding can begin from either side: a claim looks for a
volume or for a provisioner; a volume with a claim reference (written by the user, a provisioner or the
scheduler) enqueues that claim to finish the binding.
"""

from __future__ import annotations

from typing import Final

from moorage.api.manifests import Manifest, annotations_of, copy
from moorage.api.persistent_volumes import (
    BIND_COMPLETED,
    DEFAULT_CLASS,
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
    class_of,
    has_volume_mode,
    is_bound_to,
    is_default_class,
    volume_class,
)
from moorage.api.storage import PersistentVolume
from moorage.client.informer import EventType, Index
from moorage.client.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, POD, STORAGE_CLASS
from moorage.plugins.volumes.csi_migration import DRIVER_OF
from moorage_cluster.apiserver.admission.default_classes import newest_default
from moorage_cluster.controllers.cluster import Cluster
from moorage_cluster.controllers.controller import Controller
from moorage_cluster.controllers.decoded_objects import DecodedObjects
from moorage_cluster.controllers.volume_binding import VolumeBindings
from moorage_cluster.controllers.volume_facts import (
    BETA_STORAGE_PROVISIONER,
    PROVISIONED_BY,
    STORAGE_PROVISIONER,
    as_claim,
    as_volume,
    claim_key,
    claim_keys_of,
    claimed_by,
    has_ended,
    phase_of,
)
from moorage_cluster.controllers.volume_matching import best_match, mismatch
from moorage_cluster.controllers.volume_reclaiming import VolumeReclaimer

_BUILT_IN: Final = "kubernetes.io/"
_CSI_DRIVERS: Final = {
    **DRIVER_OF,
    "kubernetes.io/azure-file": "file.csi.azure.com",
    "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
}
"""The CSI drivers that replace the in-tree provisioners of storage classes."""


class PersistentVolumeBinder(Controller):
    """Reconciles claims and, under their bare names, volumes."""

    name = "persistentvolume-controller"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._claims = cluster.informer(PERSISTENT_VOLUME_CLAIM)
        self._volumes = cluster.informer(PERSISTENT_VOLUME)
        self._classes = cluster.informer(STORAGE_CLASS)
        self._unbound_by_class = Index(self._claims, _class_of_unbound)
        self._claims_by_volume = Index(self._claims, _named_volume)
        decoded = DecodedObjects(self._volumes, PersistentVolume)
        self._volumes_by_class = Index(decoded, lambda volume: [volume_class(volume)])
        self._volumes_by_claim = Index(decoded, _reserved_for)
        self._users = Index(cluster.informer(POD), claim_keys_of)
        self._bindings = VolumeBindings(cluster)
        self._reclaimer = VolumeReclaimer(cluster, self._bindings, self.name)
        self.watch(PERSISTENT_VOLUME_CLAIM, self._claim_changed)
        self.watch(PERSISTENT_VOLUME, self._volume_changed)
        self.watch(STORAGE_CLASS, self._class_changed)
        self.watch(POD, self._pod_changed)

    # -- the queue

    def _claim_changed(self, type: EventType, claim: Manifest, before: Manifest | None) -> None:
        if type != "DELETED":
            self._enqueue(claim)
            return
        for volume in self._volumes_by_claim.get(claim_key(claim)):
            self.enqueue("", volume.name)

    def _volume_changed(self, type: EventType, volume: Manifest, before: Manifest | None) -> None:
        self._enqueue(volume)
        for claim in self._claims_by_volume.get(volume["metadata"]["name"]):
            self._enqueue(claim)
        if claimed_by(volume):
            namespace, name = claimed_by(volume).split("/")
            self.enqueue(namespace, name)
        elif phase_of(volume) == "Available":
            self._enqueue_unbound(_class_name(volume))

    def _class_changed(self, type: EventType, storage_class: Manifest, before: Manifest | None) -> None:
        self._enqueue_unbound(storage_class["metadata"]["name"])
        if is_default_class(storage_class):
            self._enqueue_unbound("")

    def _pod_changed(self, type: EventType, pod: Manifest, before: Manifest | None) -> None:
        """Enqueue claims that wait for their first consumer: their event names the pods."""
        if type != "MODIFIED":
            for key in claim_keys_of(pod):
                self.enqueue(*key.split("/"))

    def _enqueue(self, obj: Manifest) -> None:
        self.enqueue(obj["metadata"].get("namespace", ""), obj["metadata"]["name"])

    def _enqueue_unbound(self, class_name: str) -> None:
        for claim in self._unbound_by_class.get(class_name):
            self._enqueue(claim)

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Reconcile one claim or volume."""
        if not namespace:
            volume = self._volumes.get("", name)
            if volume is not None:
                await self._reconcile_volume(volume)
            return None
        claim = self._claims.get(namespace, name)
        if claim is None:
            return None
        if BIND_COMPLETED in annotations_of(claim):
            await self._sync_bound(claim)
        elif claim["spec"].get("volumeName"):
            await self._bind_named(claim)
        else:
            await self._find_volume(claim)
        return None

    # -- claims without volume

    async def _find_volume(self, claim: Manifest) -> None:
        late = self._binds_late(claim)
        candidates = self._volumes_by_claim.get(claim_key(claim))
        if not late:
            candidates += self._volumes_by_class.get(_class_name(claim))
        found = best_match(as_claim(claim), candidates)
        if found is not None:
            await self._bindings.bind(self._volumes.objects["", found.name], claim)
        elif not await self._assign_default_class(claim):
            await self._provision(claim, late)

    def _binds_late(self, claim: Manifest) -> bool:
        storage_class = self._classes.get("", _class_name(claim))
        return storage_class is not None and storage_class["volumeBindingMode"] == WAIT_FOR_FIRST_CONSUMER

    async def _assign_default_class(self, claim: Manifest) -> bool:
        """A default class also applies to claims that were created before it."""
        default = newest_default(self._classes.objects.values(), DEFAULT_CLASS)
        if class_of(claim) is not None or default is None:
            return False
        new = copy(claim)
        new["spec"]["storageClassName"] = default
        await self.cluster.update(PERSISTENT_VOLUME_CLAIM, new)
        return True

    async def _provision(self, claim: Manifest, late: bool) -> None:
        if late and SELECTED_NODE not in annotations_of(claim):
            await self._record_waiting(claim)
        elif _class_name(claim):
            await self._annotate_provisioner(claim)
            return
        else:
            message = "no persistent volumes available for this claim and no storage class is set"
            await self.cluster.record_event(claim, "Normal", "FailedBinding", message, self.name)
        await self._bindings.set_claim_phase(claim, "Pending")

    async def _record_waiting(self, claim: Manifest) -> None:
        waiting = [
            pod["metadata"]["name"]
            for pod in self._users.get(claim_key(claim))
            if not pod["spec"].get("nodeName") and not has_ended(pod)
        ]
        reason, message = "WaitForFirstConsumer", "waiting for first consumer to be created before binding"
        if waiting:
            noun = "pods" if len(waiting) > 1 else "pod"
            reason = "WaitForPodScheduled"
            message = f"waiting for {noun} {','.join(waiting)} to be scheduled"
        await self.cluster.record_event(claim, "Normal", reason, message, self.name)

    async def _annotate_provisioner(self, claim: Manifest) -> None:
        class_name = _class_name(claim)
        storage_class = self._classes.get("", class_name)
        if storage_class is None:
            message = f'storageclass.storage.k8s.io "{class_name}" not found'
            await self.cluster.record_event(claim, "Warning", "ProvisioningFailed", message, self.name)
            return
        provisioner: str = storage_class["provisioner"]
        provisioner = _CSI_DRIVERS.get(provisioner, provisioner)
        if provisioner.startswith(_BUILT_IN):
            message = f"no volume plugin matched name: {provisioner}"
            await self.cluster.record_event(claim, "Warning", "ProvisioningFailed", message, self.name)
            return
        asked = {BETA_STORAGE_PROVISIONER: provisioner, STORAGE_PROVISIONER: provisioner}
        if not asked.items() <= annotations_of(claim).items():
            new = copy(claim)
            new["metadata"]["annotations"] = {**annotations_of(claim), **asked}
            claim = await self.cluster.update(PERSISTENT_VOLUME_CLAIM, new)
        message = (
            f"Waiting for a volume to be created either by the external provisioner '{provisioner}' "
            "or manually by the system administrator. If volume creation is delayed, please verify that "
            "the provisioner is running and correctly registered."
        )
        await self.cluster.record_event(claim, "Normal", "ExternalProvisioning", message, self.name)

    # -- claims with a volume

    async def _bind_named(self, claim: Manifest) -> None:
        """Bind a claim to the volume that it names, if possible."""
        name = claim["spec"]["volumeName"]
        volume = self._volumes.get("", name)
        if volume is not None and is_bound_to(as_volume(volume), as_claim(claim)):
            await self._bindings.bind(volume, claim)
            return
        if volume is not None and not volume["spec"].get("claimRef"):
            problem = mismatch(as_volume(volume), as_claim(claim))
            if not problem:
                await self._bindings.bind(volume, claim)
                return
            message = f'Cannot bind to requested volume "{name}": {problem}'
            await self.cluster.record_event(claim, "Warning", "VolumeMismatch", message, self.name)
        elif volume is not None:
            message = f'volume "{name}" already bound to a different claim.'
            await self.cluster.record_event(claim, "Warning", "FailedBinding", message, self.name)
        await self._bindings.set_claim_phase(claim, "Pending")

    async def _sync_bound(self, claim: Manifest) -> None:
        """Keep a bound claim bound, or mark it as Lost."""
        name = claim["spec"].get("volumeName")
        volume = self._volumes.get("", name) if name else None
        if volume is not None:
            reference = volume["spec"].get("claimRef")
            if not reference or reference.get("uid") == claim["metadata"]["uid"]:
                await self._bindings.bind(volume, claim)
                return
            reason = "ClaimMisbound"
            message = "Two claims are bound to the same volume, this one is bound incorrectly"
        else:
            reason = "ClaimLost"
            lost = "its PersistentVolume" if name else "reference to PersistentVolume"
            message = f"Bound claim has lost {lost}. Data on the volume is lost!"
        if phase_of(claim) != "Lost":
            claim = await self._bindings.set_claim_phase(claim, "Lost")
            await self.cluster.record_event(claim, "Warning", reason, message, self.name)

    # -- volumes

    async def _reconcile_volume(self, volume: Manifest) -> None:
        reference = volume["spec"].get("claimRef")
        if not reference or not reference.get("uid"):
            await self._bindings.set_volume_phase(volume, "Available")
            return
        claim = self._claims.get(reference["namespace"], reference["name"])
        if claim is None or claim["metadata"]["uid"] != reference["uid"]:
            await self._reclaimer.release(volume)
        elif not claim["spec"].get("volumeName"):
            await self._announce_binding(claim, volume)
        elif claim["spec"]["volumeName"] == volume["metadata"]["name"]:
            await self._bindings.set_volume_phase(volume, "Bound")
        elif (
            PROVISIONED_BY in annotations_of(volume)
            and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete"
        ):
            await self._reclaimer.release(volume)
        else:
            await self._bindings.unbind(volume)

    async def _announce_binding(self, claim: Manifest, volume: Manifest) -> None:
        """Enqueue the claim that a volume is reserved for, to finish the binding."""
        if has_volume_mode(as_volume(volume), as_claim(claim)):
            self._enqueue(claim)
            return
        names = volume["metadata"]["name"], claim["metadata"]["name"]
        start, end = "Cannot bind PersistentVolume", "due to incompatible volumeMode."
        message = f'{start} to requested PersistentVolumeClaim "{names[1]}" {end}'
        await self.cluster.record_event(volume, "Warning", "VolumeMismatch", message, self.name)
        message = f'{start} "{names[0]}" to requested PersistentVolumeClaim {end}'
        await self.cluster.record_event(claim, "Warning", "VolumeMismatch", message, self.name)


def _class_name(obj: Manifest) -> str:
    """The storage class of a volume or claim; empty if it has none."""
    return class_of(obj) or ""


def _reserved_for(volume: PersistentVolume) -> list[str]:
    reference = volume.spec.claim_ref
    return [f"{reference.namespace}/{reference.name}"] if reference else []


def _class_of_unbound(claim: Manifest) -> list[str]:
    return [] if BIND_COMPLETED in annotations_of(claim) else [_class_name(claim)]


def _named_volume(claim: Manifest) -> list[str]:
    name = claim["spec"].get("volumeName")
    return [name] if name else []
