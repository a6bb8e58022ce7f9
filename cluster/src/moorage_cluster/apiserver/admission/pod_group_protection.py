"""PodGroupProtection: a pod group is not removed while pods use it."""

from __future__ import annotations

from typing import Final

from moorage.admission.attributes import Attributes, Reader
from moorage.admission.plugin import Call, Plugin
from moorage.api.manifests import metadata

FINALIZER: Final = "scheduling.k8s.io/podgroup-protection"


def admit(attributes: Attributes, reader: Reader) -> None:
    """Add the finalizer; a controller removes it once no pod uses the group."""
    finalizers = metadata(attributes.obj).setdefault("finalizers", [])
    if FINALIZER not in finalizers:
        finalizers.append(FINALIZER)


PLUGIN: Final = Plugin("PodGroupProtection", admit, (Call("CREATE", "scheduling.k8s.io/podgroups"),))
