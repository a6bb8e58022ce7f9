"""PreemptionToleration and groups of pods: as preemptors, and as victims."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any, cast

import pytest

from moorage import EvictPods, Handle, Object, Pod, PodGroupInfo, PodGroupPostFilterResult, default_registry
from moorage.api.decode import convert
from moorage.api.pod_groups import GroupKey, PodGroup, key_of
from moorage.clock import VirtualClock
from moorage.cluster.cache import Cache
from moorage.emulation.kubernetes_version import V1_37
from moorage.engine.engine import Engine
from moorage.engine.group_choices import RandomChoices
from moorage.engine.group_cycle import GroupCycle
from moorage.engine.run_without_suspending import run_without_suspending
from moorage.framework.interface.handle import Live
from moorage.framework.runtime.framework import Framework
from tests.builders import make_pod, make_profile
from tests.optional_plugins.preemption_toleration.preempting import (
    NOW,
    boss,
    conditions,
    priority_class,
    running,
    small,
)

VERSION = V1_37.with_gates({"GenericWorkload": True, "PodGroupPreemptionPolicy": True})
SAFE = priority_class("safe", 10, "2000", "-1")
MINUTE = priority_class("minute", 10, "2000", "60")


def gang(name: str, minimum: int, **spec: Any) -> PodGroup:
    policy = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
    manifest = {"metadata": {"name": name, "namespace": "default"}, "spec": {**policy, **spec}}
    return convert(manifest, PodGroup)


def member(group: str, number: int, on: str = "", of_class: str = "", ago: float | None = 0.0) -> Pod:
    return make_pod(
        f"{group}-{number}",
        uid=f"{group}-{number}",
        on=on,
        requests={"cpu": "1"},
        priority=10,
        priority_class_name=of_class or None,
        scheduling_group={"podGroupName": group},
        status={"conditions": [*conditions(ago if on else None)]},
    )


class GroupScene:
    """A cluster with groups, whose clock is moved by hand."""

    def __init__(self, *objects: Object) -> None:
        self.clock = VirtualClock(epoch=NOW)
        self.activated: list[str] = []
        self.cache = Cache([SAFE, MINUTE, *objects])
        live = Live(cast(Any, None), cast(Any, None), self._activate, self._activate_group)
        handle = Handle(
            self.cache.objects,
            clock=self.clock,
            random=Random(1),
            live=live,
            pod_groups=self.cache.pod_groups,
            version=VERSION,
        )
        profile = make_profile("NodeResourcesFit", "GangScheduling", "PreemptionToleration")
        self.framework = Framework(profile, default_registry(), handle)
        self.engine = Engine(seed=0)

    def _activate(self, pods: Iterable[Pod]) -> None:
        self.activated += [pod.name for pod in pods]

    def _activate_group(self, key: GroupKey) -> None:
        self.activated.append(key.name)

    def preempt(self, group: PodGroup, count: int) -> PodGroupPostFilterResult:
        self.cache.put(group)
        pods = tuple(member(group.name, number) for number in range(count))
        choices = RandomChoices(Random(0))
        cycle = GroupCycle(self.engine, self.framework, self.cache, choices, has_placements=False)
        decision = run_without_suspending(cycle.decide(PodGroupInfo(key_of(group), group, pods)))
        self.cache.validate()
        assert decision.post_filter is not None
        return decision.post_filter

    def evicted(self, group: PodGroup, count: int = 2) -> list[str]:
        return names(self.preempt(group, count).effects)

    def evicted_for_pod(self, cpu: str = "2") -> list[str]:
        result = self.engine.decide(self.framework, boss(1000, cpu), self.cache.snapshot()).post_filter
        assert result is not None
        return names(result.effects)


def names(effects: Iterable[object]) -> list[str]:
    return sorted(pod.name for each in effects if isinstance(each, EvictPods) for pod in each.victims)


URGENT = gang("urgent", 2, priority=1000)


@pytest.mark.parametrize(
    ("first", "second", "victims"),
    [
        pytest.param("", "", ["p0", "p1"], id="without classes"),
        pytest.param("safe", "", [], id="one of them for ever"),
        pytest.param("minute", "", [], id="one of them for now"),
    ],
)
def test_a_group_evicts_no_pod_that_tolerates(first: str, second: str, victims: list[str]) -> None:
    scene = GroupScene(small("a"), running("p0", "a", 10, first), running("p1", "a", 10, second))
    assert scene.evicted(URGENT) == victims


def test_its_own_priority_counts() -> None:
    pods = [running(f"p{number}", "a", 10, "safe") for number in range(2)]
    assert GroupScene(small("a"), *pods).evicted(gang("urgent", 2, priority=1999)) == []
    assert GroupScene(small("a"), *pods).evicted(gang("urgent", 2, priority=2000)) == ["p0", "p1"]


def test_a_group_is_tried_again_when_the_first_toleration_ends() -> None:
    scene = GroupScene(
        small("a"), running("p0", "a", 10, "minute", 30.0), running("p1", "a", 10, "minute", 0.0)
    )
    result = scene.preempt(URGENT, 2)
    assert result.status.message.endswith(
        "There will be room when pods no longer tolerate preemption, the first of them from "
        "2026-03-01T12:00:30Z on."
    )
    scene.clock.advance(29)
    assert scene.activated == []
    scene.clock.advance(2)
    assert scene.activated == ["urgent"]
    assert scene.evicted(URGENT) == []
    scene.clock.advance(30)
    assert scene.activated == ["urgent", "urgent"]
    assert scene.evicted(URGENT) == ["p0", "p1"]


@pytest.mark.parametrize(
    ("group", "classes"),
    [
        pytest.param(URGENT, ("minute", "safe"), id="the other one is safe for ever"),
        pytest.param(gang("urgent", 3, priority=1000), ("minute", "minute"), id="it is too large"),
        pytest.param(
            gang("urgent", 2, priority=1000, preemptionPolicy="Never"), ("minute", "minute"), id="it may not"
        ),
    ],
)
def test_a_group_is_not_tried_again_where_that_would_not_help(
    group: PodGroup, classes: tuple[str, str]
) -> None:
    pods = [running(f"p{number}", "a", 10, name) for number, name in enumerate(classes)]
    scene = GroupScene(small("a"), *pods)
    assert scene.evicted(group, 3) == []
    scene.clock.advance(86400)
    assert scene.activated == []


WHOLE = gang("old", 2, priority=10, disruptionMode={"all": {}})
SINGLE = gang("old", 2, priority=10)


@pytest.mark.parametrize(
    ("group", "of_class", "victims"),
    [
        pytest.param(WHOLE, "", ["old-0", "old-1"], id="evicted as a whole"),
        pytest.param(WHOLE, "safe", [], id="evicted as a whole, and safe as a whole"),
        pytest.param(SINGLE, "safe", ["old-1"], id="single members are safe"),
    ],
)
def test_members_of_a_group_tolerate(group: PodGroup, of_class: str, victims: list[str]) -> None:
    scene = GroupScene(small("a"), small("b"), group)
    for number, node in enumerate("ab"):
        scene.cache.put_pod(member("old", number, node, of_class if node == "a" else ""))
        scene.cache.put_pod(running(f"p{number}", node, 3000))
    assert scene.evicted_for_pod("1") == victims


def test_the_priority_of_their_group_counts() -> None:
    scene = GroupScene(small("a"), gang("old", 1, priority=5000))
    scene.cache.put_pod(member("old", 0, "a"))
    scene.cache.put_pod(running("safe", "a", 10, "safe"))
    assert scene.evicted_for_pod("1") == []
    scene.cache.put(gang("old", 1, priority=5))
    assert scene.evicted_for_pod("1") == ["old-0"]
