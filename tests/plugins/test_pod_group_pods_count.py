"""PodGroupPodsCount: members with nodes, running or placed, in per cent of the best placement."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.pod_groups import CompositePodGroup, key_of
from moorage.cluster.cache import Cache
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.pod_groups import Assignment, Placement, PlacementAssignments, PodGroupInfo
from moorage.plugins.pod_group_pods_count import PodGroupPodsCount
from tests.builders import make_node
from tests.plugins.test_gang_scheduling import gang, group, member

WHOLE = group("whole", {"basic": {}}, CompositePodGroup)


def scores(placed: list[int], running: dict[str, int], *, is_composite: bool = False) -> list[int]:
    """The scores of placements with a number of placed members each; `running` is by group."""
    parts = [gang(1, name, "whole" if name != "other" else "") for name in ("g", "h", "other")]
    cache = Cache([make_node("n"), WHOLE, *parts])
    cache.pod_groups.is_nested = is_composite
    for name, count in running.items():
        for number in range(count):
            cache.assume_pod(member(f"{name}-{number}", of=name), "n")
    scored = WHOLE if is_composite else parts[0]
    info, cycle = PodGroupInfo(key_of(scored), scored), CycleState()
    placement = Placement("", Nodes(cache.snapshot()))
    pods = [Assignment(member(f"new-{number}"), "n", cycle) for number in range(max(placed))]
    placements = [PlacementAssignments(placement, pods[:count]) for count in placed]
    plugin = PodGroupPodsCount(Handle(pod_groups=cache.pod_groups))
    counts = plugin.placement_score(cycle, info, placements)
    return plugin.normalize_placement_score(cycle, info, counts).tolist()


RULES: dict[str, tuple[list[int], dict[str, int], bool, list[int]]] = {
    "per cent of the largest number": ([1, 4, 2], {}, False, [25, 100, 50]),
    "per cent are cut off": ([2, 3], {}, False, [66, 100]),
    "equal placements": ([2, 2], {}, False, [100, 100]),
    "members that run already count everywhere": ([1, 2], {"g": 2}, False, [75, 100]),
    "members of other groups do not": ([1, 2], {"h": 2, "other": 1}, False, [50, 100]),
    "all parts of a composite group count": ([1, 2], {"g": 1, "h": 1, "other": 5}, True, [75, 100]),
    "a placement where no member is placed": ([0, 3], {}, False, [0, 100]),
}


@pytest.mark.parametrize(("placed", "running", "is_composite", "expected"), RULES.values(), ids=RULES.keys())
def test_scores(placed: list[int], running: dict[str, int], is_composite: bool, expected: list[int]) -> None:
    assert scores(placed, running, is_composite=is_composite) == expected


@given(
    placed=st.lists(st.integers(1, 9), min_size=2, max_size=5),
    running=st.fixed_dictionaries({name: st.integers(0, 3) for name in ("g", "h", "other")}),
    is_composite=st.booleans(),
)
def test_scores_are_the_formula(placed: list[int], running: dict[str, int], is_composite: bool) -> None:
    own = running["g"] + running["h"] * is_composite
    expected = [(own + count) * 100 // (own + max(placed)) for count in placed]
    assert scores(placed, running, is_composite=is_composite) == expected


def test_somewhere_a_member_must_have_a_node() -> None:
    with pytest.raises(
        ValueError, match="no pods from pod group are assigned to any of the candidate placements"
    ):
        scores([0, 0], {})
