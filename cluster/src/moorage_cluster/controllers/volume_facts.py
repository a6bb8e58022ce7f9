"""Properties of volumes, claims and pods for the storage controllers: annotations, classes, bindings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from moorage.api.manifests import Manifest, annotations_of
from moorage.api.quantity import Quantity, parse_quantity
from moorage_cluster.controllers.cluster import controller_of
from moorage_cluster.controllers.pods import is_finished

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
"""On a claim: its binding is finished. The value has no meaning."""
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
"""On a volume or claim: the binding was made by a controller, not by the user."""
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
"""On a volume: its provisioner."""
MIGRATED_TO: Final = "pv.kubernetes.io/migrated-to"
"""On a volume: the CSI driver that replaces an in-tree plugin."""
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
"""On a claim: the node to provision its volume for."""
STORAGE_PROVISIONER: Final = "volume.kubernetes.io/storage-provisioner"
BETA_STORAGE_PROVISIONER: Final = "volume.beta.kubernetes.io/storage-provisioner"
"""On a claim: the provisioner of its volume, in the current and the deprecated annotation."""
BETA_STORAGE_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
"""On a volume or claim: its storage class, in the deprecated annotation."""
DEFAULT_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
"""On a storage class, either of them: claims that name no class get this one."""

WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"


def claim_class(claim: Manifest) -> str:
    """The name of a claim's storage class; empty if it has none."""
    return annotations_of(claim).get(BETA_STORAGE_CLASS) or claim["spec"].get("storageClassName") or ""


def names_class(claim: Manifest) -> bool:
    """Whether a claim names a class; the empty class is none, but set explicitly."""
    return BETA_STORAGE_CLASS in annotations_of(claim) or claim["spec"].get("storageClassName") is not None


def volume_class(volume: Manifest) -> str:
    """The name of a volume's storage class; empty if it has none."""
    return annotations_of(volume).get(BETA_STORAGE_CLASS) or volume["spec"].get("storageClassName") or ""


def is_default_class(storage_class: Manifest) -> bool:
    """Whether claims that name no class get this one."""
    annotations = annotations_of(storage_class)
    return any(annotations.get(key) == "true" for key in DEFAULT_CLASS)


def is_bound_to(volume: Manifest, claim: Manifest) -> bool:
    """Whether a volume is bound to a claim, or reserved for it by name."""
    reference, meta = volume["spec"].get("claimRef"), claim["metadata"]
    if not reference or (reference.get("namespace"), reference.get("name")) != (
        meta["namespace"],
        meta["name"],
    ):
        return False
    return reference.get("uid", "") in ("", meta["uid"])


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


def wanted_storage(claim: Manifest) -> Quantity:
    """The storage request of a claim."""
    requests = (claim["spec"].get("resources") or {}).get("requests") or {}
    return parse_quantity(str(requests.get("storage", "0")))


def offered_storage(volume: Manifest) -> Quantity:
    """The storage capacity of a volume."""
    return parse_quantity(str((volume["spec"].get("capacity") or {}).get("storage", "0")))


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
