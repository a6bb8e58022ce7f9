"""Properties of volumes, claims and pods for the storage controllers.

Rules that the scheduler has as well are in `moorage.api.persistent_volumes`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from moorage.api.decode import convert
from moorage.api.manifests import Manifest
from moorage.api.storage import PersistentVolume, PersistentVolumeClaim
from moorage_cluster.controllers.cluster import controller_of
from moorage_cluster.controllers.pods import is_finished

PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
"""On a volume: its provisioner."""
MIGRATED_TO: Final = "pv.kubernetes.io/migrated-to"
"""On a volume: the CSI driver that replaces an in-tree plugin."""
STORAGE_PROVISIONER: Final = "volume.kubernetes.io/storage-provisioner"
BETA_STORAGE_PROVISIONER: Final = "volume.beta.kubernetes.io/storage-provisioner"
"""On a claim: the provisioner of its volume, in the current and the deprecated annotation."""


def as_claim(claim: Manifest) -> PersistentVolumeClaim:
    """A claim in the type that the rules for claims have."""
    return convert(claim, PersistentVolumeClaim)


def as_volume(volume: Manifest) -> PersistentVolume:
    """A volume in the type that the rules for volumes have."""
    return convert(volume, PersistentVolume)


def reference_to(claim: Manifest) -> Manifest:
    """The claimRef of a volume that is bound to a claim."""
    meta = claim["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": meta["namespace"],
        "name": meta["name"],
        "uid": meta["uid"],
        "resourceVersion": meta["resourceVersion"],
    }


def claim_key(claim: Manifest) -> str:
    """A claim's namespace and name, for messages and indexes."""
    return f"{claim['metadata']['namespace']}/{claim['metadata']['name']}"


def claimed_by(volume: Manifest) -> str:
    """The key of the claim that a volume is bound to or reserved for; empty if there is none."""
    reference = volume["spec"].get("claimRef")
    return f"{reference.get('namespace', '')}/{reference.get('name', '')}" if reference else ""


def phase_of(obj: Manifest) -> str:
    """The phase of a volume or claim."""
    phase: str = (obj.get("status") or {}).get("phase") or ""
    return phase


def claims_of(pod: Manifest) -> Iterator[tuple[str, bool]]:
    """The names of the claims that a pod uses, and whether each is ephemeral."""
    for volume in pod["spec"].get("volumes") or ():
        if volume.get("persistentVolumeClaim"):
            yield volume["persistentVolumeClaim"]["claimName"], False
        elif volume.get("ephemeral") is not None:
            yield f"{pod['metadata']['name']}-{volume['name']}", True


def claim_keys_of(pod: Manifest) -> list[str]:
    """The keys of the claims that a pod uses."""
    return [f"{pod['metadata']['namespace']}/{name}" for name, _ in claims_of(pod)]


def is_made_for(claim: Manifest, pod: Manifest) -> bool:
    """Whether a claim was created for a pod's ephemeral volume."""
    owner = controller_of(claim)
    return owner is not None and owner["uid"] == pod["metadata"]["uid"]


def has_ended(pod: Manifest) -> bool:
    """Whether a pod's containers have terminated for good."""
    if is_finished(pod):
        return True
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return "deletionTimestamp" in pod["metadata"] and all(
        "terminated" in state or "waiting" in state
        for state in ((status.get("state") or {}) for status in statuses)
    )
