"""PreemptionToleration: which pods go, and when a preemptor is tried again."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage import (
    Cache,
    Engine,
    EvictPods,
    Handle,
    NodeView,
    Object,
    Pod,
    PostFilterResult,
    Registry,
    default_registry,
    parse_config,
)
from moorage.clock import VirtualClock
from moorage.framework.interface.handle import Live
from moorage.framework.runtime.framework import Framework
from moorage.optional_plugins.preemption_toleration import retries
from moorage.optional_plugins.preemption_toleration.plugin import PreemptionToleration
from moorage.testing import check_plugin
from tests.builders import make_profile
from tests.optional_plugins.preemption_toleration.preempting import (
    NOW,
    boss,
    priority_class,
    running,
    small,
)

SAFE = priority_class("safe", 10, "2000", "-1")
MINUTE = priority_class("minute", 10, "2000", "60")
HOUR = priority_class("hour", 10, "2000", "3600")
PLAIN = priority_class("plain", 10)
CLASSES = (SAFE, MINUTE, HOUR, PLAIN)
NOT_HELPFUL = "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."


class Scene:
    """A scheduler's plugin at a cluster whose clock is moved by hand."""

    def __init__(self, *objects: Object, plugin: str = "PreemptionToleration") -> None:
        self.clock = VirtualClock(epoch=NOW)
        self.activated: list[str] = []
        live = Live(cast(Any, None), cast(Any, None), self._activate, cast(Any, None))
        self.cache = Cache([*CLASSES, *objects])
        handle = Handle(self.cache.objects, clock=self.clock, random=Random(1), live=live)
        self.framework = Framework(make_profile("NodeResourcesFit", plugin), default_registry(), handle)
        self._engine = Engine(seed=0)

    def _activate(self, pods: Iterable[Pod]) -> None:
        self.activated += [pod.name for pod in pods]

    def preempt(self, pod: Pod) -> PostFilterResult:
        result = self._engine.decide(self.framework, pod, self.cache.snapshot()).post_filter
        assert isinstance(result, PostFilterResult)
        return result

    def evicted(self, pod: Pod) -> list[str]:
        return evicted(self.preempt(pod))

    def activated_after(self, seconds: float) -> list[str]:
        self.activated.clear()
        self.clock.advance(seconds)
        return list(self.activated)


def evicted(result: PostFilterResult) -> list[str]:
    victims = [each.victims for each in result.effects if isinstance(each, EvictPods)]
    return sorted(pod.name for each in victims for pod in each)


RULES = {
    "a class without annotations protects nothing": ("plain", 0.0, 1000, True),
    "neither does no class": ("", 0.0, 1000, True),
    "nor one that is gone": ("gone", 0.0, 1000, True),
    "for ever": ("safe", 86400.0, 1000, False),
    "not from the minimum on": ("safe", 0.0, 2000, True),
    "below the minimum": ("safe", 0.0, 1999, False),
    "before its time is over": ("minute", 59.0, 1000, False),
    "when its time is over": ("minute", 60.0, 1000, True),
    "not scheduled yet, by what the API server says": ("minute", None, 1000, False),
}


@pytest.mark.parametrize(("name", "age", "priority", "is_evicted"), RULES.values(), ids=RULES.keys())
def test_a_pod_is_evicted(name: str, age: float | None, priority: int, is_evicted: bool) -> None:
    scene = Scene(small("a"), running("victim", "a", 10, name, age, cpu="2"))
    assert scene.evicted(boss(priority)) == (["victim"] if is_evicted else [])


def test_the_pods_beside_it_are_evicted_instead() -> None:
    scene = Scene(small("a"), running("safe", "a", 1, "safe"), running("other", "a", 9))
    assert scene.evicted(boss(cpu="1")) == ["other"]
    assert scene.evicted(boss(cpu="2")) == []


def test_a_node_without_such_pods_is_chosen() -> None:
    scene = Scene(
        small("a"), small("b"), running("safe", "a", 1, "safe", cpu="2"), running("other", "b", 9, cpu="2")
    )
    result = scene.preempt(boss())
    assert (result.nominated_node, evicted(result)) == ("b", ["other"])


def test_time_passes_although_results_are_kept() -> None:
    """Pods of one template, one after another: nothing changes but the time."""
    scene = Scene(small("a"), running("victim", "a", 10, "minute", 0.0, cpu="2"))
    found = []
    for _ in range(4):
        found.append(scene.evicted(boss()))
        scene.clock.advance(30)
    assert found == [[], [], ["victim"], ["victim"]]


def test_a_class_that_changes_counts_at_once() -> None:
    scene = Scene(small("a"), running("victim", "a", 10, "plain", cpu="2"))
    assert scene.evicted(boss()) == ["victim"]
    scene.cache.put(priority_class("plain", 10, "2000", "-1"))
    assert scene.evicted(boss()) == []
    scene.cache.put(PLAIN)
    assert scene.evicted(boss()) == ["victim"]


PODS = st.lists(
    st.tuples(
        st.sampled_from(["", "plain", "safe", "minute"]),
        st.sampled_from([0, 10, 2000]),
        st.sampled_from([0.0, 90.0]),
        st.sampled_from("abc"),
    ),
    max_size=9,
)


@given(PODS, st.sampled_from(["1", "2"]), st.sampled_from([1000, 2000]))
def test_the_victims_are_those_of_default_preemption_were_the_others_as_important_as_the_preemptor(
    pods: list[tuple[str, int, float, str]], cpu: str, priority: int
) -> None:
    """Every pod that tolerates is, for DefaultPreemption, a pod of the preemptor's priority."""
    nodes, scenes = [small(name) for name in "abc"], []
    for plugin in ("PreemptionToleration", "DefaultPreemption"):
        scene = Scene(*nodes, plugin=plugin)
        for number, (name, value, age, node) in enumerate(pods):
            is_safe = priority < 2000 and (name == "safe" or (name == "minute" and age < 60))
            value = priority if is_safe and plugin == "DefaultPreemption" else value
            scene.cache.put_pod(running(f"p{number}", node, value, name, age))
        scenes.append(scene)
    decisions = [
        Engine(seed=0).decide(scene.framework, boss(priority, cpu), scene.cache.snapshot())
        for scene in scenes
    ]
    ours, theirs = decisions
    assert (ours.node is None) == (theirs.node is None)
    if ours.node is None:
        assert ours.post_filter is not None
        assert theirs.post_filter is not None
        assert evicted(ours.post_filter) == evicted(theirs.post_filter)


def test_without_pods_that_tolerate_results_are_cached() -> None:
    scene = Scene(small("a"), running("victim", "a", 10, "plain"), running("vip", "a", 2000, "safe"))
    plugin = scene.framework.plugins["PreemptionToleration"]
    assert isinstance(plugin, PreemptionToleration)
    view = NodeView(scene.cache.snapshot(), 0).as_nodes()
    assert plugin.potential_victims(boss(), view, None) is None


# Trying again


def test_a_preemptor_is_tried_again_when_the_first_toleration_ends() -> None:
    scene = Scene(
        small("a"),
        small("b"),
        running("later", "a", 10, "hour", 0.0, cpu="2"),
        running("first", "b", 10, "minute", 20.0, cpu="2"),
    )
    result = scene.preempt(boss())
    assert result.status.message == (
        "preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod. There will be "
        "room when pods no longer tolerate preemption, the first of them from 2026-03-01T12:00:40Z on."
    )
    assert scene.activated_after(40) == []
    assert scene.activated_after(0.1) == ["boss"]
    assert scene.evicted(boss()) == ["first"]
    assert scene.activated_after(86400) == []


@pytest.mark.parametrize(
    ("pods", "cpu"),
    [
        pytest.param([("safe", 10, "2")], "2", id="for ever"),
        pytest.param([("minute", 10, "1"), ("safe", 10, "1")], "2", id="beside one for ever"),
        pytest.param([("minute", 10, "2")], "3", id="too large for the node"),
        pytest.param([("minute", 10, "1"), ("", 3000, "1")], "2", id="beside one of higher priority"),
    ],
)
def test_it_is_not_tried_again_where_that_would_not_help(pods: list[tuple[str, int, str]], cpu: str) -> None:
    scene = Scene(small("a"))
    for number, (name, priority, requested) in enumerate(pods):
        scene.cache.put_pod(running(f"p{number}", "a", priority, name, cpu=requested))
    assert "There will be room" not in scene.preempt(boss(cpu=cpu)).status.message
    assert scene.activated_after(86400) == []


def test_where_several_have_to_go_it_is_tried_again_for_each() -> None:
    scene = Scene(small("a"), running("x", "a", 10, "minute", 0.0), running("y", "a", 10, "minute", 30.0))
    tries = []
    for _ in range(2):
        assert scene.evicted(boss()) == []
        tries.append(scene.activated_after(35))
    assert tries == [["boss"], ["boss"]]
    assert scene.evicted(boss()) == ["x", "y"]


def test_a_preemptor_that_got_its_room_is_not_tried_again() -> None:
    scene = Scene(small("a"), small("b"), running("victim", "a", 10, "minute", 0.0, cpu="2"))
    scene.cache.put_pod(running("other", "b", 3000, cpu="2"))
    assert scene.evicted(boss()) == []
    scene.cache.put_pod(running("other", "b", 5, cpu="2"))
    assert scene.evicted(boss()) == ["other"]
    assert scene.activated_after(86400) == []


@pytest.mark.parametrize(("age", "pause"), [(0.0, 1.0), (30.0, 3.0), (3600.0, 10.0)])
def test_old_preemptors_are_tried_less_often(age: float, pause: float) -> None:
    scene = Scene(small("a"), running("victim", "a", 10, "minute", 59.5, cpu="2"))
    assert scene.evicted(boss(age=age)) == []
    assert scene.activated_after(pause - 0.1) == []
    assert scene.activated_after(0.2) == ["boss"]


def test_the_number_of_timers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "MAX_WAITING", 2)
    scene = Scene(small("a"), running("victim", "a", 10, "minute", 0.0, cpu="2"))
    for name in ("one", "two", "three"):
        assert scene.evicted(boss(name=name)) == []
    assert scene.activated_after(61) == ["two", "three"]


# Arguments


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (
            {"minCandidateNodesPercentage": 101},
            "minCandidateNodesPercentage: 101 is not in the range [0, 100]",
        ),
        ({"minCandidateNodesPercentage": -1}, "minCandidateNodesPercentage: -1 is not in the range [0, 100]"),
        ({"minCandidateNodesAbsolute": -1}, "minCandidateNodesAbsolute: -1 is negative"),
        (
            {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0},
            "minCandidateNodesPercentage and minCandidateNodesAbsolute: both are 0",
        ),
        ({"minCandidateNodes": 5}, "minCandidateNodes"),
        ({"minCandidateNodesAbsolute": "ten"}, "minCandidateNodesAbsolute"),
    ],
)
def test_wrong_arguments_are_errors(args: dict[str, Any], problem: str) -> None:
    with pytest.raises(Exception, match="PreemptionToleration") as error:
        made_with(args)
    assert problem in str(error.value)
    assert "\n" not in str(error.value)


def test_arguments_are_those_of_default_preemption() -> None:
    made_with({"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "PreemptionTolerationArgs"})
    made_with({"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 1})


def made_with(args: dict[str, Any]) -> Framework:
    registry: Registry = default_registry()
    profile = {
        "plugins": {
            "multiPoint": {
                "enabled": [{"name": "PreemptionToleration"}],
                "disabled": [{"name": "DefaultPreemption"}],
            }
        },
        "pluginConfig": [{"name": "PreemptionToleration", "args": args}],
    }
    config = parse_config(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [profile],
        }
    )
    return Framework(config.profiles[0], registry, Handle())


def test_it_watches_priority_classes_too() -> None:
    names = [kind.plural for kind in PreemptionToleration.watched_kinds]
    assert names == ["poddisruptionbudgets", "priorityclasses"]


def test_keeps_the_rules_of_plugins() -> None:
    report = check_plugin(PreemptionToleration)
    assert report.ok, str(report)
