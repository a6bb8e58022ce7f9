"""Groups of pods: hierarchy, members, and what is evicted with what."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from moorage.api.coscheduling import CoschedulingPodGroup
from moorage.api.decode import convert
from moorage.api.pod import Pod
from moorage.api.pod_groups import CompositePodGroup, Group, GroupKey, PodGroup, group_of
from moorage.cluster.cache import Cache
from tests.builders import make_node, make_pod


def group(name: str, kind: type[Group] = PodGroup, parent: str = "", **spec: Any) -> Group:
    if parent:
        spec["parentCompositePodGroupName"] = parent
    return convert({"metadata": {"name": name, "namespace": "default"}, "spec": spec}, kind)


def member(name: str, of: str = "g", **fields: Any) -> Pod:
    return make_pod(name, scheduling_group={"podGroupName": of}, **fields)


def nested(*objects: Any) -> Cache:
    cache = Cache(objects)
    cache.pod_groups.is_enabled = cache.pod_groups.is_nested = True
    return cache


KEY = GroupKey("default", "g")


def test_members_are_counted_from_pending_to_bound_and_gone() -> None:
    cache = Cache([make_node("n")])
    groups, pod = cache.pod_groups, member("p")
    groups.add(pod)
    assert (groups.known_count(KEY), groups.scheduled_count(KEY)) == (1, 0)
    assert groups.unscheduled(KEY) == [pod]
    assumed = cache.assume_pod(pod, "n")
    assert (groups.known_count(KEY), groups.scheduled_count(KEY)) == (1, 1)
    assert groups.scheduled(KEY) == [assumed]
    cache.forget_pod(assumed)
    assert (groups.known_count(KEY), groups.scheduled_count(KEY)) == (1, 0)
    cache.put_pod(assumed)
    cache.remove_pod(assumed)
    assert (groups.known_count(KEY), groups.scheduled_count(KEY)) == (0, 0)


def test_a_finished_pod_is_no_member() -> None:
    cache = Cache([make_node("n"), member("p", on="n")])
    cache.put_pod(member("p", on="n", status={"phase": "Succeeded"}))
    assert cache.pod_groups.known_count(KEY) == 0


def test_the_root_is_found_through_parents_or_not_at_all() -> None:
    cache = nested(group("g", parent="c"))
    assert cache.pod_groups.root_of(KEY) is None
    cache.put(group("c", CompositePodGroup))
    assert cache.pod_groups.root_of(KEY) == GroupKey("default", "c", is_composite=True)
    cache.pod_groups.is_nested = False
    assert cache.pod_groups.root_of(KEY) == KEY


def test_groups_that_are_their_own_ancestors_have_no_root() -> None:
    cache = nested(
        group("g", parent="a"),
        group("a", CompositePodGroup, parent="b"),
        group("b", CompositePodGroup, parent="a"),
    )
    assert cache.pod_groups.root_of(KEY) is None


def test_a_pod_is_evicted_with_the_highest_group_that_is_evicted_whole() -> None:
    whole: dict[str, Any] = {"disruptionMode": {"all": {}}}
    cache = nested(
        group("g", parent="a", **whole),
        group("a", CompositePodGroup, parent="b", **whole),
        group("b", CompositePodGroup, priority=7),
    )
    pod = member("p", priority=3)
    assert cache.pod_groups.evicted_with(pod) == GroupKey("default", "a", is_composite=True)
    assert cache.pod_groups.priority_of(pod) == 7
    assert cache.pod_groups.evicted_with(make_pod("alone")) is None
    assert cache.pod_groups.priority_of(make_pod("alone", priority=3)) == 3


def test_pods_of_a_group_without_priority_keep_their_own() -> None:
    manifest = {"metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": 3}}
    labelled = convert(manifest, CoschedulingPodGroup).as_pod_group()
    assert (labelled.quorum, labelled.is_native) == (3, False)
    assert nested(labelled).pod_groups.priority_of(member("p", priority=7)) == 7
    assert nested(group("g", priority=1)).pod_groups.priority_of(member("p", priority=7)) == 1


def test_a_pod_that_names_no_group_is_of_none() -> None:
    assert group_of(make_pod("p")) is None
    assert group_of(make_pod("p", scheduling_group={})) is None


@given(st.lists(st.integers(0, 5), max_size=8), st.lists(st.integers(0, 5), max_size=8))
def test_pods_that_are_set_aside_come_back_in_order(removed: list[int], back: list[int]) -> None:
    pods = [member(f"p{i}", on=f"n{i % 2}", requests={"cpu": "1"}) for i in range(6)]
    cache = Cache([make_node("n0"), make_node("n1"), *pods])
    before = {name: list(cache.snapshot().pods_of(row)) for name, row in cache.snapshot().row_of.items()}
    aside = cache.set_aside(())
    gone: dict[int, None] = {}
    for number in removed:
        if number not in gone:
            gone[number] = None
            aside.remove(pods[number])
            cache.snapshot()
    assert cache.pod_groups.scheduled_count(KEY) == 6 - len(gone)
    for number in back:
        if number in gone:
            del gone[number]
            aside.put_back(pods[number])
    aside.end()
    cache.validate()
    after = {name: list(cache.snapshot().pods_of(row)) for name, row in cache.snapshot().row_of.items()}
    assert after == before
