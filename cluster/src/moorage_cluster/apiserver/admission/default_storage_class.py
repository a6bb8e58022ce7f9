"""DefaultStorageClass: a claim that names no class gets the default one."""

from __future__ import annotations

from typing import Final

from moorage.admission.attributes import Attributes, Reader
from moorage.admission.plugin import CLAIMS, Call, Plugin
from moorage.api.manifests import Manifest, annotations_of, child
from moorage_cluster.apiserver.admission.default_classes import newest_default

STORAGE_CLASSES: Final = "storage.k8s.io/storageclasses"
CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"

_IS_DEFAULT: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def class_of(claim: Manifest) -> str | None:
    """The storage class that a claim names, in the legacy annotation or in the field."""
    name: str | None = annotations_of(claim).get(
        CLASS_ANNOTATION, claim.get("spec", {}).get("storageClassName")
    )
    return name


def default_class(reader: Reader) -> str | None:
    """The default class's name, if there is one."""
    return newest_default(reader.all(STORAGE_CLASSES), _IS_DEFAULT)


def admit(attributes: Attributes, reader: Reader) -> None:
    """Fill in the class. An explicitly empty one is kept: it means no class."""
    if class_of(attributes.obj) is None and (name := default_class(reader)) is not None:
        child(attributes.obj, "spec")["storageClassName"] = name


PLUGIN: Final = Plugin("DefaultStorageClass", admit, (Call("CREATE", CLAIMS),))
