"""DefaultIngressClass: an ingress that names no class gets the default one."""

from __future__ import annotations

from typing import Final

from moorage.admission.attributes import Attributes, Reader
from moorage.admission.plugin import Call, Plugin
from moorage.api.manifests import annotations_of
from moorage_cluster.apiserver.admission.default_classes import newest_default
from moorage_cluster.apiserver.kinds.ingresses import CLASS_ANNOTATION, DEFAULT_CLASS_ANNOTATION

_INGRESSES: Final = "networking.k8s.io/ingresses"
_INGRESS_CLASSES: Final = "networking.k8s.io/ingressclasses"


def admit(attributes: Attributes, reader: Reader) -> None:
    """Fill in the class, unless the ingress names one in the legacy annotation."""
    spec = attributes.obj["spec"]
    if "ingressClassName" in spec or CLASS_ANNOTATION in annotations_of(attributes.obj):
        return
    if (name := newest_default(reader.all(_INGRESS_CLASSES), (DEFAULT_CLASS_ANNOTATION,))) is not None:
        spec["ingressClassName"] = name


PLUGIN: Final = Plugin("DefaultIngressClass", admit, (Call("CREATE", _INGRESSES),))
