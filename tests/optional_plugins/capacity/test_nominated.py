"""Nominated pods: what is known of them is what there is, whatever came and went."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from moorage import Cache, Nodes, Pod, PodReader
from moorage.optional_plugins.capacity.nominated import NominatedPods
from tests.optional_plugins.capacity.quotas import node, pod

steps = st.lists(
    st.tuples(
        st.sampled_from(("nominate", "clear", "assume", "forget", "no node", "node", "read")),
        st.integers(0, 4),
        st.sampled_from("abc"),
    ),
    max_size=30,
)


def waiting(number: int) -> Pod:
    return pod(f"p{number}", f"ns{number % 2}", 1 + number % 2, priority=number % 2)


def known(nominated: NominatedPods, nodes: Nodes, but: str) -> Counter[tuple[str, int]]:
    groups = nominated.groups(nodes, (but,))
    return Counter({(each.namespace, dict(each.request)["cpu"]): count for each, count in groups})


def recount(cache: Cache, but: str) -> Counter[tuple[str, int]]:
    snapshot = cache.snapshot()
    infos = [info for name in snapshot.row_of for info in snapshot.nominated.on(name)]
    there = {each.uid for each in cache.pods() if each.spec.node_name in snapshot.row_of}
    there.add(but)
    left = [info for info in infos if info.pod.uid not in there]
    return Counter((info.pod.namespace, info.load.amounts["cpu"]) for info in left)


@given(steps)
def test_they_are_those_of_a_recount(history: list[tuple[str, int, str]]) -> None:
    cache, nominated, reader = Cache([node(name, 9) for name in "abc"]), NominatedPods(), PodReader()
    for what, number, name in [*history, ("read", 0, "a")]:
        subject = waiting(number)
        if what == "nominate":
            cache.nominations.put(subject, name)
        elif what == "clear":
            cache.nominations.remove(subject.uid)
        elif what == "assume" and cache.pod(subject.uid) is None:
            cache.assume_pod(subject, name)
        elif what == "forget" and cache.pod(subject.uid) is not None:
            cache.forget_pod(subject)
        elif what == "no node":
            cache.remove_node(name)
        elif what == "node":
            cache.put_node(node(name, 9))
        elif what == "read":
            nodes = Nodes(cache.snapshot())
            nominated.follow(nodes, [info for info, _ in reader.moves(nodes.snapshot.pods)])
            assert known(nominated, nodes, subject.uid) == recount(cache, subject.uid)
