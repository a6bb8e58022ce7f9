"""Capacity and groups of pods: whole groups fit or do not, and get back what is guaranteed."""

from __future__ import annotations

import pytest

from moorage import Pod
from tests.optional_plugins.capacity.quotas import GroupScene, gang, members, node, pod, quota

TEAMS = (quota("red", {"cpu": 4}, {"cpu": 6}), quota("blue", {"cpu": 4}, {"cpu": 6}))


def borrowers(count: int) -> list[Pod]:
    """Pods of red, each newer than the one before, on two nodes in turn."""
    return [pod(f"r{number}", "red", on="ab"[number % 2], age=100 - number) for number in range(count)]


def scene(*pods: Pod) -> GroupScene:
    return GroupScene(node("a", 4), node("b", 4), *TEAMS, *pods)


@pytest.mark.parametrize(("size", "fits"), [(6, True), (7, False)])
def test_a_group_fits_its_quota_as_a_whole(size: int, fits: bool) -> None:
    here = scene()
    group = gang("batch", "red", size)
    decision = here.decide_group(group, members(group, size))
    assert decision.result.status.is_success is fits
    if not fits:
        refused = decision.result.first_refused
        assert refused is not None
        assert "ElasticQuota red/red: cpu: used 6, requested 1, max 6" in refused.message


def test_a_group_reclaims_what_is_guaranteed_to_it() -> None:
    here = scene(*borrowers(6))
    assert here.evicted_for_group(gang("batch", "blue", 4), 4) == ["r4", "r5"]
    here = scene(*borrowers(6))
    assert here.evicted_for_group(gang("batch", "blue", 5), 5) == []


def test_a_group_evicts_less_important_pods_of_its_quota_last() -> None:
    own = [pod("own", "blue", 2, on="a", age=1, priority=-5)]
    here = scene(*borrowers(5), *own)
    assert here.evicted_for_group(gang("batch", "blue", 2), 2) == ["r4"]
    here = scene(*borrowers(4), pod("own", "blue", 4, on="", priority=-5))
    here.cache.put(pod("own-a", "blue", 2, on="a", priority=-5))
    here.cache.put(pod("own-b", "blue", 2, on="b", priority=-5))
    assert here.evicted_for_group(gang("batch", "blue", 3, priority=5), 3) == ["own-a", "own-b"]


def test_single_pods_are_evicted_before_a_whole_group() -> None:
    whole = gang("whole", "red", 2, disruptionMode={"all": {}})
    here = GroupScene(node("a", 4), node("b", 4), quota("red"), quota("blue", {"cpu": 8}), whole)
    for member, name in zip(members(whole, 2, on="a", age=1), "ab", strict=True):
        here.cache.put(pod(member.name, "red", on=name, age=1, scheduling_group={"podGroupName": "whole"}))
    for number in range(6):
        here.cache.put(pod(f"r{number}", "red", on="ab"[number % 2], age=100 - number))
    assert here.evicted(pod("new", "blue", 2)) in (["r2", "r4"], ["r3", "r5"])
    assert here.evicted(pod("new", "blue", 4)) in (
        ["r0", "r2", "r4", "whole-0", "whole-1"],
        ["r1", "r3", "r5", "whole-0", "whole-1"],
    )


def test_a_whole_group_is_not_evicted_if_its_quota_lost_too_much() -> None:
    whole = gang("whole", "red", 2, disruptionMode={"all": {}})
    here = GroupScene(node("a", 4), node("b", 4), quota("red", {"cpu": 7}), quota("blue", {"cpu": 1}), whole)
    for number, name in enumerate("ab"):
        here.cache.put(
            pod(f"whole-{number}", "red", on=name, age=1, scheduling_group={"podGroupName": "whole"})
        )
    for number in range(6):
        here.cache.put(pod(f"r{number}", "red", on="ab"[number % 2], age=100 - number))
    assert len(here.evicted(pod("new", "blue"))) == 1
    for number in range(6):
        here.cache.remove_pod(pod(f"r{number}", "red"))
    for number in range(3):
        here.cache.put(pod(f"x{number}", "other", 2, on="aab"[number]))
    here.cache.put(quota("red", {"cpu": 1}))
    here.cache.put(quota("blue", {"cpu": 4}))
    assert here.evicted(pod("new", "blue", 3)) == []
