"""Plugins that have nothing to do for the pods of a template are not called, and all others are."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from moorage.api.pod import Pod
from moorage.cluster.cache import Cache
from moorage.config.types import PluginRef, PluginSet
from moorage.engine.engine import Engine
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.dependencies import NODE, NOT_CONCERNED, DependsOn
from moorage.framework.interface.extension_points import PreFlight
from moorage.framework.interface.filter_result import ALL
from moorage.framework.interface.status import SKIP, SUCCESS
from moorage.framework.runtime.framework import Framework
from tests.builders import make_framework, make_node, make_pod
from tests.framework.helpers import POD, Log, framework_of, recorder

NODES = ("n1", "n2")
SCORES = np.zeros(2, np.int64)


def acting(name: str, log: Log, depends_on: DependsOn | None) -> Any:
    """A plugin that takes part in everything from reserve to pre-bind."""
    plugin = recorder(
        name, log, pre_filter=None, reserve=None, unreserve=None, pre_bind_pre_flight=None, pre_bind=None
    )
    plugin.depends_on = lambda pod, objects: depends_on
    return plugin


def decide(framework: Framework, engine: Engine, pod: Pod = POD) -> CycleState:
    cycle = CycleState()
    cache = Cache(make_node(name) for name in NODES)
    decision = engine.decide(framework, pod, cache.snapshot(), cycle)
    assert decision.node in NODES, decision.message
    return cycle


ACTING = ["reserve", "pre_bind_pre_flight", "pre_bind", "unreserve"]


@pytest.mark.parametrize(
    ("depends_on", "remembers", "called"),
    [
        pytest.param(NOT_CONCERNED, True, [], id="none of its business"),
        pytest.param(NODE, True, ACTING, id="remembered, but it acts"),
        pytest.param(None, True, ACTING, id="not remembered"),
        pytest.param(NOT_CONCERNED, False, ACTING, id="nothing is remembered"),
    ],
)
def test_a_plugin_that_does_not_act_is_left_out_once_there_is_a_node(
    depends_on: DependsOn | None, remembers: bool, called: list[str]
) -> None:
    log = Log()
    framework = framework_of(acting("A", log, depends_on))
    cycle = decide(framework, Engine(remembers=remembers))
    log.clear()
    assert framework.reserve(cycle, POD, "n1") == SUCCESS
    assert framework.pre_bind_pre_flight(cycle, POD, "n1") is bool(called)
    assert asyncio.run(framework.pre_bind(cycle, POD, "n1")) == SUCCESS
    assert framework.unreserve(cycle, POD, "n1") == []
    assert log == [f"A.{point}" for point in called]


def test_others_act_all_the_same() -> None:
    log = Log()
    framework = framework_of(acting("A", log, NOT_CONCERNED), acting("B", log, NODE))
    cycle = decide(framework, Engine())
    log.clear()
    framework.reserve(cycle, POD, "n1")
    assert framework.pre_bind_pre_flight(cycle, POD, "n1")
    asyncio.run(framework.pre_bind(cycle, POD, "n1"))
    assert log == ["B.reserve", "B.pre_bind_pre_flight", "B.pre_bind"]


PREPARING = {"pre_filter": None, "filter": ALL, "pre_score": None, "score": SCORES}


def quiet_or_not(log: Log, skips_pod: bool) -> Any:
    return recorder("Q", log, **PREPARING, skips_pod=skips_pod)


NOT_AT_PRE_SCORE = PluginSet(disabled=(PluginRef(name="Q"),))


@pytest.mark.parametrize(
    ("skips_pod", "remembers", "points", "called"),
    [
        pytest.param(True, True, {}, ["skips_pod"], id="quiet"),
        pytest.param(False, True, {}, ["skips_pod", *PREPARING], id="not quiet"),
        pytest.param(True, False, {}, list(PREPARING), id="nothing is remembered"),
        pytest.param(
            True,
            True,
            {"pre_score": NOT_AT_PRE_SCORE},
            ["pre_filter", "filter", "score"],
            id="not at both points",
        ),
    ],
)
def test_a_plugin_that_is_quiet_is_asked_nothing_else(
    skips_pod: bool, remembers: bool, points: dict[str, Any], called: list[str]
) -> None:
    log = Log()
    decide(framework_of(quiet_or_not(log, skips_pod), **points), Engine(remembers=remembers))
    assert log == [f"Q.{point}" for point in called]


def test_a_cached_plugin_scores_the_pod_after_one_that_it_skipped() -> None:
    skips = iter((True, False))
    plugin = recorder("Q", Log(), **PREPARING)
    plugin.depends_on = lambda pod, objects: NODE
    plugin.skips_pod = lambda cycle, pod, nodes: next(skips)
    framework, engine = framework_of(plugin), Engine()
    snapshot = Cache(make_node(name) for name in NODES).snapshot()
    scored = []
    for _ in range(2):
        decision = engine.decide(framework, POD, snapshot)
        assert decision.scores is not None
        scored.append(list(decision.scores.by_plugin))
    assert scored == [[], ["Q"]]


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(make_pod("plain"), id="plain"),
        pytest.param(make_pod("p", volumes=[{"name": "scratch", "emptyDir": {}}]), id="scratch volume"),
        pytest.param(make_pod("p", requests={"cpu": "1", "gpu.org/x": "0"}), id="extended resource"),
    ],
)
def test_default_plugins_that_do_not_act_have_nothing_to_do(pod: Pod) -> None:
    framework = make_framework()
    cache = Cache([make_node("n1"), make_node("n2")])
    snapshot, idle = cache.snapshot(), set()
    plugins: Mapping[str, Any] = framework.plugins
    for name, plugin in plugins.items():
        depends_on: DependsOn | None = (
            plugin.depends_on(pod, snapshot.objects) if hasattr(plugin, "depends_on") else None
        )
        if depends_on is None or depends_on.runs_after_filter or not hasattr(plugin, "reserve"):
            continue
        idle.add(name)
        cycle = decide(framework, Engine(remembers=False), pod)
        before = cycle.keys()
        assert plugin.reserve(cycle, pod, "n1") is None
        flight: PreFlight = plugin.pre_bind_pre_flight(cycle, pod, "n1")
        assert (flight.status, flight.in_parallel) == (SKIP, True), name
        assert asyncio.run(plugin.pre_bind(cycle, pod, "n1")) is None
        assert cycle.keys() == before
    assert idle == {"VolumeBinding", "DynamicResources"}
