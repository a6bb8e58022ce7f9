"""VolumeZone: the zones and regions of bound volumes against those of nodes."""

from __future__ import annotations

import pytest

from moorage.api.storage import PersistentVolumeClaim, StorageClass
from moorage.cluster.cache import Cache
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import SKIP
from moorage.plugins.volume_zone import WRONG_ZONE, VolumeZone
from tests.builders import ZONE, make_node
from tests.plugins.volumes.volume_objects import (
    BETA_ZONE,
    EPHEMERAL,
    REGION,
    ask,
    claim,
    pod_with,
    pod_with_sources,
    storage_class,
    volume,
)

PLACES = {
    "the zone": ({ZONE: "a"}, {ZONE: "a"}, True),
    "another zone": ({ZONE: "a"}, {ZONE: "b"}, False),
    "one of several zones": ({ZONE: "a__b"}, {ZONE: "b"}, True),
    "none of several zones": ({ZONE: "a__b"}, {ZONE: "c"}, False),
    "zones with spaces around": ({ZONE: "a __ b"}, {ZONE: "b"}, True),
    "a list with nothing in it says nothing": ({ZONE: "a__"}, {ZONE: "b"}, True),
    "zone and region": ({ZONE: "a", REGION: "r"}, {ZONE: "a", REGION: "r"}, True),
    "the zone in another region": ({ZONE: "a", REGION: "r"}, {ZONE: "a", REGION: "s"}, False),
    "the zone, no region": ({ZONE: "a", REGION: "r"}, {ZONE: "a"}, False),
    "the old label on both": ({BETA_ZONE: "a"}, {BETA_ZONE: "a"}, True),
    "the old label on the volume, today's on the node": ({BETA_ZONE: "a"}, {ZONE: "a"}, True),
    "the old label on the volume, another zone": ({BETA_ZONE: "a"}, {ZONE: "b"}, False),
    "a node's old label comes first": ({BETA_ZONE: "a"}, {BETA_ZONE: "b", ZONE: "a"}, False),
    "today's label on the volume, the old one on the node": ({ZONE: "a"}, {BETA_ZONE: "a"}, False),
    "a node that is nowhere": ({ZONE: "a"}, {}, True),
    "a node with other labels only": ({ZONE: "a"}, {"disk": "ssd"}, True),
    "a node with a region only": ({ZONE: "a"}, {REGION: "r"}, False),
}


@pytest.mark.parametrize(("labels", "node_labels", "passes"), PLACES.values(), ids=PLACES.keys())
def test_places(labels: dict[str, str], node_labels: dict[str, str], passes: bool) -> None:
    cache = Cache(
        [
            make_node("n", labels=node_labels),
            volume("v", labels=labels, claim="c"),
            claim("c", volume="v"),
        ]
    )
    assert ask(VolumeZone(), pod_with("c"), cache) == {"n": () if passes else (WRONG_ZONE,)}


def test_all_volumes_must_be_there() -> None:
    cache = Cache(
        [
            *(make_node(name, labels={ZONE: name}) for name in "abc"),
            volume("v", labels={ZONE: "a__b"}),
            claim("c", volume="v"),
            volume("w", labels={ZONE: "b__c"}),
            claim("d", volume="w"),
        ]
    )
    answer = ask(VolumeZone(), pod_with("c", "d"), cache)
    assert answer == {"a": (WRONG_ZONE,), "b": (), "c": (WRONG_ZONE,)}


REFUSALS = {
    "no claim": ([], 'persistentvolumeclaim "c" not found'),
    "no volume": ([claim("c", volume="v")], 'persistentvolume "v" not found'),
    "unbound, no class": (
        [claim("c", storage_class=None)],
        "PersistentVolumeClaim had no pv name and storageClass name",
    ),
    "unbound, class is gone": (
        [claim("c", storage_class="x")],
        'storageclass.storage.k8s.io "x" not found',
    ),
    "unbound, should be bound": ([claim("c"), storage_class(waits=False)], "PersistentVolume had no name"),
}


@pytest.mark.parametrize(("objects", "message"), REFUSALS.values(), ids=REFUSALS.keys())
def test_refusals(objects: list[PersistentVolumeClaim | StorageClass], message: str) -> None:
    assert ask(VolumeZone(), pod_with("c"), Cache([make_node("n"), *objects])) == message


def test_a_claim_without_a_name() -> None:
    cache = Cache([make_node("n")])
    assert ask(VolumeZone(), pod_with(""), cache) == "PersistentVolumeClaim had no name"


def test_what_is_nowhere_yet_is_skipped() -> None:
    cache = Cache([make_node("n"), claim("c"), storage_class()])
    for pod in (pod_with("c"), pod_with_sources(EPHEMERAL), pod_with()):
        assert VolumeZone().pre_filter(CycleState(), pod, Nodes(cache.snapshot())) is SKIP
