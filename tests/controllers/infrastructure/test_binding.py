"""Claims and volumes that find each other."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.manifests import Manifest, annotations_of
from moorage.api.persistent_volumes import BETA_STORAGE_CLASS
from moorage.client.kinds import (
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    STORAGE_CLASS,
)
from moorage_cluster.controllers.persistent_volumes import PersistentVolumeBinder
from tests.controllers.harness import Harness
from tests.controllers.infrastructure.objects import claim, pod_with_claim, storage_class, volume

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
RWX = ("ReadWriteOnce", "ReadWriteMany")


def phases(harness: Harness) -> dict[str, str]:
    volumes, claims = harness.list(PERSISTENT_VOLUME), harness.list(PERSISTENT_VOLUME_CLAIM)
    return {each["metadata"]["name"]: each["status"]["phase"] for each in volumes + claims}


CHOICES: dict[str, tuple[Manifest, list[Manifest], str]] = {
    "the smallest that is large enough": (
        claim("c", "2Gi"),
        [volume("small", "1Gi"), volume("a-large", "8Gi"), volume("fits", "3Gi")],
        "fits",
    ),
    "the first by name of equal ones": (claim("c"), [volume("b"), volume("a")], "a"),
    "fewer access modes before a smaller size": (
        claim("c"),
        [volume("shared", "1Gi", RWX), volume("plain", "5Gi")],
        "plain",
    ),
    "all access modes are needed": (
        claim("c", modes=RWX),
        [volume("plain"), volume("shared", modes=RWX)],
        "shared",
    ),
    "only of its class": (
        claim("c", class_name="fast"),
        [volume("slow"), volume("quick", storageClassName="fast")],
        "quick",
    ),
    "the annotated class before that of the field, even if it is none": (
        {
            **claim("c", class_name="fast"),
            "metadata": {"name": "c", "namespace": "default", "annotations": {BETA_STORAGE_CLASS: ""}},
        },
        [volume("quick", storageClassName="fast"), volume("plain")],
        "plain",
    ),
    "only what its selector matches": (
        claim("c", selector={"matchLabels": {"disk": "ssd"}}),
        [volume("hdd", labels={"disk": "hdd"}), volume("ssd", "9Gi", labels={"disk": "ssd"})],
        "ssd",
    ),
    "only its volume mode": (
        claim("c", volumeMode="Block"),
        [volume("files"), volume("blocks", "4Gi", volumeMode="Block")],
        "blocks",
    ),
    "one kept for it before a smaller one": (
        claim("c"),
        [
            volume("free", "1Gi"),
            volume("kept", "7Gi", claimRef={"namespace": "default", "name": "c"}),
        ],
        "kept",
    ),
    "not one that is kept for another": (
        claim("c"),
        [volume("kept", claimRef={"namespace": "default", "name": "other"})],
        "",
    ),
    "not one that is too small, even if kept for it": (
        claim("c", "2Gi"),
        [volume("kept", "1Gi", claimRef={"namespace": "default", "name": "c"})],
        "",
    ),
    "not one without its access modes, even if kept for it": (
        claim("c", modes=RWX),
        [volume("kept", claimRef={"namespace": "default", "name": "c"})],
        "",
    ),
    "wherever its volume is, for binding at once": (
        claim("c"),
        [
            volume(
                "local",
                nodeAffinity={
                    "required": {
                        "nodeSelectorTerms": [
                            {
                                "matchExpressions": [
                                    {"key": "kubernetes.io/hostname", "operator": "In", "values": ["n"]}
                                ]
                            }
                        ]
                    }
                },
            )
        ],
        "local",
    ),
}


@pytest.mark.parametrize("order", ["volumes first", "claim first"])
@pytest.mark.parametrize("case", CHOICES)
def test_a_claim_takes(case: str, order: str) -> None:
    wanted, volumes, chosen = CHOICES[case]
    with Harness(PersistentVolumeBinder, run=False) as harness:
        if order == "claim first":
            harness.create(PERSISTENT_VOLUME_CLAIM, wanted)
        for each in volumes:
            harness.create(PERSISTENT_VOLUME, each)
        if order != "claim first":
            harness.create(PERSISTENT_VOLUME_CLAIM, wanted)
        harness.start()
        bound = harness.get(PERSISTENT_VOLUME_CLAIM, "c")
        assert bound["spec"].get("volumeName", "") == chosen
        assert bound["status"]["phase"] == ("Bound" if chosen else "Pending")


def test_a_binding_says_who_made_it_and_what_was_got() -> None:
    with Harness(PersistentVolumeBinder) as harness:
        made = harness.create(PERSISTENT_VOLUME_CLAIM, claim("c", "1Gi"))
        assert harness.events("c") == [
            ("FailedBinding", "no persistent volumes available for this claim and no storage class is set")
        ]
        harness.create(PERSISTENT_VOLUME, volume("v", "4Gi", RWX))
        bound, taken = harness.get(PERSISTENT_VOLUME_CLAIM, "c"), harness.get(PERSISTENT_VOLUME, "v")
        assert annotations_of(bound) == {BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"}
        assert bound["status"] == {
            "phase": "Bound",
            "accessModes": list(RWX),
            "capacity": {"storage": "4Gi"},
        }
        assert annotations_of(taken) == {BOUND_BY_CONTROLLER: "yes"}
        assert taken["status"]["phase"] == "Bound"
        reference = taken["spec"]["claimRef"]
        assert (reference["kind"], reference["uid"]) == ("PersistentVolumeClaim", made["metadata"]["uid"])


def test_a_volume_kept_by_its_user_is_not_reported_to_be_bound_by_the_controller() -> None:
    with Harness(PersistentVolumeBinder) as harness:
        harness.create(PERSISTENT_VOLUME, volume("v", claimRef={"namespace": "default", "name": "c"}))
        assert phases(harness) == {"v": "Available"}
        made = harness.create(PERSISTENT_VOLUME_CLAIM, claim("c"))
        assert phases(harness) == {"v": "Bound", "c": "Bound"}
        taken = harness.get(PERSISTENT_VOLUME, "v")
        assert BOUND_BY_CONTROLLER not in annotations_of(taken)
        assert taken["spec"]["claimRef"]["uid"] == made["metadata"]["uid"]


NAMED: dict[str, tuple[Manifest, list[Manifest], str, list[tuple[str, str]]]] = {
    "it fits": (claim("c", volumeName="v"), [volume("v", "9Gi"), volume("w")], "Bound", []),
    "it is not there": (claim("c", volumeName="v"), [volume("w")], "Pending", []),
    "it is too small": (
        claim("c", "2Gi", volumeName="v"),
        [volume("v")],
        "Pending",
        [("VolumeMismatch", 'Cannot bind to requested volume "v": requested PV is too small')],
    ),
    "it is of another class": (
        claim("c", class_name="fast", volumeName="v"),
        [volume("v")],
        "Pending",
        [("VolumeMismatch", 'Cannot bind to requested volume "v": storageClassName does not match')],
    ),
    "it is of another mode": (
        claim("c", volumeMode="Block", volumeName="v"),
        [volume("v")],
        "Pending",
        [("VolumeMismatch", 'Cannot bind to requested volume "v": incompatible volumeMode')],
    ),
    "it lacks an access mode": (
        claim("c", modes=RWX, volumeName="v"),
        [volume("v")],
        "Pending",
        [("VolumeMismatch", 'Cannot bind to requested volume "v": incompatible accessMode')],
    ),
    "it is kept for another": (
        claim("c", volumeName="v"),
        [volume("v", claimRef={"namespace": "default", "name": "d"})],
        "Pending",
        [("FailedBinding", 'volume "v" already bound to a different claim.')],
    ),
}


@pytest.mark.parametrize("case", NAMED)
def test_a_claim_that_names_its_volume(case: str) -> None:
    wanted, volumes, phase, events = NAMED[case]
    with Harness(PersistentVolumeBinder) as harness:
        for each in volumes:
            harness.create(PERSISTENT_VOLUME, each)
        harness.create(PERSISTENT_VOLUME_CLAIM, wanted)
        found = harness.get(PERSISTENT_VOLUME_CLAIM, "c")
        assert found["status"]["phase"] == phase
        assert BOUND_BY_CONTROLLER not in annotations_of(found)
        assert harness.events("c") == events


def test_a_claim_gets_the_volume_that_it_names_when_that_comes() -> None:
    with Harness(PersistentVolumeBinder) as harness:
        harness.create(PERSISTENT_VOLUME_CLAIM, claim("c", "2Gi", class_name="fast", volumeName="v"))
        harness.create(PERSISTENT_VOLUME, volume("v", "1Gi"))
        assert [reason for reason, _ in harness.events("c")] == ["VolumeMismatch"]
        harness.patch(
            PERSISTENT_VOLUME, "v", {"spec": {"storageClassName": "fast", "capacity": {"storage": "2Gi"}}}
        )
        assert phases(harness) == {"v": "Bound", "c": "Bound"}


def test_a_volume_of_an_earlier_claim_of_the_same_name_is_released() -> None:
    earlier = {"namespace": "default", "name": "c", "uid": "11111111-2222-3333-4444-555555555555"}
    with Harness(PersistentVolumeBinder, run=False) as harness:
        harness.create(PERSISTENT_VOLUME_CLAIM, claim("c"))
        harness.create(PERSISTENT_VOLUME, volume("v", claimRef=earlier))
        harness.start()
        assert phases(harness) == {"v": "Released", "c": "Pending"}


def late(name: str = "late", **further: Any) -> Manifest:
    return storage_class(name, volumeBindingMode="WaitForFirstConsumer", **further)


def test_a_late_claim_leaves_free_volumes_to_the_scheduler() -> None:
    with Harness(PersistentVolumeBinder) as harness:
        harness.create(STORAGE_CLASS, late())
        harness.create(PERSISTENT_VOLUME, volume("v", storageClassName="late"))
        harness.create(PERSISTENT_VOLUME_CLAIM, claim("c", class_name="late"))
        assert phases(harness) == {"v": "Available", "c": "Pending"}
        harness.create(POD, pod_with_claim("p", "c"))
        assert harness.events("c") == [
            ("WaitForFirstConsumer", "waiting for first consumer to be created before binding"),
            ("WaitForPodScheduled", "waiting for pod p to be scheduled"),
        ]
        # What the scheduler writes when it has chosen the volume.
        meta = harness.get(PERSISTENT_VOLUME_CLAIM, "c")["metadata"]
        reference = {"kind": "PersistentVolumeClaim", "apiVersion": "v1"} | {
            key: meta[key] for key in ("namespace", "name", "uid", "resourceVersion")
        }
        harness.patch(
            PERSISTENT_VOLUME,
            "v",
            {"metadata": {"annotations": {BOUND_BY_CONTROLLER: "yes"}}, "spec": {"claimRef": reference}},
        )
        assert phases(harness) == {"v": "Bound", "c": "Bound"}


def test_a_late_claim_asks_for_a_new_volume_once_a_node_is_selected() -> None:
    with Harness(PersistentVolumeBinder) as harness:
        harness.create(STORAGE_CLASS, late())
        harness.create(PERSISTENT_VOLUME_CLAIM, claim("c", class_name="late"))
        selected = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n"}}}
        asking = harness.patch(PERSISTENT_VOLUME_CLAIM, "c", selected)
        asking = harness.get(PERSISTENT_VOLUME_CLAIM, "c")
        assert annotations_of(asking) == {
            "volume.kubernetes.io/selected-node": "n",
            "volume.kubernetes.io/storage-provisioner": "example.com/disks",
            "volume.beta.kubernetes.io/storage-provisioner": "example.com/disks",
        }
        assert harness.events("c")[-1] == (
            "ExternalProvisioning",
            "Waiting for a volume to be created either by the external provisioner 'example.com/disks' or "
            "manually by the system administrator. If volume creation is delayed, please verify that the "
            "provisioner is running and correctly registered.",
        )


CLASSES: dict[str, tuple[Manifest | None, str]] = {
    "there is no such class": (None, 'storageclass.storage.k8s.io "fast" not found'),
    "nobody makes volumes": (
        storage_class("fast", "kubernetes.io/no-provisioner"),
        "no volume plugin matched name: kubernetes.io/no-provisioner",
    ),
}


@pytest.mark.parametrize("case", CLASSES)
def test_no_volume_is_made_if(case: str) -> None:
    known, message = CLASSES[case]
    with Harness(PersistentVolumeBinder) as harness:
        if known:
            harness.create(STORAGE_CLASS, known)
        harness.create(PERSISTENT_VOLUME_CLAIM, claim("c", class_name="fast"))
        assert harness.events("c") == [("ProvisioningFailed", message)]


def test_a_default_class_counts_also_for_claims_that_were_there_before() -> None:
    with Harness(PersistentVolumeBinder) as harness:
        harness.create(PERSISTENT_VOLUME_CLAIM, claim("without", class_name=None))
        harness.create(PERSISTENT_VOLUME_CLAIM, claim("none at all".replace(" ", "-"), class_name=""))
        default = storage_class("usual")
        default["metadata"]["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
        harness.create(STORAGE_CLASS, default)
        assert harness.get(PERSISTENT_VOLUME_CLAIM, "without")["spec"]["storageClassName"] == "usual"
        assert harness.get(PERSISTENT_VOLUME_CLAIM, "none-at-all")["spec"]["storageClassName"] == ""


def test_two_claims_do_not_get_the_same_volume() -> None:
    with Harness(PersistentVolumeBinder, run=False) as harness:
        for name in ("a", "b"):
            harness.create(PERSISTENT_VOLUME_CLAIM, claim(name))
        harness.create(PERSISTENT_VOLUME, volume("v"))
        harness.start()
        found = phases(harness)
        assert sorted([found["a"], found["b"]]) == ["Bound", "Pending"]
        assert found["v"] == "Bound"


def test_a_claim_whose_volume_is_gone_is_lost() -> None:
    with Harness(PersistentVolumeBinder) as harness:
        harness.create(PERSISTENT_VOLUME, volume("v"))
        harness.create(PERSISTENT_VOLUME_CLAIM, claim("c"))
        harness.patch(PERSISTENT_VOLUME, "v", {"metadata": {"finalizers": None}})
        harness.delete(PERSISTENT_VOLUME, "v")
        assert harness.get(PERSISTENT_VOLUME_CLAIM, "c")["status"] == {"phase": "Lost"}
        lost = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
        assert harness.events("c")[-1] == ("ClaimLost", lost)


RECLAIMED: dict[str, tuple[Manifest, str | None, tuple[str, str] | None]] = {
    "is kept": (volume("v", policy="Retain"), "Released", None),
    "is left to the driver that made it": (
        volume("v", policy="Delete", source={"csi": {"driver": "d.example.com", "volumeHandle": "h"}}),
        "Released",
        None,
    ),
    "is deleted if that is harmless": (
        volume("v", policy="Delete", source={"hostPath": {"path": "/tmp/data"}}),
        None,
        None,
    ),
    "cannot be deleted elsewhere on a host": (
        volume("v", policy="Delete"),
        "Failed",
        ("VolumeFailedDelete", "host_path deleter only supports /tmp/.+ but received provided /data"),
    ),
    "cannot be deleted by who does not know how": (
        volume("v", policy="Delete", source={"nfs": {"server": "s", "path": "/p"}}),
        "Failed",
        (
            "VolumeFailedDelete",
            'error getting deleter volume plugin for volume "v": no deletable volume plugin matched',
        ),
    ),
    "is recycled": (
        volume("v", policy="Recycle", source={"nfs": {"server": "s", "path": "/p"}}),
        "Available",
        ("VolumeRecycled", "Volume recycled"),
    ),
}


@pytest.mark.parametrize("case", RECLAIMED)
def test_a_volume_whose_claim_is_gone(case: str) -> None:
    kept, phase, event = RECLAIMED[case]
    with Harness(PersistentVolumeBinder) as harness:
        harness.create(PERSISTENT_VOLUME, kept)
        harness.patch(PERSISTENT_VOLUME, "v", {"metadata": {"finalizers": None}})
        harness.create(PERSISTENT_VOLUME_CLAIM, claim("c"))
        assert phases(harness) == {"v": "Bound", "c": "Bound"}
        harness.patch(PERSISTENT_VOLUME_CLAIM, "c", {"metadata": {"finalizers": None}})
        harness.delete(PERSISTENT_VOLUME_CLAIM, "c")
        found = harness.find(PERSISTENT_VOLUME, "v")
        assert (found and found["status"]["phase"]) == phase
        assert harness.events("v") == ([event] if event else [])
        if phase == "Released":
            # A new claim of the same name is another claim.
            harness.create(PERSISTENT_VOLUME_CLAIM, claim("c"))
            assert phases(harness) == {"v": "Released", "c": "Pending"}
