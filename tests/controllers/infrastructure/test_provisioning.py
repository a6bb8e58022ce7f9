"""Volumes that are made for claims, protected while in use, and gone afterwards."""

from __future__ import annotations

import pytest

from moorage.api.manifests import Manifest, annotations_of
from moorage.client.kinds import (
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    STORAGE_CLASS,
    VOLUME_ATTRIBUTES_CLASS,
    Kind,
)
from moorage_cluster.controllers.persistent_volumes import PersistentVolumeBinder
from moorage_cluster.controllers.volume_ephemeral import EphemeralVolumes
from moorage_cluster.controllers.volume_protection import (
    AttributesClassProtection,
    ClaimProtection,
    VolumeProtection,
)
from moorage_cluster.controllers.volume_provisioning import (
    PROVISIONER,
    HostPathProvisioner,
    default_storage_class,
)
from tests.controllers.harness import Harness
from tests.controllers.infrastructure.objects import claim, pod, pod_with_claim, storage_class, volume

STORAGE = (PersistentVolumeBinder, HostPathProvisioner, ClaimProtection, VolumeProtection, EphemeralVolumes)
SELECTED_NODE = "volume.kubernetes.io/selected-node"


def select_node(harness: Harness, claim_name: str, node: str) -> None:
    """Do as the scheduler does."""
    harness.patch(PERSISTENT_VOLUME_CLAIM, claim_name, {"metadata": {"annotations": {SELECTED_NODE: node}}})


def test_a_claim_of_the_default_class_gets_its_volume_when_its_pod_has_a_node() -> None:
    with Harness(*STORAGE) as harness:
        harness.add_node("n")
        harness.create(STORAGE_CLASS, default_storage_class())
        made = harness.create(PERSISTENT_VOLUME_CLAIM, claim("c", "3Gi", class_name=None))
        assert made["spec"]["storageClassName"] == "standard"
        assert harness.list(PERSISTENT_VOLUME) == []
        select_node(harness, "c", "n")
        [new] = harness.list(PERSISTENT_VOLUME)
        name = f"pvc-{made['metadata']['uid']}"
        spec = new["spec"]
        assert (new["metadata"]["name"], new["status"]["phase"]) == (name, "Bound")
        assert annotations_of(new) == {"pv.kubernetes.io/provisioned-by": PROVISIONER}
        assert spec["capacity"] == {"storage": "3Gi"}
        assert spec["persistentVolumeReclaimPolicy"] == "Delete"
        assert spec["storageClassName"] == "standard"
        assert "nodeAffinity" not in spec
        bound = harness.get(PERSISTENT_VOLUME_CLAIM, "c")
        assert (bound["status"]["phase"], bound["spec"]["volumeName"]) == ("Bound", name)
        reasons = [reason for reason, _ in harness.events("c")]
        assert reasons[0] == "WaitForFirstConsumer"
        assert {"ExternalProvisioning", "Provisioning", "ProvisioningSucceeded"} <= set(reasons)
        assert ("ProvisioningSucceeded", f"Successfully provisioned volume {name}") in harness.events("c")


def test_a_claim_that_binds_at_once_gets_its_volume_at_once() -> None:
    with Harness(*STORAGE) as harness:
        harness.create(STORAGE_CLASS, storage_class("now", PROVISIONER, reclaimPolicy="Retain"))
        harness.create(PERSISTENT_VOLUME_CLAIM, claim("c", class_name="now"))
        [new] = harness.list(PERSISTENT_VOLUME)
        assert (new["status"]["phase"], new["spec"]["persistentVolumeReclaimPolicy"]) == ("Bound", "Retain")


def test_a_volume_may_be_tied_to_its_node() -> None:
    with Harness(*STORAGE) as harness:
        harness.add_node("n")
        tied = storage_class(
            "tied", PROVISIONER, parameters={"topology": "node"}, volumeBindingMode="WaitForFirstConsumer"
        )
        harness.create(STORAGE_CLASS, tied)
        harness.create(PERSISTENT_VOLUME_CLAIM, claim("c", class_name="tied"))
        select_node(harness, "c", "n")
        [new] = harness.list(PERSISTENT_VOLUME)
        [term] = new["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
        assert term["matchExpressions"] == [
            {"key": "kubernetes.io/hostname", "operator": "In", "values": ["n"]}
        ]


def test_a_node_that_is_gone_is_to_be_chosen_again() -> None:
    with Harness(*STORAGE) as harness:
        harness.create(STORAGE_CLASS, default_storage_class())
        harness.create(PERSISTENT_VOLUME_CLAIM, claim("c", class_name="standard"))
        select_node(harness, "c", "gone")
        assert SELECTED_NODE not in annotations_of(harness.get(PERSISTENT_VOLUME_CLAIM, "c"))
        assert ("ProvisioningFailed", 'failed to get target node: node "gone" not found') in harness.events(
            "c"
        )
        assert harness.list(PERSISTENT_VOLUME) == []


def test_a_volume_that_was_made_goes_with_its_claim() -> None:
    with Harness(*STORAGE) as harness:
        harness.create(STORAGE_CLASS, storage_class("now", PROVISIONER))
        harness.create(PERSISTENT_VOLUME_CLAIM, claim("c", class_name="now"))
        assert len(harness.list(PERSISTENT_VOLUME)) == 1
        harness.delete(PERSISTENT_VOLUME_CLAIM, "c")
        assert harness.list(PERSISTENT_VOLUME_CLAIM) == []
        assert harness.list(PERSISTENT_VOLUME) == []


def test_a_claim_stays_until_the_last_pod_that_uses_it_is_gone() -> None:
    with Harness(*STORAGE) as harness:
        harness.add_node("n")
        harness.create(STORAGE_CLASS, storage_class("now", PROVISIONER))
        harness.create(PERSISTENT_VOLUME_CLAIM, claim("c", class_name="now"))
        for name in ("p", "q"):
            harness.bind(harness.create(POD, pod_with_claim(name, "c")), "n")
        harness.run_pods()
        harness.delete(PERSISTENT_VOLUME_CLAIM, "c")
        assert "deletionTimestamp" in harness.get(PERSISTENT_VOLUME_CLAIM, "c")["metadata"]
        harness.delete(POD, "p", grace_seconds=0)
        assert harness.find(PERSISTENT_VOLUME_CLAIM, "c") is not None
        harness.delete(POD, "q", grace_seconds=0)
        assert harness.find(PERSISTENT_VOLUME_CLAIM, "c") is None


def test_a_pod_without_node_does_not_keep_its_claim() -> None:
    with Harness(*STORAGE) as harness:
        harness.create(PERSISTENT_VOLUME_CLAIM, claim("c"))
        harness.create(POD, pod_with_claim("p", "c"))
        harness.delete(PERSISTENT_VOLUME_CLAIM, "c")
        assert harness.find(PERSISTENT_VOLUME_CLAIM, "c") is None


def test_a_bound_volume_stays_until_its_claim_is_gone() -> None:
    with Harness(*STORAGE) as harness:
        harness.create(PERSISTENT_VOLUME, volume("v"))
        harness.create(PERSISTENT_VOLUME_CLAIM, claim("c"))
        harness.delete(PERSISTENT_VOLUME, "v")
        assert harness.get(PERSISTENT_VOLUME, "v")["status"]["phase"] == "Bound"
        harness.delete(PERSISTENT_VOLUME_CLAIM, "c")
        assert harness.find(PERSISTENT_VOLUME, "v") is None


@pytest.mark.parametrize(
    ("kind", "obj"), [(PERSISTENT_VOLUME_CLAIM, claim("x")), (PERSISTENT_VOLUME, volume("x"))]
)
def test_what_lost_its_protection_gets_it_back(kind: Kind, obj: Manifest) -> None:
    with Harness(*STORAGE) as harness:
        protected = harness.create(kind, obj)["metadata"]["finalizers"]
        harness.patch(kind, "x", {"metadata": {"finalizers": None}})
        assert harness.get(kind, "x")["metadata"]["finalizers"] == protected


ATTRIBUTES_CLASS: Manifest = {
    "metadata": {"name": "gold"},
    "driverName": "csi.example.com",
    "parameters": {"a": "b"},
}


def test_an_attributes_class_goes_when_nothing_uses_it() -> None:
    with Harness(AttributesClassProtection) as harness:
        made = harness.create(VOLUME_ATTRIBUTES_CLASS, ATTRIBUTES_CLASS)
        assert made["metadata"]["finalizers"] == ["kubernetes.io/vac-protection"]
        harness.delete(VOLUME_ATTRIBUTES_CLASS, "gold")
        assert harness.find(VOLUME_ATTRIBUTES_CLASS, "gold") is None


def test_an_attributes_class_stays_while_a_claim_names_it() -> None:
    with Harness(AttributesClassProtection) as harness:
        harness.create(VOLUME_ATTRIBUTES_CLASS, ATTRIBUTES_CLASS)
        used = claim("c")
        used["spec"]["volumeAttributesClassName"] = "gold"
        harness.create(PERSISTENT_VOLUME_CLAIM, used)
        harness.patch(PERSISTENT_VOLUME_CLAIM, "c", {"metadata": {"finalizers": None}})
        harness.delete(VOLUME_ATTRIBUTES_CLASS, "gold")
        assert harness.find(VOLUME_ATTRIBUTES_CLASS, "gold") is not None
        harness.delete(PERSISTENT_VOLUME_CLAIM, "c")
        assert harness.find(VOLUME_ATTRIBUTES_CLASS, "gold") is None


def ephemeral_pod(name: str) -> Manifest:
    template = {"metadata": {"labels": {"for": name}}, "spec": claim("x", class_name="now")["spec"]}
    return pod(name, volumes=[{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}])


def test_an_ephemeral_volume_comes_and_goes_with_its_pod() -> None:
    with Harness(*STORAGE) as harness:
        harness.create(STORAGE_CLASS, storage_class("now", PROVISIONER))
        owner = harness.create(POD, ephemeral_pod("p"))
        made = harness.get(PERSISTENT_VOLUME_CLAIM, "p-scratch")
        assert made["metadata"]["labels"] == {"for": "p"}
        assert made["metadata"]["ownerReferences"] == [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": "p",
                "uid": owner["metadata"]["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
        assert made["status"]["phase"] == "Bound"
        harness.delete(POD, "p", grace_seconds=0)
        assert harness.find(PERSISTENT_VOLUME_CLAIM, "p-scratch") is None
        assert harness.list(PERSISTENT_VOLUME) == []


def test_an_ephemeral_volume_that_another_client_deletes_is_recreated() -> None:
    with Harness(*STORAGE) as harness:
        harness.create(POD, ephemeral_pod("p"))
        before = harness.get(PERSISTENT_VOLUME_CLAIM, "p-scratch")["metadata"]["uid"]
        harness.delete(PERSISTENT_VOLUME_CLAIM, "p-scratch")
        assert harness.get(PERSISTENT_VOLUME_CLAIM, "p-scratch")["metadata"]["uid"] != before


def test_a_claim_of_that_name_that_is_not_the_pods_is_not_taken() -> None:
    with Harness(*STORAGE) as harness:
        harness.create(PERSISTENT_VOLUME_CLAIM, claim("p-scratch"))
        harness.create(POD, ephemeral_pod("p"))
        assert harness.events("p") == [
            (
                "FailedBinding",
                "ephemeral volume scratch: PVC default/p-scratch was not created for pod default/p "
                "(pod is not owner)",
            )
        ]
