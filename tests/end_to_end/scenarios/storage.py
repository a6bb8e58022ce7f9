"""Volumes that are made by hand."""

from __future__ import annotations

from tests.up.objects import Manifest

SELECTED_NODE = r"{.metadata.annotations.volume\.kubernetes\.io/selected-node}"
"""Where a claim says for which node its volume is to be made."""


def storage_class(name: str, mode: str) -> Manifest:
    """A class of volumes that nobody makes, unless the test does."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "example.com/by-hand",
        "volumeBindingMode": mode,
    }


def mounted(claim: str) -> Manifest:
    """A pod's volume that is a claim's."""
    return {"name": claim, "persistentVolumeClaim": {"claimName": claim}}


def provisioned(claim: Manifest) -> Manifest:
    """The volume that somebody makes for a claim."""
    meta, spec = claim["metadata"], claim["spec"]
    reference = {key: meta[key] for key in ("namespace", "name", "uid")}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"for-{meta['uid']}"},
        "spec": {
            "capacity": spec["resources"]["requests"],
            "accessModes": spec["accessModes"],
            "storageClassName": spec["storageClassName"],
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **reference},
            "hostPath": {"path": "/data"},
        },
    }
