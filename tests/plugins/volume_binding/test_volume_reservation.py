"""What VolumeBinding does for the chosen node: assume, take back, write, and wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage.api.base import Object
from moorage.api.pod import Pod
from moorage.api.storage import PersistentVolume, PersistentVolumeClaim
from moorage.clock import VirtualClock
from moorage.cluster.cache import Cache
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.effects import BindVolume, Effect, SelectNode
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import Code, Status
from moorage.plugins.volume_binding.plugin import VolumeBinding
from moorage.plugins.volume_restrictions import VolumeRestrictions
from moorage.sim.volume_controller import VolumeController
from tests.builders import HOSTNAME, make_node
from tests.plugins.volumes.volume_objects import (
    DRIVER,
    ask,
    claim,
    csi_node,
    in_zone,
    passing,
    pod_with,
    storage_class,
    volume,
    volume_binding,
    zone_nodes,
)

SELECTED_NODE = "volume.kubernetes.io/selected-node"


class Recorder:
    """Effects that are only written down, or done by a function."""

    def __init__(self, do: Callable[[Effect], Object | None] = lambda effect: None) -> None:
        self.done: list[Effect] = []
        self._do = do

    async def perform(self, effect: Effect) -> Object | None:
        self.done.append(effect)
        return self._do(effect)


class Bench:
    """A cluster with VolumeBinding at work in it."""

    def __init__(self, objects: Iterable[Object], timeout_seconds: int = 600) -> None:
        self.cache = Cache(
            [*zone_nodes(a="a", b="b"), storage_class(), storage_class("new", DRIVER), *objects]
        )
        self.clock = VirtualClock()
        self.effects = Recorder(self.finish)
        self.handle = Handle(objects=self.cache.objects, effects=self.effects, clock=self.clock)
        self.plugin: VolumeBinding = volume_binding(self.handle, bind_timeout_seconds=timeout_seconds)
        self.cycle = CycleState()

    def finish(self, effect: Effect) -> Object:
        assert isinstance(effect, BindVolume | SelectNode)
        return VolumeController(self.cache).apply(effect)

    def reserve(self, pod: Pod, node: str) -> Status | None:
        self.cycle = CycleState()
        nodes = Nodes(self.cache.snapshot())
        self.plugin.pre_filter(self.cycle, pod, nodes)
        self.plugin.filter(self.cycle, pod, nodes)
        return self.plugin.reserve(self.cycle, pod, node)

    def pre_bind(self, *while_waiting: Callable[[], None]) -> Status | None:
        """Run pre_bind; each function is called, one after the other, while it waits."""

        async def run() -> Status | None:
            task = asyncio.ensure_future(self.plugin.pre_bind(self.cycle, pod_with(), "a"))
            for step in while_waiting:
                await asyncio.sleep(0)
                assert not task.done()
                step()
            return await asyncio.wait_for(task, 1)

        return asyncio.run(run())

    def volume(self, name: str) -> PersistentVolume:
        found = self.cache.objects.of(PersistentVolume).get("", name)
        assert found is not None
        return found

    def claim(self, name: str) -> PersistentVolumeClaim:
        found = self.cache.objects.of(PersistentVolumeClaim).get("default", name)
        assert found is not None
        return found

    def contents(self) -> dict[str, Object]:
        kinds: tuple[type[Any], ...] = (PersistentVolume, PersistentVolumeClaim)
        return {f"{kind.__name__} {item.key}": item for kind in kinds for item in self.cache.objects.of(kind)}


def failed(status: Status | None) -> str:
    assert status is not None
    assert status.code is Code.ERROR
    return status.message


# Reserve and unreserve


def test_the_smallest_volume_within_reach_is_taken() -> None:
    bench = Bench(
        [
            volume("large", "5Gi"),
            volume("fitting", "2Gi"),
            volume("far", "1Gi", nodeAffinity=in_zone("b")),
            claim("c", uid="u"),
        ]
    )
    assert bench.reserve(pod_with("c"), "a") is None
    taken = bench.volume("fitting")
    assert taken.spec.claim_ref is not None
    assert (taken.spec.claim_ref.namespace, taken.spec.claim_ref.name, taken.spec.claim_ref.uid) == (
        "default",
        "c",
        "u",
    )
    assert taken.metadata.annotations == {"pv.kubernetes.io/bound-by-controller": "yes"}
    assert bench.volume("far").spec.claim_ref is None
    assert bench.volume("large").spec.claim_ref is None


def test_the_next_pod_sees_the_volume_taken() -> None:
    bench = Bench([volume("v"), claim("c"), claim("d")])
    bench.reserve(pod_with("c"), "a")
    assert passing(ask(bench.plugin, pod_with("d"), bench.cache)) == set()
    bench.plugin.unreserve(bench.cycle, pod_with("c"), "a")
    assert passing(ask(bench.plugin, pod_with("d"), bench.cache)) == {"a", "b"}


def test_a_claim_to_be_provisioned_keeps_the_next_pod_on_its_node() -> None:
    bench = Bench([claim("c", storage_class="new")])
    bench.reserve(pod_with("c"), "b")
    assert bench.claim("c").metadata.annotations[SELECTED_NODE] == "b"
    assert passing(ask(bench.plugin, pod_with("c", name="second"), bench.cache)) == {"b"}


def test_a_volume_its_user_kept_for_the_claim_is_not_marked() -> None:
    bench = Bench([volume("v", claim="c"), claim("c")])
    before = bench.contents()
    assert bench.reserve(pod_with("c"), "a") is None
    assert bench.contents() == before


def test_a_pod_whose_claims_are_bound_reserves_nothing() -> None:
    bench = Bench([volume("v", claim="c", phase="Bound"), claim("c", volume="v")])
    before = bench.contents()
    assert bench.reserve(pod_with("c"), "a") is None
    assert bench.pre_bind() is None
    assert bench.contents() == before
    assert bench.effects.done == []


def test_a_node_that_was_refused_cannot_be_reserved() -> None:
    bench = Bench([volume("v", nodeAffinity=in_zone("a")), claim("c")])
    before = bench.contents()
    assert failed(bench.reserve(pod_with("c"), "b")) == 'no pod volume found for node "b"'
    assert failed(bench.reserve(pod_with("c"), "gone")) == 'no pod volume found for node "gone"'
    bench.plugin.unreserve(bench.cycle, pod_with("c"), "gone")
    assert bench.contents() == before


CHANGED: dict[str, tuple[Callable[[Cache], None], str]] = {
    "the volume is gone": (
        lambda cache: cache.objects.of(PersistentVolume).remove("", "w"),
        'persistentvolumes "w" not found',
    ),
    "the volume has changed": (
        lambda cache: cache.put(volume("w", "2Gi", labels={"new": "label"})),
        '"w" is out of sync (stored: , assume: )',
    ),
}


@pytest.mark.parametrize(("change", "message"), CHANGED.values(), ids=CHANGED.keys())
def test_what_changed_during_the_cycle_is_not_assumed(change: Callable[[Cache], None], message: str) -> None:
    bench = Bench([volume("v"), volume("w", "2Gi"), claim("c"), claim("d", "2Gi")])
    pod = pod_with("c", "d")
    nodes = Nodes(bench.cache.snapshot())
    bench.plugin.pre_filter(bench.cycle, pod, nodes)
    change(bench.cache)
    assert failed(bench.plugin.reserve(bench.cycle, pod, "a")) == message
    assert bench.volume("v").spec.claim_ref is None


def test_unreserve_leaves_alone_what_the_server_has_written_since() -> None:
    bench = Bench([volume("v"), claim("c")])
    bench.reserve(pod_with("c"), "a")
    bench.cache.put(volume("v", labels={"new": "label"}))
    bench.plugin.unreserve(bench.cycle, pod_with("c"), "a")
    assert bench.volume("v").labels == {"new": "label"}


def test_unreserve_leaves_alone_what_another_pod_assumed() -> None:
    bench = Bench([claim("c", storage_class="new")])
    bench.reserve(pod_with("c", name="first"), "a")
    bench.reserve(pod_with("c", name="second"), "a")
    bench.plugin.unreserve(bench.cycle, pod_with("c", name="second"), "a")
    assert bench.claim("c").metadata.annotations[SELECTED_NODE] == "a"


# Pre-bind


def test_volumes_are_bound_and_provisioned_before_the_pod() -> None:
    bench = Bench([volume("v"), claim("c"), claim("d", "2Gi", storage_class="new")])
    assert bench.reserve(pod_with("c", "d"), "a") is None
    assert bench.pre_bind() is None
    first, second = bench.effects.done
    assert isinstance(first, BindVolume)
    assert (first.volume.name, first.claim.name) == ("v", "c")
    assert isinstance(second, SelectNode)
    assert (second.claim.name, second.node_name) == ("d", "a")
    assert bench.claim("c").spec.volume_name == "v"
    assert bench.volume(bench.claim("d").spec.volume_name).spec.capacity["storage"].value == 2 << 30


def test_pre_bind_waits_until_the_claims_are_bound() -> None:
    bench = Bench([volume("v"), claim("c")])
    bench.reserve(pod_with("c"), "a")
    taken = bench.volume("v")
    bench.effects = bench.handle.effects = Recorder()
    status = bench.pre_bind(
        lambda: bench.cache.put(taken),
        lambda: bench.clock.advance(599),
        lambda: bench.cache.put(claim("c", volume="v")),
    )
    assert status is None


def test_pre_bind_gives_up_when_the_time_is_over() -> None:
    bench = Bench([volume("v"), claim("c")], timeout_seconds=30)
    bench.reserve(pod_with("c"), "a")
    bench.handle.effects = Recorder()
    status = bench.pre_bind(lambda: bench.clock.advance(29), lambda: bench.clock.advance(1))
    assert failed(status) == "binding volumes: context deadline exceeded"
    bench.plugin.unreserve(bench.cycle, pod_with("c"), "a")
    assert bench.volume("v").spec.claim_ref is None


def versioned(item: Any, version: str) -> Any:
    return replace(item, metadata=replace(item.metadata, resource_version=version))


def test_what_the_server_showed_before_our_write_says_nothing() -> None:
    bench = Bench([versioned(volume("v"), "5"), claim("c", uid="u")])
    bench.reserve(pod_with("c"), "a")
    written = versioned(bench.volume("v"), "7")
    bench.handle.effects = Recorder(lambda effect: written)
    status = bench.pre_bind(
        lambda: bench.cache.put(versioned(volume("v", labels={"older": "news"}), "6")),
        lambda: bench.cache.put(written),
        lambda: bench.cache.put(claim("c", volume="v", uid="u")),
    )
    assert status is None


def test_a_volume_kept_by_name_is_not_bound_before_our_write_is_seen() -> None:
    bench = Bench([volume("v", claim="c"), claim("c", uid="u")])
    bench.reserve(pod_with("c"), "a")
    bench.handle.effects = Recorder()
    status = bench.pre_bind(
        lambda: bench.cache.put(volume("v", claim="c", claim_uid="u")),
        lambda: bench.cache.put(claim("c", volume="v", uid="u")),
    )
    assert status is None


BINDING_FAILS: dict[str, tuple[Callable[[Bench], None], str]] = {
    "the volume was taken back": (
        lambda bench: bench.cache.put(volume("v")),
        'ClaimRef got reset for pv "v"',
    ),
    "the volume is kept for a name only": (
        lambda bench: bench.cache.put(volume("v", claim="c")),
        'ClaimRef got reset for pv "v"',
    ),
    "the volume is gone": (
        lambda bench: bench.cache.objects.of(PersistentVolume).remove("", "v"),
        'failed to check binding: persistentvolumes "v" not found',
    ),
    "the claim is gone": (
        lambda bench: bench.cache.objects.of(PersistentVolumeClaim).remove("default", "c"),
        'failed to check binding: persistentvolumeclaims "default/c" not found',
    ),
    "the volume moved out of reach": (
        lambda bench: bench.cache.put(volume("v", claim="c", claim_uid="u", nodeAffinity=in_zone("b"))),
        'pv "v" node affinity doesn\'t match node "a": no matching NodeSelectorTerms',
    ),
    "the volume is out of the reach of its CSI driver": (
        lambda bench: (
            bench.cache.put(csi_node("a", migrated="kubernetes.io/aws-ebs")),
            bench.cache.put(
                volume(
                    "v",
                    claim="c",
                    claim_uid="u",
                    nodeAffinity=in_zone("a"),
                    awsElasticBlockStore={"volumeID": "vol-1"},
                )
            ),
        )[0],
        'pv "v" node affinity doesn\'t match node "a": no matching NodeSelectorTerms',
    ),
}


@pytest.mark.parametrize(("change", "message"), BINDING_FAILS.values(), ids=BINDING_FAILS.keys())
def test_binding_that_can_not_succeed_any_more(change: Callable[[Bench], None], message: str) -> None:
    bench = Bench([volume("v"), claim("c", uid="u")])
    bench.reserve(pod_with("c"), "a")
    taken = bench.volume("v")
    bench.handle.effects = Recorder(lambda effect: taken)
    status = bench.pre_bind(lambda: bench.cache.put(taken), lambda: change(bench))
    assert failed(status) == f"binding volumes: {message}"


PROVISIONING_FAILS: dict[str, tuple[Callable[[Bench], None], str]] = {
    "the driver gave up": (
        lambda bench: bench.cache.put(claim("c", storage_class="new", annotations={"other": "note"})),
        'provisioning failed for PVC "c"',
    ),
    "the annotations are gone": (
        lambda bench: bench.cache.put(claim("c", storage_class="new")),
        'selectedNode annotation reset for PVC "c"',
    ),
    "the claim is gone": (
        lambda bench: bench.cache.objects.of(PersistentVolumeClaim).remove("default", "c"),
        'failed to check provisioning pvc: persistentvolumeclaims "default/c" not found',
    ),
    "the volume is elsewhere": (
        lambda bench: (
            bench.cache.put(volume("v", nodeAffinity=in_zone("b"))),
            bench.cache.put(claim("c", storage_class="new", volume="v", annotations={SELECTED_NODE: "a"})),
        )[0],
        'pv "v" node affinity doesn\'t match node "a": no matching NodeSelectorTerms',
    ),
}


@pytest.mark.parametrize(("change", "message"), PROVISIONING_FAILS.values(), ids=PROVISIONING_FAILS.keys())
def test_provisioning_that_can_not_succeed_any_more(change: Callable[[Bench], None], message: str) -> None:
    bench = Bench([claim("c", storage_class="new")])
    bench.reserve(pod_with("c"), "a")
    asking = bench.claim("c")
    bench.handle.effects = Recorder(lambda effect: asking)
    status = bench.pre_bind(lambda: bench.cache.put(asking), lambda: change(bench))
    assert failed(status) == f"binding volumes: {message}"


def test_a_provisioned_volume_may_show_later_than_its_claim() -> None:
    bench = Bench([claim("c", storage_class="new")])
    bench.reserve(pod_with("c"), "a")
    bench.handle.effects = Recorder()
    bound = claim("c", storage_class="new", volume="v", annotations={SELECTED_NODE: "a"})
    status = bench.pre_bind(lambda: bench.cache.put(bound), lambda: bench.cache.put(volume("v")))
    assert status is None


# Whatever happens

steps = st.lists(
    st.tuples(
        st.sets(st.integers(0, 5), min_size=1, max_size=3),
        st.sampled_from(["fail", "assume", "bind"]),
        st.integers(0, 7),
    ),
    min_size=1,
    max_size=8,
)
volumes = st.lists(
    st.tuples(st.integers(1, 3), st.sampled_from(["n0", "n1", "n2", ""]), st.booleans()), max_size=8
)


@settings(max_examples=150)
@given(volumes, steps)
def test_volumes_and_exclusive_claims_are_never_given_twice(
    offered: list[tuple[int, str, bool]], tried: list[tuple[set[int], str, int]]
) -> None:
    """Pods are placed one after another: some fail after reserving, some wait, some get their volumes.

    Claims 0 and 1 are for one pod only; claims 4 and 5 can be provisioned.
    """
    bench = Bench([])
    for name in ("n0", "n1", "n2"):
        bench.cache.put(make_node(name, labels={HOSTNAME: name}))
    modes = ["ReadWriteOnce", "ReadWriteOncePod"]
    for number, (size, host, kept) in enumerate(offered):
        fields: dict[str, Any] = {"nodeAffinity": in_zone(host, key=HOSTNAME)} if host else {}
        keeper = "c0" if kept else ""
        bench.cache.put(volume(f"v{number}", f"{size}Gi", claim=keeper, accessModes=modes, **fields))
    for number in range(6):
        kind = "new" if number > 3 else "late"
        mode = modes[number < 2]
        bench.cache.put(claim(f"c{number}", f"{1 + number % 3}Gi", storage_class=kind, accessModes=[mode]))
    for number, (wanted, outcome, choice) in enumerate(tried):
        pod = pod_with(*(f"c{each}" for each in sorted(wanted)), name=f"p{number}", uid=f"p{number}")
        possible = sorted(
            passing(ask(bench.plugin, pod, bench.cache))
            & passing(ask(VolumeRestrictions(), pod, bench.cache))
        )
        if not possible:
            continue
        node = possible[choice % len(possible)]
        before = bench.contents()
        bench.cache.assume_pod(pod, node)
        assert bench.reserve(pod, node) is None
        if outcome == "fail":
            bench.plugin.unreserve(bench.cycle, pod, node)
            assert bench.contents() == before
            bench.plugin.unreserve(bench.cycle, pod, node)
            assert bench.contents() == before
            bench.cache.forget_pod(pod)
        elif outcome == "bind":
            assert bench.pre_bind() is None
            assert all(bench.claim(f"c{each}").spec.volume_name for each in wanted)
        check_books(bench)


def check_books(bench: Bench) -> None:
    holder_of: dict[str, str] = {}
    for item in bench.cache.objects.of(PersistentVolume):
        if (
            item.spec.claim_ref is not None
            and "pv.kubernetes.io/bound-by-controller" in item.metadata.annotations
        ):
            assert item.spec.claim_ref.name not in holder_of, "a claim holds two volumes"
            holder_of[item.spec.claim_ref.name] = item.name
    named = [each.spec.volume_name for each in bench.cache.objects.of(PersistentVolumeClaim)]
    assert len([name for name in named if name]) == len({name for name in named if name})
    users: dict[str, int] = {}
    nodes = Nodes(bench.cache.snapshot())
    for index in range(len(nodes)):
        for info in nodes.pods_on(index):
            for key in info.claims:
                users[key] = users.get(key, 0) + 1
    assert users.get("default/c0", 0) <= 1
    assert users.get("default/c1", 0) <= 1
    bench.cache.validate()
