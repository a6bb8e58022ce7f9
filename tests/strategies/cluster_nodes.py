"""Nodes: labels, taints, room, images, features."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from hypothesis import strategies as st

from tests import builders as b
from tests.builders import HOSTNAME, ZONE, Manifest
from tests.strategies.choosing import Draw, any_of, from_pool, one_of, present, subset
from tests.strategies.subjects import (
    BATCH,
    CORDON,
    EFFECTS,
    FEATURES,
    GPU,
    HUGE,
    IMAGES,
    OWNED,
    RESOURCES,
    SPREAD,
    TAINTS,
)

LABEL_NUMBERS = ("1", "2", "10", "007", "x", "", "1_0", "9223372036854775807", "9223372036854775808")

NODE_LABELS = any_of(
    lambda zone, rest: rest if zone is None else {ZONE: zone, **rest},
    ("a", "b", "a", "b", "c", "", None, None),
    present(disk=(None, "ssd", "hdd", ""), rack=(None, "1", "2"), gen=(None, None, *LABEL_NUMBERS)),
)

ZONE_LABELS = any_of(lambda zone: {} if zone is None else {ZONE: zone}, ("a", "b", "", None))
ALL_TAINTS = [f"{pair}:{effect}" for pair in ("gpu=yes", "gpu=no", "old", CORDON) for effect in EFFECTS]
TAINTS_LIST = from_pool([*([] for _ in range(40)), *subset(ALL_TAINTS)])

AMPLE_ROOM = {"cpu": "4", "memory": "8Gi", "pods": "110"}
ROOM = st.builds(
    lambda usual, special: {**usual, **special},
    from_pool(
        present(
            cpu=("8", "8", "8", "3", "1500m", "0", None),
            memory=("16Gi", "16Gi", "16Gi", "3Gi", "700M", "0", None),
            pods=("110", "110", "110", "110", "4", "2", None),
        )
    ),
    any_of(
        lambda disk, special: {**disk, **special},
        ({}, {"ephemeral-storage": "10Gi"}, {"ephemeral-storage": "0"}),
        ({}, {GPU: "2"}, {GPU: "7", HUGE: "64Mi"}, {GPU: "0", BATCH: "5"}, {HUGE: "8Mi", "cores": "8"}),
    ),
)
MIB = 2**20
IMAGE = any_of(
    lambda names, size: (names, size),
    subset(("web:1", "web:latest", "reg.io:5000/db:latest", "reg.io:5000/db:2", "big@sha256:0")),
    (0, 10 * MIB, 23 * MIB, 333333333, 700 * MIB, 5000 * MIB),
)
IMAGE_LIST = st.lists(IMAGE, max_size=3)

FEATURE_LIST = st.sampled_from(
    subset(("RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport", "Other"), most=3)
)
HOST = one_of(*("own",) * 4, "shared", "", None)
UNSCHEDULABLE = one_of(False, False, True)


@st.composite
def nodes(draw: Draw[Any], name: str, about: Collection[str]) -> Manifest:
    """A node."""
    labels = draw(ZONE_LABELS if OWNED in about else NODE_LABELS)
    host = draw(HOST)
    if host is not None:
        labels = {**labels, HOSTNAME: name if host == "own" else host}
    parts: dict[str, Any] = {"allocatable": draw(ROOM) if RESOURCES in about else AMPLE_ROOM}
    if TAINTS in about or SPREAD in about:
        parts["taints"] = draw(TAINTS_LIST)
    if TAINTS in about:
        parts["unschedulable"] = draw(UNSCHEDULABLE)
    if IMAGES in about:
        parts["images"] = draw(IMAGE_LIST)
    if FEATURES in about:
        parts["features"] = draw(FEATURE_LIST)
    return b.node(name, labels=labels, **parts)
