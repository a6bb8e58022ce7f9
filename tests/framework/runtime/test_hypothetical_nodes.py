"""Nodes that do not exist yet: which pods fit there, alone and beside the nodes of a cluster."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from moorage import Handle, HypotheticalNodes, Node, Nodes, Pod, default_registry
from moorage.cluster.cache import Cache
from moorage.framework.runtime.framework import Framework
from tests.builders import make_node, make_pod, make_profile

FILTERS = ("NodeAffinity", "TaintToleration", "NodeResourcesFit", "PodTopologySpread", "InterPodAffinity")
ZONE = "topology.kubernetes.io/zone"


def paper_of(cache: Cache) -> HypotheticalNodes:
    handle = Handle(cache.objects, snapshot=cache.latest_snapshot)
    return Framework(make_profile(*FILTERS), default_registry(), handle).hypothetical_nodes()


def node(name: str, zone: str = "west", cpu: str = "2") -> Node:
    room = {"cpu": cpu, "memory": "8Gi", "pods": "10"}
    return make_node(name, labels={ZONE: zone, "kubernetes.io/hostname": name}, allocatable=room)


def small(name: str, cpu: str = "1", **fields: object) -> Pod:
    return make_pod(name, uid=name, requests={"cpu": cpu}, **fields)


def apart(name: str) -> Pod:
    """A pod that runs in no zone with another pod of its kind."""
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "x"}}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return small(name, labels={"app": "x"}, affinity=affinity)


def follow(paper: HypotheticalNodes, cache: Cache) -> None:
    for _ in paper.follow(Nodes(cache.snapshot())):
        pass


def test_pods_fill_a_node_that_does_not_exist() -> None:
    paper = paper_of(Cache())
    paper.add(node("a"))
    paper.add(node("b"))
    for name, expected in (("p", "a"), ("q", "a"), ("r", "b")):
        pod = small(name)
        assert paper.fitting(pod)[0] == expected
        paper.assume(pod, expected)
    assert [pod.name for pod in paper.pods_on("a")] == ["p", "q"]
    assert paper.node_of(small("r")) == "b"
    paper.forget(small("p"))
    assert paper.fits(small("s"), "a")
    assert paper.why_not(small("s", "3"), node("c")) == ("Insufficient cpu",)
    assert paper.why_not(small("s", "2"), node("c")) == ()
    paper.remove("b")
    assert [*paper.names] == ["a"]
    assert paper.node_of(small("r")) == ""


def test_the_cluster_is_not_changed_and_counts_where_it_is_followed() -> None:
    cache = Cache([node("there"), make_pod("x0", uid="x0", on="there", labels={"app": "x"})])
    version = cache.snapshot().changes.position
    paper = paper_of(cache)
    paper.add(node("new"))
    assert paper.fitting(apart("x1")) == ["new"]
    follow(paper, cache)
    assert paper.fitting(apart("x1")) == []
    assert paper.why_not(apart("x1"), node("north", "north")) == ()
    assert paper.fitting(small("p"), with_copied=True) == ["there", "new"]
    assert cache.snapshot().names == ["there"]
    assert cache.snapshot().changes.position == version
    cache.validate()


def test_a_node_that_has_the_name_of_a_hypothetical_one_is_not_copied() -> None:
    cache, paper = Cache([node("same", cpu="0")]), paper_of(Cache())
    paper.add(node("same"))
    follow(paper, cache)
    assert paper.fitting(small("p"), with_copied=True) == ["same"]


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["node", "no node", "pod", "no pod", "follow"]), st.integers(0, 3), st.integers(0, 3)
    ),
    max_size=30,
)


@given(CHANGES)
def test_copies_are_equal_to_the_cluster(changes: list[tuple[str, int, int]]) -> None:
    """After any history, what fits on copied nodes is what fits on the nodes."""
    cache = Cache()
    paper = paper_of(cache)
    for number, (what, one, other) in enumerate(changes):
        name, uid = f"n{one}", f"p{other}"
        known = cache.pod(uid)
        if what == "node":
            cache.put_node(node(name, cpu=f"{1 + number % 3}"))
        elif what == "no node":
            cache.remove_node(name)
        elif what == "pod" and known is None:
            cache.put_pod(small(uid, on=name))
        elif what == "no pod" and known is not None:
            cache.remove_pod(known)
        elif what == "follow":
            follow(paper, cache)
    follow(paper, cache)
    snapshot = cache.snapshot()
    requested = Nodes(snapshot).requested("cpu")
    for cpu in (1, 2, 3):
        free = Nodes(snapshot).allocatable("cpu") - requested
        fitting = {
            name for name, left in zip(snapshot.names, free.tolist(), strict=True) if left >= 1000 * cpu
        }
        assert set(paper.fitting(small("probe", f"{cpu}"), with_copied=True)) == fitting
