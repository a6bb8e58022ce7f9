"""VolumeBinding's score: how full the storage would be, if the configuration gives a shape."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.base import Object
from moorage.api.pod import Pod
from moorage.cluster.cache import Cache
from moorage.config.args import UtilizationShapePoint
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import SKIP
from tests.plugins.volumes.volume_objects import (
    DRIVER,
    capacity,
    claim,
    csi_driver,
    in_zone,
    pod_with,
    storage_class,
    volume,
    volume_binding,
    zone_nodes,
)

EMPTIER = (UtilizationShapePoint(utilization=0, score=10), UtilizationShapePoint(utilization=100, score=0))
FULLER = (UtilizationShapePoint(utilization=0, score=0), UtilizationShapePoint(utilization=100, score=10))


def scores(pod: Pod, *objects: Object, shape: Any = FULLER) -> dict[str, int]:
    """The scores of node a in zone a, and of node b in zone b."""
    nodes = Nodes(Cache([*zone_nodes(a="a", b="b"), *objects]).snapshot())
    plugin = volume_binding(shape=shape)
    cycle = CycleState()
    if plugin.pre_filter(cycle, pod, nodes) is None:
        plugin.filter(cycle, pod, nodes)
    assert plugin.pre_score(cycle, pod, nodes) is None
    return dict(zip(nodes.names, plugin.score(cycle, pod, nodes).tolist(), strict=True))


def here(name: str, size: str, zone: str, **fields: Any) -> Object:
    return volume(name, size, nodeAffinity=in_zone(zone), **fields)


def new(name: str = "new") -> list[Object]:
    return [storage_class(name, DRIVER), csi_driver()]


SCORES: dict[str, tuple[tuple[str, ...], list[Object], dict[str, int]]] = {
    "how full the volumes get": (
        ("c",),
        [storage_class(), claim("c", "2Gi"), here("v", "4Gi", "a"), here("w", "10Gi", "b")],
        {"a": 50, "b": 20},
    ),
    "volumes of a class are added up": (
        ("c", "d"),
        [
            storage_class(),
            claim("c", "1Gi"),
            claim("d", "2Gi"),
            *(
                here(f"{zone}{size}", f"{size}Gi", zone)
                for zone, size in (("a", 2), ("a", 4), ("b", 6), ("b", 9))
            ),
        ],
        {"a": 50, "b": 20},
    ),
    "classes count alike, rounded away from zero": (
        ("c", "d"),
        [
            storage_class(),
            storage_class("other"),
            claim("c", "1Gi"),
            claim("d", "1Gi", storage_class="other"),
            here("v", "2Gi", "a"),
            here("w", "100Gi", "a", storage_class="other"),
            here("x", "1Gi", "b"),
            here("y", "2Gi", "b", storage_class="other"),
        ],
        {"a": 26, "b": 75},
    ),
    "room for new volumes": (
        ("c",),
        [
            *new(),
            claim("c", "1Gi", storage_class="new"),
            capacity("x", "2Gi", "a", storage_class="new"),
            capacity("y", "10Gi", "b", storage_class="new"),
        ],
        {"a": 50, "b": 10},
    ),
    "new volumes of a class share its room": (
        ("c", "d"),
        [
            *new(),
            claim("c", "1Gi", storage_class="new"),
            claim("d", "2Gi", storage_class="new"),
            capacity("x", "6Gi", "a", storage_class="new"),
            capacity("y", "10Gi", "b", storage_class="new"),
        ],
        {"a": 50, "b": 30},
    ),
    "more than there is room for counts as full": (
        ("c", "d"),
        [
            *new(),
            claim("c", "4Gi", storage_class="new"),
            claim("d", "4Gi", storage_class="new"),
            capacity("x", "6Gi", "a", storage_class="new"),
            capacity("y", "16Gi", "b", storage_class="new"),
        ],
        {"a": 100, "b": 50},
    ),
    "a report without an amount counts as full": (
        ("c",),
        [
            *new(),
            claim("c", "1Gi", storage_class="new"),
            capacity("x", None, "a", storage_class="new", largest="2Gi"),
            capacity("y", "10Gi", "b", storage_class="new"),
        ],
        {"a": 100, "b": 10},
    ),
    "existing volumes count alone": (
        ("c",),
        [
            *new(),
            claim("c", "1Gi", storage_class="new"),
            here("v", "2Gi", "a", storage_class="new"),
            capacity("x", "100Gi", "a", storage_class="new"),
            capacity("y", "10Gi", "b", storage_class="new"),
        ],
        {"a": 50, "b": 10},
    ),
    "a driver that does not report has no say": (
        ("c",),
        [storage_class("new", DRIVER), claim("c", "1Gi", storage_class="new")],
        {"a": 0, "b": 0},
    ),
    "bound claims have no say": (
        ("c",),
        [claim("c", volume="v"), volume("v", claim="c", phase="Bound")],
        {"a": 0, "b": 0},
    ),
    "no claims": ((), [], {"a": 0, "b": 0}),
}


@pytest.mark.parametrize(("claims", "objects", "expected"), SCORES.values(), ids=SCORES.keys())
def test_scores(claims: tuple[str, ...], objects: list[Object], expected: dict[str, int]) -> None:
    assert scores(pod_with(*claims), *objects) == expected


def test_the_shape_decides_what_is_good() -> None:
    objects = [storage_class(), claim("c", "2Gi"), here("v", "4Gi", "a"), here("w", "10Gi", "b")]
    assert scores(pod_with("c"), *objects, shape=EMPTIER) == {"a": 50, "b": 80}


def test_without_a_shape_there_is_no_score() -> None:
    nodes = Nodes(Cache(zone_nodes(a="a")).snapshot())
    assert volume_binding().pre_score(CycleState(), pod_with("c"), nodes) is SKIP
    assert volume_binding().score(CycleState(), pod_with("c"), nodes).tolist() == [0]
