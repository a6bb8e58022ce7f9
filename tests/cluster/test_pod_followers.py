"""Those who follow the pods on nodes know, after any events, which there are."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.pod import Pod
from moorage.cluster.cache import Cache
from moorage.cluster.pod_table import PodInfo
from tests.builders import make_node, make_pod

NODES = ("n1", "n2", "gone")


class Follower:
    """Counts pods by what scheduling reads of them."""

    def __init__(self) -> None:
        self.pods: dict[str, PodInfo] = {}

    def pod_moved(self, info: PodInfo, count: int) -> None:
        uid = info.pod.uid
        if count > 0:
            assert uid not in self.pods
            self.pods[uid] = info
        else:
            assert self.pods.pop(uid) is info


def described(pods: list[Pod]) -> set[tuple[str, str, str, int]]:
    """What a follower may read of pods."""
    return {(p.uid, p.spec.node_name, p.labels.get("team", ""), p.priority) for p in pods}


def a_pod(number: int, node: str, change: int) -> Pod:
    team = "ab"[change % 2]
    return make_pod(f"p{number}", uid=f"p{number}", on=node, labels={"team": team}, priority=change // 2)


def put(cache: Cache, pod: Pod) -> None:
    cache.put_pod(pod)


def assume(cache: Cache, pod: Pod) -> None:
    if cache.pod(pod.uid) is None:
        cache.assume_pod(pod, pod.spec.node_name)


def add_all(cache: Cache, pod: Pod) -> None:
    if cache.pod(pod.uid) is None:
        cache.add_pods([PodInfo(pod)])


def dry_run(cache: Cache, pod: Pod) -> None:
    aside = cache.set_aside(list(cache.pods())[:3])
    aside.end()


STEPS: tuple[Callable[[Cache, Pod], object], ...] = (
    put,
    put,
    assume,
    add_all,
    dry_run,
    Cache.remove_pod,
    Cache.forget_pod,
)


@given(
    st.lists(
        st.tuples(st.sampled_from(STEPS), st.integers(0, 4), st.sampled_from(NODES), st.integers(0, 3)),
        max_size=30,
    ),
    st.integers(0, 10),
)
def test_a_follower_knows_all_pods_on_nodes(
    steps: list[tuple[Callable[[Cache, Pod], object], int, str, int]], begins_at: int
) -> None:
    cache, follower = Cache([make_node(name) for name in NODES[:2]]), Follower()
    for number, (step, pod, node, change) in enumerate(steps):
        if number == begins_at:
            cache.follow_pods(follower)
        step(cache, a_pod(pod, node, change))
    if len(steps) <= begins_at:
        cache.follow_pods(follower)
    assert described([info.pod for info in follower.pods.values()]) == described(list(cache.pods()))


def test_a_follower_that_nothing_needs_is_told_no_more() -> None:
    cache, told = Cache([make_node("n1")]), []

    class Short:
        def pod_moved(self, info: PodInfo, count: int) -> None:
            told.append(count)

    follower = Short()
    cache.follow_pods(follower)
    cache.put_pod(make_pod("p", on="n1"))
    del follower
    gc.collect()
    cache.put_pod(make_pod("q", on="n1"))
    assert told == [1]


def test_what_a_follower_raises_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def pod_moved(self, info: PodInfo, count: int) -> None:
            raise RuntimeError("cannot count")

    cache, broken, follower = Cache([make_node("n1")]), Broken(), Follower()
    cache.follow_pods(broken)
    cache.follow_pods(follower)
    cache.put_pod(make_pod("p", on="n1"))
    assert len(follower.pods) == cache.pod_count == 1
    assert "A plugin failed to follow a pod" in caplog.text
    assert "cannot count" in caplog.text
