"""DefaultStorageClass, StorageObjectInUseProtection and PersistentVolumeClaimResize."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.admission.plugin import CLAIMS
from moorage.api.manifests import Manifest
from moorage.api.persistent_volumes import BETA_STORAGE_CLASS
from moorage_cluster.apiserver.admission import (
    default_storage_class,
    persistent_volume_claim_resize,
    storage_object_in_use_protection,
)
from tests.admission.harness import World, named, refused, update, write

OLD, NEW = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"


def storage_class(name: str, *, created: str = OLD, default_by: str = "", **fields: Any) -> Manifest:
    metadata: Manifest = {"name": name, "creationTimestamp": created}
    if default_by:
        metadata["annotations"] = {default_by: "true"}
    return {"metadata": metadata, **fields}


def claim(size: str = "1Gi", *, phase: str = "Bound", **spec: Any) -> Manifest:
    resources = {"requests": {"storage": size}}
    return named("c", "here", spec={"resources": resources, **spec}, status={"phase": phase})


GA, BETA = "storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"


@pytest.mark.parametrize(
    ("classes", "chosen"),
    [
        ([], None),
        ([storage_class("a")], None),
        ([storage_class("a", default_by=GA)], "a"),
        ([storage_class("a", default_by=BETA)], "a"),
        ([storage_class("a", default_by=GA), storage_class("b", created=NEW, default_by=GA)], "b"),
        ([storage_class("b", created=NEW, default_by=GA), storage_class("a", default_by=GA)], "b"),
        ([storage_class("b", default_by=GA), storage_class("a", default_by=GA)], "a"),
    ],
)
def test_a_claim_gets_the_newest_default(classes: list[Manifest], chosen: str | None) -> None:
    attributes = write(claim(), CLAIMS)
    default_storage_class.admit(attributes, World(storage_classes=classes))
    assert attributes.obj["spec"].get("storageClassName") == chosen


def test_a_claim_that_names_a_class_keeps_it() -> None:
    harness = World(storage_classes=[storage_class("a", default_by=GA)])
    for name in ("", "mine"):
        attributes = write(claim(storageClassName=name), CLAIMS)
        default_storage_class.admit(attributes, harness)
        assert attributes.obj["spec"]["storageClassName"] == name
    old_style = write(claim(), CLAIMS)
    old_style.obj["metadata"]["annotations"] = {BETA_STORAGE_CLASS: "mine"}
    default_storage_class.admit(old_style, harness)
    assert "storageClassName" not in old_style.obj["spec"]


@pytest.mark.parametrize(
    ("storage", "finalizer"),
    [
        (CLAIMS, "kubernetes.io/pvc-protection"),
        ("/persistentvolumes", "kubernetes.io/pv-protection"),
        ("storage.k8s.io/volumeattributesclasses", "kubernetes.io/vac-protection"),
    ],
)
def test_storage_is_protected(storage: str, finalizer: str) -> None:
    attributes = write(named("x"), storage)
    attributes.obj["metadata"]["finalizers"] = ["mine"]
    for _ in range(2):
        storage_object_in_use_protection.admit(attributes, World())
        assert attributes.obj["metadata"]["finalizers"] == ["mine", finalizer]


CLASSES = World(
    storage_classes=[
        storage_class("grows", allowVolumeExpansion=True),
        storage_class("fixed", allowVolumeExpansion=False),
        storage_class("silent"),
    ]
)
NOT_BOUND = "Only bound persistent volume claims can be expanded"
NOT_ALLOWED = (
    "only dynamically provisioned pvc can be resized and "
    "the storageclass that provisions the pvc must support resize"
)


@pytest.mark.parametrize(
    ("storage_class_name", "phase", "size", "why"),
    [
        ("grows", "Bound", "2Gi", None),
        ("fixed", "Bound", "1Gi", None),
        ("fixed", "Bound", "1073741824", None),
        ("fixed", "Bound", "512Mi", None),
        ("grows", "Pending", "2Gi", NOT_BOUND),
        ("fixed", "Bound", "2Gi", NOT_ALLOWED),
        ("silent", "Bound", "2Gi", NOT_ALLOWED),
        ("gone", "Bound", "2Gi", NOT_ALLOWED),
        ("", "Bound", "2Gi", NOT_ALLOWED),
    ],
)
def test_a_claim_grows_if_its_class_allows(
    storage_class_name: str, phase: str, size: str, why: str | None
) -> None:
    old = claim(phase=phase, storageClassName=storage_class_name)
    attributes = update(claim(size, storageClassName=storage_class_name), old, CLAIMS)
    if why is None:
        persistent_volume_claim_resize.admit(attributes, CLASSES)
    else:
        error = refused(persistent_volume_claim_resize.admit, attributes, CLASSES)
        assert error.message == f'persistentvolumeclaims "c" is forbidden: {why}'
