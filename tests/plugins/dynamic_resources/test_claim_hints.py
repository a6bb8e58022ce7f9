"""Which waiting pods a change of a claim is checked for: with thousands, only those it can concern."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.api.base import OwnerReference
from moorage.api.devices import ResourceClaim
from moorage.api.pod import Pod, PodResourceClaimStatus
from moorage.queue.cluster_events import Resource
from tests.builders import make_pod
from tests.plugins.dynamic_resources.device_objects import Scene, allocated, claim, pod_claiming


def from_template(name: str, made: str | None) -> Pod:
    """A pod with a claim from a template, which may have been made already."""
    references = [{"name": "r", "resourceClaimTemplateName": "t"}]
    pod = make_pod(name, uid=f"uid-{name}", resource_claims=references)
    if made is None:
        return pod
    given = (PodResourceClaimStatus(name="r", resource_claim_name=made),)
    return replace(pod, status=replace(pod.status, resource_claim_statuses=given))


TEMPLATED = [from_template("a", "made-a"), from_template("b", "made-b"), from_template("c", None)]
NAMING = [pod_claiming(name, "shared", uid=f"uid-{name}") for name in ("d", "e")]


def a_claim(name: str, owner: str, namespace: str, status: Any) -> ResourceClaim:
    made = claim(name, namespace=namespace, status=status, metadata={"uid": f"uid-{name}"})
    if not owner:
        return made
    reference = OwnerReference(api_version="v1", kind="Pod", name=owner, uid=f"uid-{owner}", controller=True)
    return replace(made, metadata=replace(made.metadata, owner_references=(reference,)))


@pytest.mark.parametrize("pods", [TEMPLATED, NAMING], ids=["templated", "naming"])
def test_no_pod_that_a_claim_helps_is_left_out(pods: list[Pod]) -> None:
    helped, left_out = 0, 0
    names, owners = ("made-a", "made-b", "shared", "other"), ("", "a", "b", "d")
    for name, owner, namespace in product(names, owners, ("default", "elsewhere")):
        free, taken = (a_claim(name, owner, namespace, status) for status in (None, allocated("p/d")))
        for old, new in ((None, free), (free, free), (free, taken), (taken, free), (taken, taken)):
            scene = Scene(new)
            [interest] = [e for e in scene.plugin.events() if e.event.resource == Resource.RESOURCE_CLAIM]
            assert interest.subjects is not None
            found = [interest.subjects(pod, old, new) for pod in pods]
            assert len({None if each is None else tuple(each) for each in found}) == 1  # one for all of them
            for pod, subjects in zip(pods, found, strict=True):
                is_subject = subjects is None or pod.uid in subjects
                assert is_subject or not interest.helps(pod, old, new)
                helped += interest.helps(pod, old, new)
                left_out += not is_subject
    assert helped
    assert left_out


def test_a_new_claim_is_checked_for_its_own_pod_only() -> None:
    [interest] = [e for e in Scene().plugin.events() if e.event.resource == Resource.RESOURCE_CLAIM]
    assert interest.subjects is not None
    assert interest.subjects(TEMPLATED[2], None, a_claim("made-a", "a", "default", None)) == ("uid-a",)
