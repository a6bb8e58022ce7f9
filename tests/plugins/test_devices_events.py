"""What may help pods that DynamicResources refused."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.base import Object
from moorage.api.devices import ResourceClaim
from moorage.api.pod import Pod
from tests.builders import make_node, make_pod
from tests.plugins.dynamic_resources.device_objects import (
    allocated,
    claim,
    device_class,
    pod_claiming,
    pool_slice,
)
from tests.plugins.requeueing import wakes

USES_C = pod_claiming("p", "c", uid="p")
FREE, TAKEN = claim("c"), claim("c", status=allocated("p/d"))
OTHER_FREE, OTHER_TAKEN = claim("x"), claim("x", status=allocated("p/d"))
LEAVING = claim("c", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})


def from_template(made: str | None, uid: str = "p") -> Pod:
    statuses = [] if made is None else [{"name": "r", "resourceClaimName": made}]
    return make_pod(
        "p",
        uid=uid,
        resource_claims=[{"name": "r", "resourceClaimTemplateName": "t"}],
        status={"resourceClaimStatuses": statuses},
    )


def made_for(uid: str) -> ResourceClaim:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": True}
    return claim("c", metadata={"ownerReferences": [owner]})


CASES: dict[str, tuple[Pod, Object | None, Object | None, list[Object], bool]] = {
    "its claim comes": (USES_C, None, FREE, [], True),
    "another claim comes": (USES_C, None, OTHER_FREE, [FREE], False),
    "its claim comes, but another is still missing": (
        pod_claiming("p", "c", "d", uid="p"),
        None,
        FREE,
        [],
        False,
    ),
    "its claim gets a status": (USES_C, FREE, TAKEN, [], True),
    "its claim gets only a label": (USES_C, TAKEN, claim("c", status=allocated("p/d")), [], False),
    "its claim is being deleted": (USES_C, FREE, LEAVING, [], False),
    "another claim gives its devices back": (USES_C, OTHER_TAKEN, OTHER_FREE, [FREE], True),
    "another claim gets devices": (USES_C, OTHER_FREE, OTHER_TAKEN, [FREE], False),
    "a claim gives devices back, but the pod's own is missing": (USES_C, OTHER_TAKEN, OTHER_FREE, [], False),
    "a claim gives devices back to who has no claims but wants a resource": (
        make_pod("p", uid="p", requests={"example.com/gpu": "1"}),
        OTHER_TAKEN,
        OTHER_FREE,
        [],
        True,
    ),
    "a claim goes": (USES_C, OTHER_FREE, None, [FREE], False),
    "its claim was made": (
        from_template("c"),
        from_template(None),
        from_template("c"),
        [made_for("p")],
        True,
    ),
    "its claim was made, but is not there yet": (
        from_template("c"),
        from_template(None),
        from_template("c"),
        [],
        False,
    ),
    "another pod's claim was made": (
        from_template(None),
        from_template(None, uid="q"),
        from_template("c", uid="q"),
        [made_for("q")],
        False,
    ),
    "a class comes": (USES_C, None, device_class("gpu"), [FREE], True),
    "a class changes": (USES_C, device_class("gpu"), device_class("gpu", "true"), [FREE], True),
    "a slice comes": (USES_C, None, pool_slice("s", "d"), [FREE], True),
    "a slice changes": (USES_C, pool_slice("s", "d"), pool_slice("s", "d", "e"), [FREE], True),
    "a slice goes": (USES_C, pool_slice("s", "d"), None, [FREE], False),
    "a node comes": (USES_C, None, make_node("n"), [FREE], True),
    "a node's labels change": (USES_C, make_node("n"), make_node("n", labels={"a": "b"}), [FREE], True),
    "a node grows": (USES_C, make_node("n"), make_node("n", allocatable={"cpu": "9"}), [FREE], True),
    "taints change": (USES_C, make_node("n"), make_node("n", taints=["a:NoSchedule"]), [FREE], False),
}


@pytest.mark.parametrize(("pod", "old", "new", "objects", "woken"), CASES.values(), ids=CASES.keys())
def test_hints(pod: Pod, old: Any, new: Any, objects: list[Object], woken: bool) -> None:
    assert wakes("DynamicResources", pod, old, new, objects=objects) is woken
