"""StorageObjectInUseProtection: storage in use is not removed when it is deleted."""

from __future__ import annotations

from typing import Final

from moorage.admission.attributes import Attributes, Reader
from moorage.admission.plugin import CLAIMS, Call, Plugin
from moorage.api.manifests import metadata

_FINALIZERS: Final = {
    CLAIMS: "kubernetes.io/pvc-protection",
    "/persistentvolumes": "kubernetes.io/pv-protection",
    "storage.k8s.io/volumeattributesclasses": "kubernetes.io/vac-protection",
}


def admit(attributes: Attributes, reader: Reader) -> None:
    """Add the finalizer; a controller removes it once the object is no longer in use."""
    finalizer = _FINALIZERS[attributes.resource.storage]
    finalizers = metadata(attributes.obj).setdefault("finalizers", [])
    if finalizer not in finalizers:
        finalizers.append(finalizer)


PLUGIN: Final = Plugin(
    "StorageObjectInUseProtection", admit, tuple(Call("CREATE", storage) for storage in _FINALIZERS)
)
