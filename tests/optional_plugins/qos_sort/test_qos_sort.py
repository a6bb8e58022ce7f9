"""QOSSort: which of two pods is scheduled first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from moorage import Pod, QueuedPod
from moorage.api.pod_groups import GroupKey
from moorage.optional_plugins.qos_sort.plugin import QOSSort
from moorage.queue.queued_group import QueuedGroup
from moorage.testing import check_plugin
from tests.builders import container, make_pod
from tests.optional_plugins.shown_examples import ROOT, check_examples
from tests.scheduler.running import SchedulerHarness, in_harness
from tests.scheduler.test_groups import Groups

FULL = {"cpu": "1", "memory": "1Gi"}
CONTAINERS: dict[str, list[dict[str, Any]]] = {
    "Guaranteed": [{"name": "main", "resources": {"requests": FULL, "limits": FULL}}],
    "Burstable": [container({"cpu": "1"})],
    "BestEffort": [container()],
}
RULES = {
    "a higher priority first, of whatever class": ((10, "BestEffort", 2.0), (5, "Guaranteed", 1.0)),
    "Guaranteed before Burstable": ((5, "Guaranteed", 2.0), (5, "Burstable", 1.0)),
    "Burstable before BestEffort": ((5, "Burstable", 2.0), (5, "BestEffort", 1.0)),
    "Guaranteed before BestEffort": ((5, "Guaranteed", 2.0), (5, "BestEffort", 1.0)),
    "of one class, the pod that waits longer": ((5, "Burstable", 1.0), (5, "Burstable", 2.0)),
    "a negative priority is below the default": ((0, "BestEffort", 2.0), (-1, "Guaranteed", 1.0)),
}


def queued(priority: int, qos: str, timestamp: float) -> QueuedPod:
    return QueuedPod(make_pod("p", priority=priority, containers=CONTAINERS[qos]), timestamp)


@pytest.mark.parametrize(("first", "second"), RULES.values(), ids=RULES.keys())
def test_order(first: tuple[int, str, float], second: tuple[int, str, float]) -> None:
    sort = QOSSort().queue_sort
    assert sort(queued(*first)) < sort(queued(*second))


PODS = st.tuples(st.integers(-2, 2), st.sampled_from(list(CONTAINERS)), st.integers(0, 3).map(float))


@given(PODS, PODS)
def test_the_order_is_that_of_the_model(one: tuple[int, str, float], other: tuple[int, str, float]) -> None:
    sort = QOSSort().queue_sort
    assert (sort(queued(*one)) < sort(queued(*other))) is is_before(one, other)


def is_before(one: tuple[int, str, float], other: tuple[int, str, float]) -> bool:
    """The comparison of two pods as scheduler-plugins describes it."""
    if one[0] != other[0]:
        return one[0] > other[0]
    if one[1] != other[1]:
        return one[1] == "Guaranteed" or other[1] == "BestEffort"
    return one[2] < other[2]


def test_a_pod_of_unequal_requests_and_limits_is_burstable() -> None:
    larger = {"name": "main", "resources": {"requests": FULL, "limits": {"cpu": "2", "memory": "1Gi"}}}
    pods: list[Pod] = [make_pod("p", containers=[larger]), make_pod("p", containers=CONTAINERS["Burstable"])]
    keys = [QOSSort().queue_sort(QueuedPod(pod, 0.0)) for pod in pods]
    assert keys[0] == keys[1]


def test_keeps_the_rules_of_plugins() -> None:
    report = check_plugin(QOSSort)
    assert report.ok, str(report)


def test_the_page_shows_what_is_printed(tmp_path: Path) -> None:
    assert check_examples("docs/optional-plugins/qos-sort.md", tmp_path) == 1


def test_a_group_has_its_priority_and_the_class_of_the_member_that_stands_for_it() -> None:
    member = queued(0, "Burstable", 1.0)
    group = QueuedGroup(member.pod, 1.0, key=GroupKey("default", "gang"))
    group.priority = 5
    sort = QOSSort().queue_sort
    assert sort(queued(5, "Guaranteed", 2.0)) < sort(group) < sort(queued(5, "Burstable", 2.0))
    assert sort(group) < sort(member)


def test_gangs_are_scheduled_in_this_order() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        config = yaml.safe_load((ROOT / "examples/qos-sort/scheduler.yaml").read_text())
        groups = Groups(harness, config=config)
        for name, resources in (("idle", {}), ("firm", {"limits": FULL})):
            containers = [{"name": "main", "image": "app", "resources": resources}]
            await groups.add_group(name, min_count=2)
            await groups.add_pods(name, 2, containers=containers)
        await harness.passes(10)
        await harness.add_node("n1", pods="2")
        await harness.passes(20)
        assert [await groups.bound(name) for name in ("idle", "firm")] == [[], ["firm-0", "firm-1"]]
        await groups.ends()

    in_harness(scenario)
