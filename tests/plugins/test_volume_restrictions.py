"""VolumeRestrictions: which disks can be shared, and claims for one pod only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from moorage.cluster.cache import Cache
from moorage.cluster.pod_table import PodInfo
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.hypothetical_pods import HypotheticalPods
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import SKIP, Code
from moorage.plugins.volume_restrictions import CLAIM_IN_USE, NO_DISK, VolumeRestrictions
from tests.builders import make_node
from tests.plugins.volumes.volume_objects import Manifest, ask, claim, passing, pod_with, pod_with_sources


def gce(name: str, *, read_only: bool = False) -> Manifest:
    return {"gcePersistentDisk": {"pdName": name, "readOnly": read_only}}


def ebs(name: str, *, read_only: bool = False) -> Manifest:
    return {"awsElasticBlockStore": {"volumeID": name, "readOnly": read_only}}


def iscsi(iqn: str, *, read_only: bool = False, lun: int = 0) -> Manifest:
    return {"iscsi": {"targetPortal": "10.0.0.1", "iqn": iqn, "lun": lun, "readOnly": read_only}}


def rbd(*monitors: str, pool: str = "p", image: str = "i", read_only: bool = False) -> Manifest:
    return {"rbd": {"monitors": list(monitors), "pool": pool, "image": image, "readOnly": read_only}}


DISKS = {
    "a GCE disk for writing": (gce("a"), gce("a"), False),
    "a GCE disk, one pod writes": (gce("a", read_only=True), gce("a"), False),
    "a GCE disk, both read": (gce("a", read_only=True), gce("a", read_only=True), True),
    "two GCE disks": (gce("a"), gce("b"), True),
    "an EBS volume": (ebs("a"), ebs("a"), False),
    "an EBS volume, even if both read": (ebs("a", read_only=True), ebs("a", read_only=True), False),
    "two EBS volumes": (ebs("a"), ebs("b"), True),
    "an iSCSI target": (iscsi("a"), iscsi("a"), False),
    "an iSCSI target with two units": (iscsi("a", lun=1), iscsi("a", lun=2), False),
    "an iSCSI target, both read": (iscsi("a", read_only=True), iscsi("a", read_only=True), True),
    "two iSCSI targets": (iscsi("a"), iscsi("b"), True),
    "an RBD image by a common monitor": (rbd("m1", "m2"), rbd("m2", "m3"), False),
    "an RBD image by other monitors": (rbd("m1"), rbd("m2"), True),
    "an RBD image, both read": (rbd("m", read_only=True), rbd("m", read_only=True), True),
    "two RBD pools": (rbd("m", pool="p"), rbd("m", pool="q"), True),
    "two RBD images": (rbd("m", image="i"), rbd("m", image="j"), True),
    "disks of two kinds with one name": (gce("a"), ebs("a"), True),
    "disks nobody restricts": (
        {"azureDisk": {"diskName": "a", "diskURI": "a"}},
        {"azureDisk": {"diskName": "a", "diskURI": "a"}},
        True,
    ),
}


@pytest.mark.parametrize(("used", "wanted", "shared"), DISKS.values(), ids=DISKS.keys())
def test_disks_that_pods_name_themselves(used: Manifest, wanted: Manifest, shared: bool) -> None:
    cache = Cache([make_node("a"), make_node("b"), pod_with_sources(used, name="user", on="a")])
    answer = ask(VolumeRestrictions(), pod_with_sources(wanted), cache)
    assert answer == {"a": () if shared else (NO_DISK,), "b": ()}


def test_any_of_several_disks_in_use_is_enough() -> None:
    cache = Cache([make_node("a"), pod_with_sources(gce("x"), gce("y"), name="user", on="a")])
    assert ask(VolumeRestrictions(), pod_with_sources(ebs("x"), gce("y")), cache) == {"a": (NO_DISK,)}


ONCE: dict[str, Any] = {"accessModes": ["ReadWriteOncePod"]}


def test_a_claim_for_one_pod_is_refused_everywhere_while_it_has_a_user() -> None:
    cache = Cache([make_node("a"), make_node("b"), claim("c", **ONCE), pod_with("c", name="user", on="a")])
    answer = ask(VolumeRestrictions(), pod_with("c"), cache)
    assert answer == {"a": (CLAIM_IN_USE,), "b": (CLAIM_IN_USE,)}


def test_a_disk_in_use_is_the_first_reason() -> None:
    user = pod_with_sources(gce("x"), {"persistentVolumeClaim": {"claimName": "c"}}, name="user", on="a")
    cache = Cache([make_node("a"), claim("c", **ONCE), user])
    pod = pod_with_sources(gce("x"), {"persistentVolumeClaim": {"claimName": "c"}})
    assert ask(VolumeRestrictions(), pod, cache) == {"a": (NO_DISK,)}


def test_a_claim_of_the_same_name_in_another_namespace_is_another_claim() -> None:
    other = claim("c", namespace="other", **ONCE)
    user = pod_with("c", name="user", on="a", namespace="other")
    cache = Cache([make_node("a"), claim("c", **ONCE), other, user])
    assert passing(ask(VolumeRestrictions(), pod_with("c"), cache)) == {"a"}


@pytest.mark.parametrize("modes", [["ReadWriteOnce"], ["ReadWriteMany"], ["ReadOnlyMany"]])
def test_other_claims_can_be_shared(modes: list[str]) -> None:
    cache = Cache([make_node("a"), claim("c", accessModes=modes), pod_with("c", name="user", on="a")])
    assert VolumeRestrictions().pre_filter(CycleState(), pod_with("c"), Nodes(cache.snapshot())) is SKIP


def test_a_claim_that_does_not_exist_ends_the_attempt() -> None:
    cache = Cache([make_node("a")])
    assert ask(VolumeRestrictions(), pod_with("c"), cache) == 'persistentvolumeclaim "c" not found'
    status = VolumeRestrictions().pre_filter(CycleState(), pod_with("c"), Nodes(cache.snapshot()))
    assert status is not None
    assert status.code is Code.UNRESOLVABLE


def test_pods_without_restricted_volumes_are_skipped() -> None:
    cache = Cache([make_node("a")])
    pod = pod_with_sources({"emptyDir": {}})
    assert VolumeRestrictions().pre_filter(CycleState(), pod, Nodes(cache.snapshot())) is SKIP


def changed(cache: Cache, removed: dict[str, str], added: dict[str, str] | None = None) -> Nodes:
    """All nodes, with pods taken away and users of the claim added: by node, the pod's name."""
    snapshot = cache.snapshot()
    names = [info.pod.name for info in snapshot.pods.infos]
    changes = HypotheticalPods(
        snapshot,
        len(snapshot),
        np.array([snapshot.row_of[node] for node in removed], np.intp),
        np.array([names.index(name) for name in removed.values()], np.intp),
        [(snapshot.row_of[node], PodInfo(pod_with("c", name=name))) for node, name in (added or {}).items()],
    )
    return Nodes(snapshot, None, changes)


def test_preemption_of_the_only_user_frees_the_claim_on_that_node_alone() -> None:
    cache = Cache(
        [
            make_node("a"),
            make_node("b"),
            claim("c", **ONCE),
            pod_with("c", name="user", on="a"),
            pod_with(name="bystander", on="b"),
        ]
    )
    nodes = changed(cache, removed={"a": "user", "b": "bystander"})
    answer = ask(VolumeRestrictions(), pod_with("c"), cache, nodes)
    assert answer == {"a": (), "b": (CLAIM_IN_USE,)}


def test_preemption_does_not_help_while_the_claim_has_another_user() -> None:
    users = [pod_with("c", name=name, on=node) for node, name in (("a", "x"), ("b", "y"))]
    cache = Cache([make_node("a"), make_node("b"), claim("c", **ONCE), *users])
    answer = ask(VolumeRestrictions(), pod_with("c"), cache, changed(cache, removed={"a": "x", "b": "y"}))
    assert passing(answer) == set()


def test_a_nominated_user_counts_on_its_node_alone() -> None:
    cache = Cache([make_node("a"), make_node("b"), claim("c", **ONCE), pod_with("c", name="u", on="a")])
    nodes = changed(cache, removed={"a": "u"}, added={"a": "nominated"})
    assert passing(ask(VolumeRestrictions(), pod_with("c"), cache, nodes)) == set()
