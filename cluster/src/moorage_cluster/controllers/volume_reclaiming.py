"""Reclaim policies of volumes with a deleted claim: Retain, Recycle or Delete."""

from __future__ import annotations

from typing import Final

from moorage.api.manifests import Manifest, annotations_of
from moorage.client.kinds import PERSISTENT_VOLUME
from moorage_cluster.controllers.cluster import Cluster
from moorage_cluster.controllers.volume_binding import VolumeBindings
from moorage_cluster.controllers.volume_facts import MIGRATED_TO, PROVISIONED_BY, phase_of

_DELETABLE_DIRECTORY: Final = "/tmp/"
"""Host paths elsewhere are not deleted by the controller."""
_RECYCLABLE: Final = ("hostPath", "nfs")


class VolumeReclaimer:
    """Applies reclaim policies; provisioned volumes are left to their provisioner."""

    def __init__(self, cluster: Cluster, bindings: VolumeBindings, component: str) -> None:
        self._cluster = cluster
        self._bindings = bindings
        self._component = component

    async def release(self, volume: Manifest) -> None:
        """Mark a volume as Released and apply its reclaim policy."""
        if phase_of(volume) not in ("Released", "Failed"):
            volume = await self._bindings.set_volume_phase(volume, "Released")
        if annotations_of(volume).get(MIGRATED_TO):
            return
        match volume["spec"].get("persistentVolumeReclaimPolicy"):
            case "Retain":
                pass
            case "Delete":
                await self._delete(volume)
            case "Recycle":
                await self._recycle(volume)
            case _:
                message = "Volume has unrecognized PersistentVolumeReclaimPolicy"
                await self._fail(volume, "VolumeUnknownReclaimPolicy", message)

    async def _delete(self, volume: Manifest) -> None:
        made_by = annotations_of(volume).get(PROVISIONED_BY, "")
        if volume["spec"].get("csi") or (made_by and not made_by.startswith("kubernetes.io/")):
            return
        problem = _why_not_deletable(volume)
        if problem:
            await self._fail(volume, "VolumeFailedDelete", problem)
        elif "deletionTimestamp" not in volume["metadata"]:
            await self._cluster.delete(PERSISTENT_VOLUME, volume)

    async def _recycle(self, volume: Manifest) -> None:
        if not any(source in volume["spec"] for source in _RECYCLABLE):
            await self._fail(volume, "VolumeFailedRecycle", "No recycler plugin found for the volume!")
            return
        await self._cluster.record_event(
            volume, "Normal", "VolumeRecycled", "Volume recycled", self._component
        )
        await self._bindings.unbind(volume)

    async def _fail(self, volume: Manifest, reason: str, message: str) -> None:
        if phase_of(volume) != "Failed":
            volume = await self._bindings.set_volume_phase(volume, "Failed", message)
            await self._cluster.record_event(volume, "Warning", reason, message, self._component)


def _why_not_deletable(volume: Manifest) -> str:
    """Why a volume without provisioner cannot be deleted; empty if it can."""
    host_path = volume["spec"].get("hostPath")
    name = volume["metadata"]["name"]
    if not host_path:
        return f'error getting deleter volume plugin for volume "{name}": no deletable volume plugin matched'
    path: str = host_path["path"]
    if not path.startswith(_DELETABLE_DIRECTORY) or path == _DELETABLE_DIRECTORY:
        return f"host_path deleter only supports /tmp/.+ but received provided {path}"
    return ""
