"""Builders of what the infrastructure controllers look at."""

from __future__ import annotations

from typing import Any

from moorage.api.manifests import Manifest, micro_timestamp, timestamp
from moorage.client.kinds import LEASE, NODE, POD
from tests.controllers.harness import Harness


def storage_class(name: str, provisioner: str = "example.com/disks", **further: Any) -> Manifest:
    return {"metadata": {"name": name}, "provisioner": provisioner, **further}


def claim(
    name: str,
    size: str = "1Gi",
    modes: tuple[str, ...] = ("ReadWriteOnce",),
    class_name: str | None = "",
    **spec: Any,
) -> Manifest:
    asked: Manifest = {
        "accessModes": list(modes),
        "resources": {"requests": {"storage": size}},
        **spec,
    }
    if class_name is not None:
        asked["storageClassName"] = class_name
    return {"metadata": {"name": name, "namespace": "default"}, "spec": asked}


def volume(
    name: str,
    size: str = "1Gi",
    modes: tuple[str, ...] = ("ReadWriteOnce",),
    labels: dict[str, str] | None = None,
    policy: str = "Retain",
    source: Manifest | None = None,
    **spec: Any,
) -> Manifest:
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": list(modes),
            "persistentVolumeReclaimPolicy": policy,
            **(source or {"hostPath": {"path": "/data"}}),
            **spec,
        },
    }


def pod(name: str, labels: dict[str, str] | None = None, **spec: Any) -> Manifest:
    return {
        "metadata": {"name": name, "namespace": "default", "labels": labels or {"app": name}},
        "spec": {"containers": [{"name": "main", "image": "registry.example/app:1"}], **spec},
    }


def pod_with_claim(name: str, claim_name: str, **spec: Any) -> Manifest:
    return pod(name, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}], **spec)


def running(harness: Harness, name: str, node: str, **spec: Any) -> Manifest:
    """A pod that runs on a node and is ready."""
    harness.bind(harness.create(POD, pod(name, **spec)), node)
    harness.run_pods(where=lambda each: each["metadata"]["name"] == name)
    return harness.get(POD, name)


def conditions(obj: Manifest) -> dict[str, str]:
    return {each["type"]: each["status"] for each in obj["status"].get("conditions") or ()}


def condition(obj: Manifest, type: str) -> Manifest:
    return next(each for each in obj["status"]["conditions"] if each["type"] == type)


def taints(harness: Harness, node: str) -> set[str]:
    found = harness.get(NODE, node)["spec"].get("taints") or ()
    return {f"{each['key'].removeprefix('node.kubernetes.io/')}:{each['effect']}" for each in found}


class Kubelets:
    """Nodes that report themselves, until told not to."""

    def __init__(self, harness: Harness) -> None:
        self._harness = harness
        self.alive: list[str] = []

    def add(self, name: str, zone: str = "", **spec: Any) -> None:
        labels = {"topology.kubernetes.io/zone": zone} if zone else {}
        self._harness.create(
            NODE,
            {
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
                "spec": spec,
                "status": {"capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"}},
            },
        )
        self.report(name)
        lease: Manifest = {
            "metadata": {"name": name, "namespace": "kube-node-lease"},
            "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": self._renew_time()},
        }
        self._harness.create(LEASE, lease)
        self.alive.append(name)

    def report(self, name: str, **statuses: str) -> None:
        """A node posts its status; conditions that are not named are well."""
        now = timestamp(self._harness.now())
        well = {"MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False", "Ready": "True"}
        posted = [
            {
                "type": type,
                "status": status,
                "reason": "KubeletSays",
                "message": "",
                "lastHeartbeatTime": now,
                "lastTransitionTime": now,
            }
            for type, status in {**well, **statuses}.items()
        ]
        self._harness.patch(
            NODE, name, {"status": {"conditions": posted}}, type="merge", subresource="status"
        )

    def pass_time(self, seconds: int) -> None:
        """Time passes; whoever lives renews its lease every ten seconds."""
        for _ in range(seconds // 10):
            self._harness.advance(10, step=10)
            for name in self.alive:
                patch = {"spec": {"renewTime": self._renew_time()}}
                self._harness.patch(LEASE, name, patch, "kube-node-lease")
        if seconds % 10:
            self._harness.advance(seconds % 10, step=seconds % 10)

    def _renew_time(self) -> str:
        return micro_timestamp(self._harness.now())
