"""The plan for a pod: which plugins run at each extension point, which are cached, why others do not run."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from moorage.api.pod import Pod
from moorage.cluster.cache import Cache
from moorage.engine.engine import Engine
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.dependencies import NOT_CONCERNED
from moorage.framework.interface.handle import Handle
from moorage.framework.runtime.framework import Framework
from moorage.framework.runtime.plan import CallDecision
from moorage.plugins import default_registry
from moorage.scheduler.observers import MetricsObserver
from moorage.services.metrics import Metrics
from tests.builders import make_framework, make_node, make_pod, make_profile
from tests.framework.helpers import POD, Log, framework_of, nodes, recorder
from tests.plugins.volumes.volume_objects import claim, volume

PLAIN = """\
queue_sort           PrioritySort       runs
pre_filter           NodeResourcesFit   answers from the result cache
pre_filter           VolumeBinding      answers from the result cache
pre_filter           PodTopologySpread  left out: skips_pod
filter               NodeName           answers from the result cache
filter               NodeResourcesFit   answers from the result cache
filter               VolumeBinding      left out: pre_filter answered Skip
filter               PodTopologySpread  left out: skips_pod
pre_score            NodeResourcesFit   answers from the result cache
pre_score            VolumeBinding      answers from the result cache
pre_score            PodTopologySpread  left out: skips_pod
score                VolumeBinding      answers from the result cache
score                PodTopologySpread  left out: skips_pod
score                NodeResourcesFit   left out: not enabled
reserve              VolumeBinding      left out: depends_on says runs_after_filter=False
unreserve            VolumeBinding      left out: depends_on says runs_after_filter=False
pre_bind_pre_flight  VolumeBinding      left out: depends_on says runs_after_filter=False
pre_bind             VolumeBinding      left out: depends_on says runs_after_filter=False
bind                 DefaultBinder      runs"""

WITH_CLAIM = """\
queue_sort           PrioritySort       runs
pre_filter           NodeResourcesFit   answers from the result cache
pre_filter           VolumeBinding      runs
pre_filter           PodTopologySpread  left out: skips_pod
filter               NodeName           answers from the result cache
filter               NodeResourcesFit   answers from the result cache
filter               VolumeBinding      left out: pre_filter answered Skip
filter               PodTopologySpread  left out: skips_pod
pre_score            NodeResourcesFit   answers from the result cache
pre_score            VolumeBinding      runs
pre_score            PodTopologySpread  left out: skips_pod
score                VolumeBinding      runs
score                PodTopologySpread  left out: skips_pod
score                NodeResourcesFit   left out: not enabled
reserve              VolumeBinding      runs
unreserve            VolumeBinding      runs
pre_bind_pre_flight  VolumeBinding      runs
pre_bind             VolumeBinding      runs
bind                 DefaultBinder      runs"""

CLAIMING = make_pod("p", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])


@pytest.mark.parametrize(
    ("pod", "table"),
    [pytest.param(make_pod("p"), PLAIN, id="plain"), pytest.param(CLAIMING, WITH_CLAIM, id="with a claim")],
)
def test_a_plan_as_a_table(pod: Pod, table: str) -> None:
    framework = make_framework(
        "NodeName",
        "NodeResourcesFit",
        "VolumeBinding",
        "PodTopologySpread",
        off={"score": ["NodeResourcesFit"]},
    )
    objects = [make_node("a"), make_node("b"), volume("v", claim="data"), claim("data", volume="v")]
    assert str(framework.plan_of(pod, Cache(objects).snapshot())) == table


def test_filters_after_the_first_that_is_not_cached_are_not_answered_from_the_cache() -> None:
    framework = make_framework("NodeName", "InterPodAffinity", "NodeResourcesFit")
    plan = framework.plan_of(make_pod("p"), nodes("a").snapshot)
    assert (
        plan.choice("filter", "NodeResourcesFit") is CallDecision.CACHED
    )  # InterPodAffinity has skipped the pod.
    cached = recorder("Cached", Log(), filter_node=None)
    cached.depends_on = lambda pod, objects: NOT_CONCERNED
    framework = framework_of(recorder("Own", Log(), filter_node=None), cached)
    plan = framework.plan_of(POD, nodes("a").snapshot)
    assert plan.choice("filter", "Cached") is CallDecision.RUNS


def test_where_nothing_is_cached_every_plugin_runs_that_does_not_skip() -> None:
    framework = make_framework()
    cycle = CycleState()
    Engine(remembers=False).decide(framework, make_pod("p"), nodes("a", "b").snapshot, cycle)
    choices = {choice for _, _, choice in framework.plan(cycle).rows()}
    assert choices == {CallDecision.RUNS, CallDecision.PRE_FILTER_SKIPPED, CallDecision.PRE_SCORE_SKIPPED}


def test_equal_skips_lead_to_the_same_plan() -> None:
    framework, engine, snapshot = make_framework(), Engine(), nodes("a", "b").snapshot
    plans = []
    for _ in range(3):
        cycle = CycleState()
        engine.decide(framework, make_pod("p"), snapshot, cycle)
        plans.append(framework.plan(cycle))
    assert plans[1] is plans[2]


class Drawn(Random):
    """Draws the same number each time."""

    def __init__(self, number: float) -> None:
        super().__init__(0)
        self._number = number

    def random(self) -> float:
        return self._number


def acted(framework: Framework) -> CycleState:
    """A pod's cycle up to pre-bind; the first pod of its class."""
    cycle = CycleState()
    Engine().decide(framework, POD, nodes("a", "b").snapshot, cycle)
    framework.reserve(cycle, POD, "a")
    framework.pre_bind_pre_flight(cycle, POD, "a")
    asyncio.run(framework.pre_bind(cycle, POD, "a"))
    return cycle


@pytest.mark.parametrize(("draw", "is_sampled"), [(0.0, True), (0.99, False)])
def test_the_same_plugins_run_whether_a_cycle_is_sampled_or_not(draw: float, is_sampled: bool) -> None:
    metrics, profile = Metrics(Drawn(draw)), make_profile()
    measured = acted(MetricsObserver(metrics).framework(profile, default_registry(), Handle()))
    assert measured.is_sampled is is_sampled
    assert str(measured.plan) == str(acted(Framework(profile, default_registry())).plan)
    observed = {(plugin, point) for plugin, point, _ in metrics.plugin_execution_duration.cells}
    assert (("VolumeBinding", "Reserve") in observed) is False
    assert (("NodeResourcesFit", "PreFilter") in observed) is is_sampled


def test_uses_of_the_result_cache_are_counted() -> None:
    metrics = Metrics(Random(1))
    framework = MetricsObserver(metrics).framework(make_profile(), default_registry(), Handle())
    engine, snapshot = Engine(), nodes("a", "b").snapshot
    for cpu in ("1", "1", "2", "1"):
        engine.decide(framework, make_pod("p", requests={"cpu": cpu}), snapshot)
    for result, count in (("hit", 2), ("miss", 2)):
        assert metrics.plugin_result_cache.labels("default-scheduler", result).value == count
