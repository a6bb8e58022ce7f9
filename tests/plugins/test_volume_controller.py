"""The stand-in for volume controllers: what the scheduler asks for is done at once."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from moorage.api.base import Object
from moorage.api.persistent_volumes import is_bound
from moorage.api.storage import PersistentVolume, PersistentVolumeClaim
from moorage.cluster.cache import Cache
from moorage.framework.interface.effects import BindVolume, SelectNode
from moorage.sim.volume_controller import VolumeController
from tests.builders import HOSTNAME, ZONE, make_node
from tests.plugins.volumes.volume_objects import (
    DRIVER,
    Manifest,
    capacity,
    claim,
    csi_node,
    in_zone,
    storage_class,
    volume,
)


def test_a_volume_and_its_claim_are_bound_to_each_other() -> None:
    cache = Cache([volume("v"), claim("c", uid="u")])
    answer = VolumeController(cache).apply(BindVolume(volume("v"), claim("c", uid="u")))
    stored = cache.objects.of(PersistentVolume).get("", "v")
    asking = cache.objects.of(PersistentVolumeClaim).get("default", "c")
    assert answer is stored
    assert stored is not None
    assert asking is not None
    assert stored.status.phase == asking.status.phase == "Bound"
    assert stored.spec.claim_ref is not None
    assert stored.spec.claim_ref.uid == "u"
    assert asking.spec.volume_name == "v"
    assert is_bound(asking)


def test_binding_ends_the_assumption() -> None:
    cache = Cache([volume("v"), claim("c")])
    table = cache.objects.of(PersistentVolume)
    table.assume(volume("v", claim="c"))
    answer = VolumeController(cache).apply(BindVolume(volume("v", claim="c"), claim("c")))
    table.forget("", "v")
    assert table.get("", "v") is answer is table.stored("", "v")


CLASS = storage_class("new", DRIVER)
TOPOLOGIES: dict[str, tuple[list[Object], Manifest | None]] = {
    "nothing known": ([CLASS], None),
    "the driver's own labels": (
        [CLASS, csi_node("n", {DRIVER: 1}, topology_keys=[HOSTNAME])],
        in_zone("n", key=HOSTNAME),
    ),
    "a driver without topology": (
        [storage_class("new", DRIVER, zones=["a"]), csi_node("n", {DRIVER: 1})],
        None,
    ),
    "the storage class' labels": ([storage_class("new", DRIVER, zones=["a", "b"])], in_zone("a")),
    "a storage class for other zones": ([storage_class("new", DRIVER, zones=["b"])], None),
    "the labels of capacity reports": ([CLASS, capacity("x", "1Gi", "a", storage_class="new")], in_zone("a")),
    "reports for other zones": ([CLASS, capacity("x", "1Gi", "b", storage_class="new")], None),
    "reports of other classes": ([CLASS, capacity("x", "1Gi", "a", storage_class="other")], None),
}


@pytest.mark.parametrize(("objects", "expected"), TOPOLOGIES.values(), ids=TOPOLOGIES.keys())
def test_a_new_volume_is_in_the_nodes_part_of_the_cluster(
    objects: Iterable[Object], expected: Manifest | None
) -> None:
    cache = Cache([make_node("n", labels={HOSTNAME: "n", ZONE: "a"}), *objects])
    asking = claim("c", "2Gi", storage_class="new")
    cache.put(asking)
    answer = VolumeController(cache).apply(SelectNode(asking, "n"))
    assert isinstance(answer, PersistentVolumeClaim)
    assert answer.metadata.annotations["volume.kubernetes.io/selected-node"] == "n"
    assert is_bound(answer)
    made = cache.objects.of(PersistentVolume).get("", answer.spec.volume_name)
    assert made is not None
    assert made.name == "pvc-default-c"
    assert made.spec.node_affinity == volume("x", nodeAffinity=expected).spec.node_affinity
    assert made.spec.csi is not None
    assert made.spec.csi.driver == DRIVER
    assert made.spec.capacity == asking.spec.resources.requests
