"""What may help pods that were refused because of their volumes."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.base import Object
from moorage.api.pod import Pod
from tests.builders import ZONE, make_node, make_pod
from tests.plugins.requeueing import wakes
from tests.plugins.volumes.volume_objects import (
    DRIVER,
    EPHEMERAL,
    attachment,
    capacity,
    claim,
    csi_driver,
    csi_node,
    in_zone,
    pod_with,
    pod_with_sources,
    storage_class,
    volume,
)

USES_C = pod_with("c", uid="p")
MAKES_C = pod_with_sources(EPHEMERAL, uid="p")
"""Its claim is called pod-v0."""
NODE, LABELLED = make_node("n"), make_node("n", labels={"a": "b"})


def disk(name: str, *, read_only: bool = False, **fields: Any) -> Pod:
    source = {"name": "v", "gcePersistentDisk": {"pdName": name, "readOnly": read_only}}
    return make_pod("q", uid="q", volumes=[source], **fields)


def ebs(**fields: Any) -> Pod:
    return make_pod("q", volumes=[{"name": "v", "awsElasticBlockStore": {"volumeID": "v"}}], **fields)


CASES: dict[str, dict[str, tuple[Pod, Object | None, Object | None, bool]]] = {
    "VolumeBinding": {
        "its claim comes": (USES_C, None, claim("c"), True),
        "its claim changes": (USES_C, claim("c"), claim("c", volume="v"), True),
        "another claim comes": (USES_C, None, claim("d"), False),
        "the claim of its ephemeral volume comes": (MAKES_C, None, claim("pod-v0"), True),
        "a claim of that name in another namespace comes": (
            USES_C,
            None,
            claim("c", namespace="else"),
            False,
        ),
        "its claim goes": (USES_C, claim("c"), None, False),
        "a volume comes": (USES_C, None, volume("v"), True),
        "a volume changes": (USES_C, volume("v"), volume("v", phase="Bound"), True),
        "a class comes": (USES_C, None, storage_class(), True),
        "a class allows other places": (USES_C, storage_class(), storage_class(zones=["a"]), True),
        "a class changes in another way": (USES_C, storage_class(), storage_class(provisioner="x"), False),
        "a node comes": (USES_C, None, NODE, True),
        "a node's labels change": (USES_C, NODE, LABELLED, True),
        "a node grows": (USES_C, NODE, make_node("n", allocatable={"cpu": "9"}), False),
        "a CSI node comes": (USES_C, None, csi_node("n"), True),
        "a CSI node serves other old drivers": (
            USES_C,
            csi_node("n"),
            csi_node("n", migrated="kubernetes.io/aws-ebs"),
            True,
        ),
        "a CSI node has other limits": (
            USES_C,
            csi_node("n", {DRIVER: 1}),
            csi_node("n", {DRIVER: 2}),
            False,
        ),
        "a driver stops reporting its capacity": (
            USES_C,
            csi_driver(),
            csi_driver(storage_capacity=False),
            True,
        ),
        "a driver begins to report its capacity": (
            USES_C,
            csi_driver(storage_capacity=False),
            csi_driver(),
            False,
        ),
        "a driver comes": (USES_C, None, csi_driver(), False),
        "capacity comes": (USES_C, None, capacity("k", "1Gi", "a"), True),
        "capacity grows": (USES_C, capacity("k", "1Gi", "a"), capacity("k", "2Gi", "a"), True),
        "capacity shrinks": (USES_C, capacity("k", "2Gi", "a"), capacity("k", "1Gi", "a"), False),
        "capacity becomes known": (USES_C, capacity("k", None, "a"), capacity("k", "1Gi", "a"), True),
        "larger volumes are possible": (
            USES_C,
            capacity("k", "9Gi", "a", largest="1Gi"),
            capacity("k", "9Gi", "a", largest="2Gi"),
            True,
        ),
        "there is more, but volumes are not larger": (
            USES_C,
            capacity("k", "8Gi", "a", largest="1Gi"),
            capacity("k", "9Gi", "a", largest="1Gi"),
            False,
        ),
    },
    "VolumeZone": {
        "its claim comes": (USES_C, None, claim("c"), True),
        "its claim changes": (USES_C, claim("c"), claim("c", volume="v"), True),
        "another claim comes": (USES_C, None, claim("d"), False),
        "claims of ephemeral volumes are not looked at": (MAKES_C, None, claim("pod-v0"), False),
        "a class comes that waits for a pod": (USES_C, None, storage_class(), True),
        "a class comes that does not": (USES_C, None, storage_class(waits=False), False),
        "a class changes": (USES_C, storage_class(), storage_class(zones=["a"]), False),
        "a volume comes": (USES_C, None, volume("v"), True),
        "a volume is elsewhere": (
            USES_C,
            volume("v", labels={ZONE: "a"}),
            volume("v", labels={ZONE: "b"}),
            True,
        ),
        "a volume changes in another way": (
            USES_C,
            volume("v", labels={ZONE: "a"}),
            volume("v", labels={ZONE: "a", "x": "y"}),
            False,
        ),
        "a volume's affinity is not looked at": (
            USES_C,
            volume("v"),
            volume("v", nodeAffinity=in_zone("a")),
            False,
        ),
        "a node comes": (USES_C, None, NODE, True),
        "a node's labels change": (USES_C, NODE, LABELLED, True),
    },
    "VolumeRestrictions": {
        "its disk gets free": (disk("d"), disk("d", on="n"), None, True),
        "its disk gets free in another namespace": (
            disk("d"),
            disk("d", on="n", namespace="else"),
            None,
            True,
        ),
        "another disk gets free": (disk("d"), disk("e", on="n"), None, False),
        "a disk that was shared for reading": (
            disk("d", read_only=True),
            disk("d", read_only=True, on="n"),
            None,
            False,
        ),
        "its claim gets free": (USES_C, pod_with("c", name="q", on="n"), None, True),
        "another claim gets free": (USES_C, pod_with("d", name="q", on="n"), None, False),
        "a claim of that name gets free elsewhere": (
            USES_C,
            pod_with("c", name="q", on="n", namespace="else"),
            None,
            False,
        ),
        "its claim comes": (USES_C, None, claim("c"), True),
        "its claim changes": (USES_C, claim("c"), claim("c", volume="v"), False),
        "another claim comes": (USES_C, None, claim("d"), False),
        "a node comes": (disk("d"), None, NODE, True),
        "a node's labels change": (disk("d"), NODE, LABELLED, False),
    },
    "NodeVolumeLimits": {
        "a CSI node comes": (USES_C, None, csi_node("n"), True),
        "a limit rises": (USES_C, csi_node("n", {DRIVER: 1}), csi_node("n", {DRIVER: 2}), True),
        "a limit falls": (USES_C, csi_node("n", {DRIVER: 2}), csi_node("n", {DRIVER: 1}), False),
        "a limit stays": (
            USES_C,
            csi_node("n", {DRIVER: 2}),
            csi_node("n", {DRIVER: 2}, migrated="x"),
            False,
        ),
        "a limit is lifted": (USES_C, csi_node("n", {DRIVER: 2}), csi_node("n", {DRIVER: None}), True),
        "a driver goes": (USES_C, csi_node("n", {DRIVER: 2}), csi_node("n"), True),
        "a driver comes": (USES_C, csi_node("n"), csi_node("n", {DRIVER: 2}), True),
        "a pod with a claim goes": (USES_C, pod_with("d", name="q", on="n"), None, True),
        "a pod with an ephemeral volume goes": (
            USES_C,
            pod_with_sources(EPHEMERAL, name="q", on="n"),
            None,
            True,
        ),
        "a pod with a disk of an old driver goes": (USES_C, ebs(on="n"), None, True),
        "a pod with a claim goes that had no node": (USES_C, pod_with("d", name="q"), None, False),
        "a pod without volumes goes": (USES_C, make_pod("q", on="n"), None, False),
        "its claim comes": (USES_C, None, claim("c"), True),
        "the claim of its ephemeral volume comes": (MAKES_C, None, claim("pod-v0"), True),
        "another claim comes": (USES_C, None, claim("d"), False),
        "something is detached": (USES_C, attachment("a", "n", "v"), None, True),
        "something is detached, for an ephemeral volume": (MAKES_C, attachment("a", "n", "v"), None, True),
        "the driver of its old disk detaches": (
            ebs(),
            attachment("a", "n", "v", attacher="ebs.csi.aws.com"),
            None,
            True,
        ),
        "another driver than that of its old disk detaches": (ebs(), attachment("a", "n", "v"), None, False),
        "something is attached": (USES_C, None, attachment("a", "n", "v"), False),
        "a node comes": (USES_C, None, NODE, False),
    },
}
ROWS = {f"{plugin}: {name}": (plugin, *row) for plugin, rows in CASES.items() for name, row in rows.items()}


@pytest.mark.parametrize(("plugin", "pod", "old", "new", "woken"), ROWS.values(), ids=ROWS.keys())
def test_hints(plugin: str, pod: Pod, old: Object | None, new: Object | None, woken: bool) -> None:
    assert wakes(plugin, pod, old, new) is woken
