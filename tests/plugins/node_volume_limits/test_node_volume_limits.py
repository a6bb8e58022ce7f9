"""NodeVolumeLimits: how many volumes of a driver a node takes, and what counts as one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.base import Object
from moorage.api.pod import Pod
from moorage.api.storage import CSINode, PersistentVolume, PersistentVolumeClaim, VolumeAttachment
from moorage.cluster.cache import Cache
from moorage.cluster.pod_table import PodInfo
from moorage.emulation.kubernetes_version import V1_36
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.hypothetical_pods import HypotheticalPods
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import SKIP, PluginError
from moorage.plugins.node_volume_limits.csi_volumes import RequestedVolumes, requested_volumes
from moorage.plugins.node_volume_limits.plugin import TOO_MANY_VOLUMES, NodeVolumeLimits
from moorage.plugins.node_volume_limits.volume_room import limits_of
from moorage.plugins.node_volume_limits.volumes_in_use import NodeVolumesInUse
from tests.builders import make_node
from tests.plugins.volumes.volume_objects import (
    DRIVER,
    EPHEMERAL,
    Answer,
    Manifest,
    ask,
    attachment,
    claim,
    csi,
    csi_node,
    pod_with,
    pod_with_sources,
    storage_class,
    volume,
)

EBS_DRIVER = "ebs.csi.aws.com"
TABLES = (CSINode, PersistentVolume, PersistentVolumeClaim)


def bound(*names: str, driver: str = DRIVER) -> list[Object]:
    """Claims, each with a CSI volume of its own: claim x has volume v-x with the handle h-x."""
    volumes = [volume(f"v-{name}", csi=csi(f"h-{name}", driver), claim=name, phase="Bound") for name in names]
    return [*volumes, *(claim(name, volume=f"v-{name}") for name in names)]


def ebs(name: str) -> Manifest:
    return {"awsElasticBlockStore": {"volumeID": name}}


def on(node: str, *claims: str) -> Pod:
    return pod_with(*claims, name="-".join(("user", node, *claims)), on=node)


ATTACHABLE: list[dict[str, int | None]] = [{DRIVER: 1}, {DRIVER: 3}, {DRIVER: None}, {"other": 0}]

LIMITS: dict[str, tuple[list[Object], Pod, bool]] = {
    "room for one more": ([csi_node("n", {DRIVER: 2}), *bound("a", "c"), on("n", "a")], pod_with("c"), True),
    "full": ([csi_node("n", {DRIVER: 1}), *bound("a", "c"), on("n", "a")], pod_with("c"), False),
    "no room at all": ([csi_node("n", {DRIVER: 0}), *bound("c")], pod_with("c"), False),
    "two more than fit": (
        [csi_node("n", {DRIVER: 2}), *bound("a", "b", "c"), on("n", "a")],
        pod_with("b", "c"),
        False,
    ),
    "a volume that is here already": (
        [csi_node("n", {DRIVER: 1}), *bound("c"), on("n", "c")],
        pod_with("c"),
        True,
    ),
    "two claims for one volume": (
        [
            csi_node("n", {DRIVER: 1}),
            volume("v", csi=csi("h")),
            claim("a", volume="v"),
            claim("c", volume="v"),
            on("n", "a"),
        ],
        pod_with("c"),
        True,
    ),
    "full with another driver's volumes": (
        [csi_node("n", {DRIVER: 1}), *bound("a", driver="other"), *bound("c"), on("n", "a")],
        pod_with("c"),
        True,
    ),
    "two drivers, one of them full": (
        [
            csi_node("n", {DRIVER: 5, "other": 1}),
            *bound("a", "b", driver="other"),
            *bound("c"),
            on("n", "a"),
        ],
        pod_with("b", "c"),
        False,
    ),
    "no CSINode": ([*bound("a", "c"), on("n", "a")], pod_with("c"), True),
    "a driver without a limit": (
        [csi_node("n", {DRIVER: None}), *bound("a", "c"), on("n", "a")],
        pod_with("c"),
        True,
    ),
    "volumes of no CSI driver": (
        [
            csi_node("n", {DRIVER: 1}),
            volume("v"),
            claim("a", volume="v"),
            *bound("c"),
            on("n", "a"),
        ],
        pod_with("c"),
        True,
    ),
    "a claim without a volume counts for its provisioner": (
        [
            csi_node("n", {DRIVER: 1}),
            storage_class(provisioner=DRIVER),
            claim("a"),
            *bound("c"),
            on("n", "a"),
        ],
        pod_with("c"),
        False,
    ),
    "so does the pod's own": (
        [
            csi_node("n", {DRIVER: 1}),
            storage_class(provisioner=DRIVER),
            claim("c"),
            *bound("a"),
            on("n", "a"),
        ],
        pod_with("c"),
        False,
    ),
    "a claim whose volume is gone counts for its provisioner": (
        [
            csi_node("n", {DRIVER: 1}),
            storage_class(provisioner=DRIVER),
            claim("a", volume="gone"),
            *bound("c"),
            on("n", "a"),
        ],
        pod_with("c"),
        False,
    ),
    "a claim without class or volume does not count": (
        [csi_node("n", {DRIVER: 0}), claim("c", storage_class=None)],
        pod_with("c"),
        True,
    ),
    "a claim whose class is gone does not count": (
        [csi_node("n", {DRIVER: 0}), claim("c", storage_class="gone")],
        pod_with("c"),
        True,
    ),
    "a running pod's claim that is gone does not count": (
        [csi_node("n", {DRIVER: 1}), *bound("c"), on("n", "gone")],
        pod_with("c"),
        True,
    ),
    "an attached volume that no pod uses": (
        [csi_node("n", {DRIVER: 1}), *bound("a", "c"), attachment("x", "n", "v-a")],
        pod_with("c"),
        False,
    ),
    "an attached volume that a pod uses counts once": (
        [csi_node("n", {DRIVER: 2}), *bound("a", "c"), on("n", "a"), attachment("x", "n", "v-a")],
        pod_with("c"),
        True,
    ),
    "the wanted volume, attached without a pod, counts twice": (
        [csi_node("n", {DRIVER: 1}), *bound("c"), attachment("x", "n", "v-c")],
        pod_with("c"),
        False,
    ),
    "attached to another node": (
        [csi_node("n", {DRIVER: 1}), *bound("a", "c"), attachment("x", "m", "v-a")],
        pod_with("c"),
        True,
    ),
    "an attachment of another driver": (
        [csi_node("n", {DRIVER: 1}), *bound("a", "c"), attachment("x", "n", "v-a", attacher="other")],
        pod_with("c"),
        True,
    ),
    "attachments that say too little": (
        [
            csi_node("n", {DRIVER: 1}),
            *bound("a", "c"),
            volume("not-csi"),
            attachment("w", "n", None),
            attachment("x", "n", "gone"),
            attachment("y", "n", "v-a", attacher=""),
            attachment("z", "n", "not-csi"),
        ],
        pod_with("c"),
        True,
    ),
    "an in-tree volume counts for the driver that replaced its own": (
        [
            csi_node("n", {EBS_DRIVER: 1}),
            volume("v", **ebs("vol-1")),
            claim("a", volume="v"),
            *bound("c", driver=EBS_DRIVER),
            on("n", "a"),
        ],
        pod_with("c"),
        False,
    ),
    "an in-tree volume and a CSI volume can be the same": (
        [
            csi_node("n", {EBS_DRIVER: 1}),
            volume("v", **ebs("aws://zone/vol-1")),
            claim("a", volume="v"),
            volume("w", csi=csi("vol-1", EBS_DRIVER)),
            claim("c", volume="w"),
            on("n", "a"),
        ],
        pod_with("c"),
        True,
    ),
    "an in-tree volume that cannot be translated does not count": (
        [
            csi_node("n", {EBS_DRIVER: 0}),
            volume("v", **ebs("aws://zone/no-volume")),
            claim("c", volume="v"),
        ],
        pod_with("c"),
        True,
    ),
    "an in-tree provisioner": (
        [csi_node("n", {EBS_DRIVER: 0}), storage_class(provisioner="kubernetes.io/aws-ebs"), claim("c")],
        pod_with("c"),
        False,
    ),
    "a disk named in the pod": ([csi_node("n", {EBS_DRIVER: 0})], pod_with_sources(ebs("vol-1")), False),
    "a disk named in a running pod": (
        [
            csi_node("n", {EBS_DRIVER: 1}),
            *bound("c", driver=EBS_DRIVER),
            pod_with_sources(ebs("vol-1"), name="user", on="n"),
        ],
        pod_with("c"),
        False,
    ),
    "a disk named in both": (
        [csi_node("n", {EBS_DRIVER: 1}), pod_with_sources(ebs("vol-1"), name="user", on="n")],
        pod_with_sources(ebs("vol-1")),
        True,
    ),
    "an ephemeral volume": (
        [csi_node("n", {DRIVER: 0}), volume("v", csi=csi("h")), claim("pod-v0", volume="v", owner_uid="u")],
        pod_with_sources(EPHEMERAL, uid="u"),
        False,
    ),
    "a running pod's ephemeral volume": (
        [
            csi_node("n", {DRIVER: 1}),
            *bound("c"),
            volume("v", csi=csi("h")),
            claim("user-v0", volume="v", owner_uid="u"),
            pod_with_sources(EPHEMERAL, name="user", uid="u", on="n"),
        ],
        pod_with("c"),
        False,
    ),
}


@pytest.mark.parametrize(("objects", "pod", "passes"), LIMITS.values(), ids=LIMITS.keys())
def test_limits(objects: list[Object], pod: Pod, passes: bool) -> None:
    answer = ask(NodeVolumeLimits(Handle()), pod, Cache([make_node("n"), *objects]))
    assert answer == {"n": () if passes else (TOO_MANY_VOLUMES,)}


MIGRATED: dict[str, tuple[Manifest, str]] = {
    "EBS": (ebs("vol-1"), EBS_DRIVER),
    "GCE": ({"gcePersistentDisk": {"pdName": "d"}}, "pd.csi.storage.gke.io"),
    "Azure": ({"azureDisk": {"diskName": "d", "diskURI": "/d"}}, "disk.csi.azure.com"),
    "Cinder": ({"cinder": {"volumeID": "d"}}, "cinder.csi.openstack.org"),
    "Portworx": ({"portworxVolume": {"volumeID": "d"}}, "pxd.portworx.com"),
}


@pytest.mark.parametrize(("source", "driver"), MIGRATED.values(), ids=MIGRATED.keys())
def test_every_migrated_driver(source: Manifest, driver: str) -> None:
    objects = [csi_node("n", {driver: 0}), volume("v", **source), claim("c", volume="v")]
    cache = Cache([make_node("n"), make_node("m"), *objects])
    for pod in (pod_with("c"), pod_with_sources(source)):
        assert ask(NodeVolumeLimits(Handle()), pod, cache) == {"n": (TOO_MANY_VOLUMES,), "m": ()}


def test_nodes_are_evaluated_by_their_own_limits() -> None:
    cache = Cache(
        [
            *(make_node(name) for name in ("full", "roomy", "free")),
            csi_node("full", {DRIVER: 1}),
            csi_node("roomy", {DRIVER: 2}),
            *bound("a", "b", "c"),
            on("full", "a"),
            on("roomy", "b"),
        ]
    )
    answer = ask(NodeVolumeLimits(Handle()), pod_with("c"), cache)
    assert answer == {"full": (TOO_MANY_VOLUMES,), "roomy": (), "free": ()}


def test_changes_of_the_tables_are_noticed() -> None:
    cache = Cache([make_node("n"), csi_node("n", {DRIVER: 0}), *bound("c")])
    plugin = NodeVolumeLimits(Handle())
    assert ask(plugin, pod_with("c"), cache) == {"n": (TOO_MANY_VOLUMES,)}
    cache.put(csi_node("n", {DRIVER: 1}))
    assert ask(plugin, pod_with("c"), cache) == {"n": ()}
    for item in bound("a"):
        cache.put(item)
    cache.put(attachment("x", "n", "v-a"))
    assert ask(plugin, pod_with("c"), cache) == {"n": (TOO_MANY_VOLUMES,)}
    cache.objects.of(PersistentVolume).remove("", "v-a")
    assert ask(plugin, pod_with("c"), cache) == {"n": ()}


def test_another_provisioner_of_a_class_is_noticed() -> None:
    objects = [csi_node("n", {DRIVER: 1}), storage_class("late", DRIVER), claim("a"), on("n", "a")]
    cache, plugin = Cache([make_node("n"), *objects, *bound("c")]), NodeVolumeLimits(Handle())
    assert ask(plugin, pod_with("c"), cache) == {"n": (TOO_MANY_VOLUMES,)}
    cache.put(storage_class("late", "other"))
    assert ask(plugin, pod_with("c"), cache) == {"n": ()}


def test_pods_without_such_volumes_are_skipped() -> None:
    nodes = Nodes(Cache([make_node("n")]).snapshot())
    for pod in (pod_with(), pod_with_sources({"emptyDir": {}})):
        assert NodeVolumeLimits(Handle()).pre_filter(CycleState(), pod, nodes) is SKIP


def filtered(pod: Pod, *objects: Object) -> object:
    nodes = Nodes(Cache([make_node("n"), *objects]).snapshot())
    return NodeVolumeLimits(Handle()).filter(CycleState(), pod, nodes).reasons[0].texts


def test_a_claim_that_does_not_exist_refuses_all_nodes() -> None:
    missing = 'looking up PVC default/c: persistentvolumeclaim "c" not found'
    assert filtered(pod_with("c")) == (missing,)


FAILURES: dict[str, tuple[Pod, list[Object], str]] = {
    "a claim without a name": (pod_with(""), [], "PersistentVolumeClaim had no name"),
    "an ephemeral volume's name taken by another claim": (
        pod_with_sources(EPHEMERAL, uid="u"),
        [claim("pod-v0")],
        "PVC default/pod-v0 was not created for pod default/pod (pod is not owner)",
    ),
    "a disk that its driver cannot take": (
        pod_with_sources(ebs("aws://zone/no-volume")),
        [csi_node("n")],
        "converting volume(v0) from inline to csi: failed to translate Kubernetes ID to EBS Volume ID "
        "Invalid format for AWS volume (aws://zone/no-volume)",
    ),
}


@pytest.mark.parametrize(("pod", "objects", "message"), FAILURES.values(), ids=FAILURES.keys())
def test_failures(pod: Pod, objects: list[Object], message: str) -> None:
    with pytest.raises(PluginError) as caught:
        filtered(pod, *objects)
    assert str(caught.value).endswith(message)


@given(
    limits=st.lists(st.integers(0, 4), min_size=2, max_size=2),
    used=st.lists(st.sets(st.integers(0, 5), max_size=4), min_size=2, max_size=2),
    attached=st.lists(st.sets(st.integers(0, 5), max_size=3), min_size=2, max_size=2),
    wanted=st.sets(st.integers(0, 5), min_size=1, max_size=3),
)
def test_counting_only_where_needed_equals_counting_everywhere(
    limits: list[int], used: list[set[int]], attached: list[set[int]], wanted: set[int]
) -> None:
    """Claims 0 to 3 have volumes of the limited driver, 4 and 5 of another one."""
    cache = Cache([*bound("0", "1", "2", "3"), *bound("4", "5", driver="other")])
    expected = {}
    for number, limit in enumerate(limits):
        name = f"n{number}"
        cache.put(make_node(name))
        cache.put(csi_node(name, {DRIVER: limit}))
        cache.put(on(name, *(str(each) for each in used[number])))
        for each in attached[number]:
            driver = DRIVER if each < 4 else "other"
            cache.put(attachment(f"{name}-{each}", name, f"v-{each}", attacher=driver))
        count = len([each for each in used[number] | attached[number] if each < 4])
        more = len([each for each in wanted - used[number] if each < 4])
        expected[name] = (TOO_MANY_VOLUMES,) if more and count + more > limit else ()
    assert (
        ask(NodeVolumeLimits(Handle()), pod_with(*(str(each) for each in sorted(wanted))), cache) == expected
    )


NODES = ("n0", "n1", "n2")
CLAIMS = ("0", "1", "2", "3", "4")


@st.composite
def happenings(draw: st.DrawFn) -> tuple[bool, Object]:
    """Something that comes or changes (True) or goes."""
    name, each = draw(st.sampled_from(NODES)), draw(st.sampled_from(CLAIMS))
    driver = draw(st.sampled_from((DRIVER, "other")))
    made: list[Object] = [
        make_node(name),
        csi_node(name, draw(st.sampled_from(ATTACHABLE))),
        on(name, each),
        attachment(f"{name}-{each}", name, f"v-{each}"),
        volume(f"v-{each}", csi=csi(f"h-{draw(st.sampled_from(CLAIMS))}", driver)),
        claim(each, volume=draw(st.sampled_from(("", f"v-{each}", "v-0")))),
        storage_class("late", driver),
    ]
    return draw(st.booleans()), draw(st.sampled_from(made))


def exceeded(pod: Pod, cache: Cache) -> Answer:
    """What the filter says, by looking up every claim of every node."""
    nodes = Nodes(cache.snapshot())
    objects = nodes.objects
    requested = requested_volumes(CycleState(), pod, objects)
    assert isinstance(requested, RequestedVolumes)
    answer: Answer = {}
    for node in nodes:
        claims = [key for info in node.pods for key in info.claims]
        attached = [each for each in objects.of(VolumeAttachment) if each.spec.node_name == node.name]
        csi_node = objects.of(CSINode).get("", node.name)
        limits = limits_of([] if csi_node is None else [csi_node])
        in_use = NodeVolumesInUse(claims, (), attached, objects)
        answer[node.name] = (TOO_MANY_VOLUMES,) if in_use.exceeds(requested.volumes, limits) else ()
    return answer


@given(happened=st.lists(happenings(), min_size=1, max_size=25))
def test_what_is_kept_from_pod_to_pod_follows_what_happens(happened: list[tuple[bool, Object]]) -> None:
    cache = Cache([make_node("n0"), csi_node("n0", {DRIVER: 2}), *bound(*CLAIMS)])
    wanted, kept = pod_with("3", "4"), NodeVolumeLimits(Handle())
    for comes, item in happened:
        (cache.put if comes else cache.remove)(item)
        for each in ("3", "4"):
            if cache.objects.of(PersistentVolumeClaim).get("default", each) is None:
                cache.put(claim(each, volume=f"v-{each}"))
        nodes, fresh = Nodes(cache.snapshot()), NodeVolumeLimits(Handle())
        assert ask(kept, wanted, cache) == ask(fresh, wanted, cache) == exceeded(wanted, cache)
        assert kept.pre_filter(CycleState(), wanted, nodes) is fresh.pre_filter(CycleState(), wanted, nodes)


@given(
    st.lists(
        st.tuples(st.sampled_from(NODES), st.sampled_from(CLAIMS), st.booleans(), st.booleans()),
        min_size=1,
        max_size=20,
    )
)
def test_with_hypothetical_pods_nodes_are_evaluated_as_if_these_were_there(
    pods: list[tuple[str, str, bool, bool]],
) -> None:
    cache = Cache([*(make_node(name) for name in NODES), *bound(*CLAIMS)])
    for count, name in enumerate(NODES, 1):
        cache.put(csi_node(name, {DRIVER: count}))
    supposed = Cache([*cache.nodes(), *(each for table in TABLES for each in cache.objects.of(table))])
    removed, added = [], []
    for number, (name, each, is_there, stays) in enumerate(pods):
        pod = pod_with(each, name=f"p{number}", uid=f"p{number}", on=name)
        if is_there:
            cache.put(pod)
        if is_there and not stays:
            removed.append(pod)
        elif stays:
            added += [] if is_there else [pod]
            supposed.put(pod)
    nodes = Nodes(cache.snapshot())
    indices = np.array([nodes.snapshot.row_of[pod.spec.node_name] for pod in removed], np.intp)
    rows = np.array(nodes.snapshot.pods.rows_of(pod.uid for pod in removed), np.intp)
    infos = [(nodes.snapshot.row_of[pod.spec.node_name], PodInfo(pod)) for pod in added]
    hypothetical = Nodes(
        nodes.snapshot, None, HypotheticalPods(nodes.snapshot, len(nodes), indices, rows, infos)
    )
    wanted, plugin = pod_with("3", "4"), NodeVolumeLimits(Handle())
    result = plugin.filter(CycleState(), wanted, hypothetical)
    codes = [0] * len(nodes) if result.codes is None else result.codes.tolist()
    expected = exceeded(wanted, supposed)
    assert {name: bool(code) for name, code in zip(nodes.names, codes, strict=True)} == {
        name: bool(expected[name]) for name in nodes.names
    }


def test_claims_of_nominated_pods_take_room() -> None:
    cache = Cache([make_node("n"), csi_node("n", {DRIVER: 1}), *bound("a", "c")])
    plugin, wanted = NodeVolumeLimits(Handle()), pod_with("c")
    assert plugin.pre_filter(CycleState(), wanted, Nodes(cache.snapshot())) is SKIP
    cache.nominations.put(pod_with("a", uid="nominated"), "n")
    assert plugin.pre_filter(CycleState(), wanted, Nodes(cache.snapshot())) is None
    assert NodeVolumeLimits(Handle()).pre_filter(CycleState(), wanted, Nodes(cache.snapshot())) is None
    cache.nominations.remove("nominated")
    assert plugin.pre_filter(CycleState(), wanted, Nodes(cache.snapshot())) is SKIP


def test_claims_are_looked_up_again_only_on_nodes_that_changed(lookups: list[str]) -> None:
    names = [str(number) for number in range(20)]
    cache = Cache([*bound(*names, "c"), *(make_node(f"n{name}") for name in names)])
    for name in names:
        cache.put(csi_node(f"n{name}", {DRIVER: 1}))
        cache.put(on(f"n{name}", name))
    plugin, wanted = NodeVolumeLimits(Handle(version=V1_36)), pod_with("c")
    assert set(ask(plugin, wanted, cache).values()) == {(TOO_MANY_VOLUMES,)}  # type: ignore[union-attr]
    cache.remove(on("n7", "7"))
    cache.put(claim("3", volume="v-4"))
    nodes = Nodes(cache.snapshot())
    lookups.clear()
    assert plugin.pre_filter(cycle := CycleState(), wanted, nodes) is None
    assert plugin.filter(cycle, wanted, nodes).codes.tolist() == [name != "7" for name in names]  # type: ignore[union-attr]
    assert sorted(lookups) == ["3", "c", "v-4", "v-c"]


def test_changes_of_claims_that_no_node_uses_forget_nothing(lookups: list[str]) -> None:
    cache = Cache([make_node("n"), csi_node("n", {DRIVER: 1}), *bound("a", "c"), on("n", "a")])
    plugin, wanted = NodeVolumeLimits(Handle(version=V1_36)), pod_with("c")
    assert ask(plugin, wanted, cache) == {"n": (TOO_MANY_VOLUMES,)}
    for item in bound("other"):
        cache.put(item)
    nodes = Nodes(cache.snapshot())
    lookups.clear()
    plugin.filter(CycleState(), wanted, nodes)
    assert sorted(lookups) == ["c", "v-c"]
