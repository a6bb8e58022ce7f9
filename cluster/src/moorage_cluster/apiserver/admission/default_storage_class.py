"""DefaultStorageClass: a claim that names no class gets the default one."""

from __future__ import annotations

from typing import Final

from moorage.admission.attributes import Attributes, Reader
from moorage.admission.plugin import CLAIMS, Call, Plugin
from moorage.api.manifests import child
from moorage.api.persistent_volumes import DEFAULT_CLASS, class_of
from moorage_cluster.apiserver.admission.default_classes import newest_default

STORAGE_CLASSES: Final = "storage.k8s.io/storageclasses"


def default_class(reader: Reader) -> str | None:
    """The default class's name, if there is one."""
    return newest_default(reader.all(STORAGE_CLASSES), DEFAULT_CLASS)


def admit(attributes: Attributes, reader: Reader) -> None:
    """Fill in the class. An explicitly empty one is kept: it means no class."""
    if class_of(attributes.obj) is None and (name := default_class(reader)) is not None:
        child(attributes.obj, "spec")["storageClassName"] = name


PLUGIN: Final = Plugin("DefaultStorageClass", admit, (Call("CREATE", CLAIMS),))
