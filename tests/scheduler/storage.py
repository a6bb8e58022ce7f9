"""Claims, volumes and their classes in a scheduler's world."""

from __future__ import annotations

from typing import Any

from moorage.client.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS
from moorage_cluster.controllers.volume_provisioning import default_storage_class
from tests.scheduler.running import SchedulerHarness


async def add_claim(harness: SchedulerHarness, name: str, class_name: str = "standard") -> None:
    """A claim for a gigabyte."""
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": class_name,
        "resources": {"requests": {"storage": "1Gi"}},
    }
    meta = {"name": name, "namespace": "default"}
    body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}
    await harness.client.create(PERSISTENT_VOLUME_CLAIM, "default", body)


async def add_volume(harness: SchedulerHarness, name: str, class_name: str) -> None:
    """A volume of a gigabyte."""
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": class_name,
        "hostPath": {"path": "/data"},
    }
    body = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}
    await harness.client.create(PERSISTENT_VOLUME, "", body)


async def add_class(harness: SchedulerHarness, name: str, mode: str) -> None:
    """A class whose volumes are not provisioned."""
    body = default_storage_class() | {
        "volumeBindingMode": mode,
        "provisioner": "kubernetes.io/no-provisioner",
    }
    await harness.client.create(STORAGE_CLASS, "", body | {"metadata": {"name": name}})


def using(claim: str) -> dict[str, Any]:
    """What makes a pod use a claim."""
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]}
