"""Claims for devices: made for pods, held by pods, given back."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.manifests import Manifest, annotations_of
from moorage.client.kinds import POD, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE
from moorage_cluster.controllers.resource_claims import PodResourceClaims, ResourceClaimRelease
from tests.controllers.harness import Harness
from tests.controllers.infrastructure.objects import pod

PROTECTION = "resource.kubernetes.io/delete-protection"
SPEC: Manifest = {
    "devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}
}
ALLOCATION: Manifest = {
    "devices": {
        "results": [{"request": "gpu", "driver": "gpu.example.com", "pool": "node", "device": "gpu-0"}]
    }
}


def template(name: str = "t") -> Manifest:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"metadata": {"labels": {"made": "yes"}, "annotations": {"note": "1"}}, "spec": SPEC},
    }


def pod_with(name: str, *entries: Manifest, **spec: Any) -> Manifest:
    return pod(name, resourceClaims=list(entries), **spec)


def from_template(name: str = "gpu", template_name: str = "t") -> Manifest:
    return {"name": name, "resourceClaimTemplateName": template_name}


def controllers() -> Harness:
    return Harness(PodResourceClaims, ResourceClaimRelease)


def allocate(harness: Harness, name: str, *pods: Manifest) -> None:
    """Do as the scheduler does."""
    harness.patch(RESOURCE_CLAIM, name, {"metadata": {"finalizers": [PROTECTION]}})
    holders = [
        {"resource": "pods", "name": each["metadata"]["name"], "uid": each["metadata"]["uid"]}
        for each in pods
    ]
    given = {"status": {"allocation": ALLOCATION, "reservedFor": holders}}
    harness.patch(RESOURCE_CLAIM, name, given, subresource="status")


def holders(harness: Harness, name: str) -> list[str]:
    found = harness.get(RESOURCE_CLAIM, name)["status"].get("reservedFor") or []
    return [each["name"] for each in found]


def test_a_pod_gets_its_claims_from_templates() -> None:
    with controllers() as harness:
        harness.create(RESOURCE_CLAIM_TEMPLATE, template())
        owner = harness.create(POD, pod_with("p", from_template("a"), from_template("b")))
        made = {
            annotations_of(each)["resource.kubernetes.io/pod-claim-name"]: each
            for each in harness.list(RESOURCE_CLAIM)
        }
        assert set(made) == {"a", "b"}
        first = made["a"]
        assert first["metadata"]["name"].startswith("p-a-")
        assert first["metadata"]["generateName"] == "p-a-"
        assert first["metadata"]["labels"] == {"made": "yes"}
        assert annotations_of(first)["note"] == "1"
        assert first["metadata"]["ownerReferences"] == [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": "p",
                "uid": owner["metadata"]["uid"],
                "controller": True,
            }
        ]
        statuses = harness.get(POD, "p")["status"]["resourceClaimStatuses"]
        assert {each["name"]: each["resourceClaimName"] for each in statuses} == {
            name: each["metadata"]["name"] for name, each in made.items()
        }


NAMES = {
    "short": ("pod", "claim", "pod-claim-"),
    "as long as can be": ("p" * 50, "c" * 5, "p" * 50 + "-" + "c" * 5 + "-"),
    "too long": ("p" * 60, "c" * 20, "p" * (60 * 57 // 82) + "-" + "c" * (20 * 57 // 82)),
}


@pytest.mark.parametrize("case", NAMES)
def test_a_claims_name_begins_with_the_pods(case: str) -> None:
    pod_name, entry, base = NAMES[case]
    with controllers() as harness:
        harness.create(RESOURCE_CLAIM_TEMPLATE, template())
        harness.create(POD, pod_with(pod_name, from_template(entry)))
        [made] = harness.list(RESOURCE_CLAIM)
        assert made["metadata"]["generateName"] == base


def test_a_pod_waits_for_its_template() -> None:
    with controllers() as harness:
        harness.create(POD, pod_with("p", from_template()))
        missing = 'resource claim template "t": resourceclaimtemplate.resource.k8s.io "t" not found'
        assert harness.events("p") == [("FailedResourceClaimCreation", f"PodResourceClaim gpu: {missing}")]
        harness.create(RESOURCE_CLAIM_TEMPLATE, template())
        assert len(harness.list(RESOURCE_CLAIM)) == 1


def test_a_claim_that_was_made_is_found_again() -> None:
    with controllers() as harness:
        harness.create(RESOURCE_CLAIM_TEMPLATE, template())
        harness.create(POD, pod_with("p", from_template()))
        [name] = harness.names(RESOURCE_CLAIM)
        harness.patch(POD, "p", {"status": {"resourceClaimStatuses": None}}, subresource="status")
        assert harness.get(POD, "p")["status"]["resourceClaimStatuses"] == [
            {"name": "gpu", "resourceClaimName": name}
        ]
        assert harness.names(RESOURCE_CLAIM) == [name]


def test_a_pod_placed_by_hand_holds_its_claims_too() -> None:
    with controllers() as harness:
        harness.add_node("n")
        harness.create(RESOURCE_CLAIM, {"metadata": {"name": "shared", "namespace": "default"}, "spec": SPEC})
        first = harness.create(POD, pod_with("p", {"name": "gpu", "resourceClaimName": "shared"}))
        allocate(harness, "shared", first)
        harness.create(POD, pod_with("q", {"name": "gpu", "resourceClaimName": "shared"}, nodeName="n"))
        assert holders(harness, "shared") == ["p", "q"]


def test_a_claim_is_held_until_the_last_pod_is_done() -> None:
    with controllers() as harness:
        harness.add_node("n")
        harness.create(RESOURCE_CLAIM, {"metadata": {"name": "shared", "namespace": "default"}, "spec": SPEC})
        entry = {"name": "gpu", "resourceClaimName": "shared"}
        pods = [harness.create(POD, pod_with(name, entry)) for name in ("p", "q")]
        allocate(harness, "shared", *pods)
        for each in pods:
            harness.bind(each, "n")
        harness.run_pods()
        harness.run_pods("Succeeded", where=lambda each: each["metadata"]["name"] == "p")
        assert holders(harness, "shared") == ["q"]
        assert harness.get(RESOURCE_CLAIM, "shared")["status"]["allocation"]
        harness.delete(POD, "q", grace_seconds=0)
        free = harness.get(RESOURCE_CLAIM, "shared")
        assert "allocation" not in free["status"]
        assert "finalizers" not in free["metadata"]


def test_a_pod_of_the_same_name_is_another_pod() -> None:
    with controllers() as harness:
        harness.create(RESOURCE_CLAIM, {"metadata": {"name": "shared", "namespace": "default"}, "spec": SPEC})
        harness.create(POD, pod("p"))
        other = {"metadata": {"name": "p", "uid": "11111111-2222-3333-4444-555555555555"}}
        allocate(harness, "shared", other)
        assert holders(harness, "shared") == []


def test_a_made_claim_goes_when_its_pod_has_ended() -> None:
    with controllers() as harness:
        harness.add_node("n")
        harness.create(RESOURCE_CLAIM_TEMPLATE, template())
        made = harness.create(POD, pod_with("p", from_template()))
        [name] = harness.names(RESOURCE_CLAIM)
        allocate(harness, name, made)
        harness.bind(made, "n")
        harness.run_pods()
        assert harness.names(RESOURCE_CLAIM) == [name]
        harness.run_pods("Succeeded")
        assert harness.names(RESOURCE_CLAIM) == []
        assert harness.names(POD) == ["p"]


def test_a_made_claim_goes_with_its_pod() -> None:
    with controllers() as harness:
        harness.create(RESOURCE_CLAIM_TEMPLATE, template())
        made = harness.create(POD, pod_with("p", from_template()))
        [name] = harness.names(RESOURCE_CLAIM)
        allocate(harness, name, made)
        harness.delete(POD, "p", grace_seconds=0)
        assert harness.names(RESOURCE_CLAIM) == []


def test_a_deleted_claim_is_removed_once_it_is_not_reserved() -> None:
    with controllers() as harness:
        harness.create(RESOURCE_CLAIM, {"metadata": {"name": "c", "namespace": "default"}, "spec": SPEC})
        holder = harness.create(POD, pod_with("p", {"name": "gpu", "resourceClaimName": "c"}))
        allocate(harness, "c", holder)
        harness.delete(RESOURCE_CLAIM, "c")
        assert holders(harness, "c") == ["p"]
        harness.delete(POD, "p", grace_seconds=0)
        assert harness.find(RESOURCE_CLAIM, "c") is None
