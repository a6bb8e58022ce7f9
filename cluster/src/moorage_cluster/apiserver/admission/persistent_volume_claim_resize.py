"""PersistentVolumeClaimResize: a claim may grow only if its storage class allows expansion."""

from __future__ import annotations

from typing import Final

from moorage.admission.attributes import Attributes, Reader
from moorage.admission.plugin import CLAIMS, Call, Plugin, refusal
from moorage.api.manifests import Manifest
from moorage.api.persistent_volumes import class_of
from moorage.api.quantity import Quantity, parse_quantity
from moorage_cluster.apiserver.admission.default_storage_class import STORAGE_CLASSES


def admit(attributes: Attributes, reader: Reader) -> None:
    """Reject an expansion that the storage does not support."""
    claim, old = attributes.obj, attributes.old
    if old is None or _size(claim) <= _size(old):
        return
    if old.get("status", {}).get("phase") != "Bound":
        raise refusal(attributes, "Only bound persistent volume claims can be expanded")
    if not _may_grow(claim, old, reader):
        raise refusal(
            attributes,
            "only dynamically provisioned pvc can be resized and "
            "the storageclass that provisions the pvc must support resize",
        )


def _size(claim: Manifest) -> Quantity:
    requests = claim.get("spec", {}).get("resources", {}).get("requests", {})
    return parse_quantity(requests.get("storage", "0"))


def _may_grow(claim: Manifest, old: Manifest, reader: Reader) -> bool:
    name = class_of(claim)
    if not name or name != class_of(old):
        return False
    found = reader.find(STORAGE_CLASSES, "", name)
    return found is not None and bool(found.get("allowVolumeExpansion"))


PLUGIN: Final = Plugin("PersistentVolumeClaimResize", admit, (Call("UPDATE", CLAIMS),))
