"""Groups of scheduler-plugins in the cycle of groups: their priority is that of their pods."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.coscheduling import CoschedulingPodGroup
from moorage.api.decode import convert
from moorage.api.pod_groups import PodGroup
from moorage.engine.group_result import member_message
from moorage.engine.group_validation import group_problem
from moorage.framework.interface.effects import EvictPods
from moorage.plugins.coscheduling.plugin import Coscheduling
from tests.builders import make_pod
from tests.engine.test_group_cycle import GroupScene, members, slots


def group(minimum: int, **spec: Any) -> PodGroup:
    metadata = {"name": "g", "namespace": "default"}
    made = convert({"metadata": metadata, "spec": {"minMember": minimum, **spec}}, CoschedulingPodGroup)
    return made.as_pod_group()


def scene(*objects: Any) -> GroupScene:
    return GroupScene(*objects, gates=(), plugins=[Coscheduling])


def test_enough_members_run_or_none_does() -> None:
    large, small = scene(*slots(2, 1)), scene(*slots(1, 1))
    assert len(large.bind(large.decide(large.info(group(3), members("g", 3))))) == 3
    decision = small.decide(small.info(group(3), members("g", 3)))
    assert not small.bind(decision)
    assert "minCount (3) cannot be satisfied" in decision.result.status.message


def test_members_may_have_any_priority() -> None:
    pods = [*members("g", 1, priority=10), *members("g", 2)[1:]]
    made = scene(*slots(2))
    info = made.info(group(2), pods)
    assert group_problem(info, (), has_policy=False) == ""
    assert len(made.bind(made.decide(info))) == 2


@pytest.mark.parametrize(
    ("priorities", "victims"), [((100, 100), 2), ((100, 0), 0)], ids=["all higher", "one is not"]
)
def test_a_group_evicts_by_the_lowest_priority_of_its_pods(priorities: tuple[int, int], victims: int) -> None:
    old = [make_pod(f"old-{i}", on="n0", requests={"cpu": "1"}, priority=0) for i in range(2)]
    made = scene(*slots(2), *old)
    pods = [members("g", 2, priority=priority)[index] for index, priority in enumerate(priorities)]
    decision = made.decide(made.info(group(2), pods))
    assert decision.post_filter is not None
    evictions = [each for each in decision.post_filter.effects if isinstance(each, EvictPods)]
    assert sum(len(each.victims) for each in evictions) == victims
    decision.post_filter.done()


def test_members_are_told_what_is_missing_of_the_minimum_resources() -> None:
    made = scene(*slots(2, 2))
    decision = made.decide(made.info(group(2, minResources={"cpu": "5"}), members("g", 2)))
    assert not made.bind(decision)
    first = decision.result.members[0]
    gap = "resource gap: map[cpu:{{1000 -3} {<nil>}  DecimalSI}]"
    assert member_message(decision.result, first) == f"0/2 nodes are available: {gap}."
    assert len(made.bind(made.decide(made.info(group(2, minResources={"cpu": "4"}), members("g", 2))))) == 2
