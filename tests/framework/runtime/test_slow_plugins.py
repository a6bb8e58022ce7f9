"""Plugins that hold the scheduler up are warned of and counted; those that only wait are not."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import numpy as np
import pytest

from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.diagnosis import Diagnosis
from moorage.framework.interface.filter_result import ALL
from moorage.framework.interface.handle import Handle
from moorage.framework.runtime.plugin_metrics import PluginMetrics
from moorage.framework.runtime.slow_plugins import SlowCalls
from tests.framework.helpers import POD, framework_of, nodes


class Stopwatch:
    """Time that passes while somebody works."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> float:
        return self.seconds

    def works(self, seconds: float) -> None:
        self.seconds += seconds


class Counted(PluginMetrics):
    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    def slow_call(self, plugin: str, point: str) -> None:
        self.calls.append((plugin, point))


class Worker:
    """Works for so long whenever it is asked."""

    name = "Worker"

    def __init__(self, watch: Stopwatch, seconds: float) -> None:
        self._watch = watch
        self.seconds = seconds

    def filter(self, cycle: Any, pod: Any, nodes: Any) -> Any:
        self._watch.works(self.seconds)
        return ALL

    def score_node(self, cycle: Any, pod: Any, node: Any) -> int:
        self._watch.works(self.seconds)
        return 1

    def unreserve(self, cycle: Any, pod: Any, node_name: str) -> None:
        self._watch.works(self.seconds)
        raise LookupError("slow, and wrong")

    async def pre_bind(self, cycle: Any, pod: Any, node_name: str) -> None:
        await asyncio.sleep(0)
        self._watch.works(self.seconds)
        await asyncio.sleep(0)


def stage(seconds: float, threshold_seconds: float = 0.1) -> tuple[Any, Counted, Worker, Stopwatch]:
    watch, counted = Stopwatch(), Counted()
    worker = Worker(watch, seconds)
    handle = Handle(metrics=counted, slow_calls=SlowCalls(threshold_seconds, watch.now))
    return framework_of(worker, handle=handle), counted, worker, watch


def ask(framework: Any) -> None:
    framework.filter(CycleState(), POD, nodes("a", "b"), Diagnosis(2))


def test_a_slow_call_is_counted_and_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    framework, counted, *_ = stage(0.25)
    ask(framework)
    assert counted.calls == [("Worker", "Filter")]
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage() == (
        '"Plugin is slow; nothing else was scheduled meanwhile" '
        'plugin="Worker" extensionPoint="Filter" milliseconds=250'
    )


def test_a_warning_a_minute_for_each_plugin_and_point(caplog: pytest.LogCaptureFixture) -> None:
    framework, counted, _, watch = stage(0.25)
    for _ in range(3):
        ask(framework)
    assert (len(counted.calls), len(caplog.records)) == (3, 1)
    framework.score(CycleState(), POD, nodes("a"))
    assert (len(counted.calls), len(caplog.records)) == (4, 2)
    watch.works(60)
    ask(framework)
    assert (len(counted.calls), len(caplog.records)) == (5, 3)


@pytest.mark.parametrize(("seconds", "threshold"), [(0.1, 0.1), (5.0, 0.0)], ids=["fast enough", "off"])
def test_no_warning(seconds: float, threshold: float, caplog: pytest.LogCaptureFixture) -> None:
    framework, counted, *_ = stage(seconds, threshold)
    ask(framework)
    assert (counted.calls, caplog.records) == ([], [])


def test_all_nodes_of_a_call_count_together() -> None:
    framework, counted, *_ = stage(0.03)
    scores = framework.score(CycleState(), POD, nodes("a", "b", "c", "d"))
    assert np.array_equal(scores.totals, [1, 1, 1, 1])
    assert counted.calls == [("Worker", "Score")]


def test_one_that_raises_is_timed_too() -> None:
    framework, counted, *_ = stage(0.25)
    [failure] = framework.unreserve(CycleState(), POD, "a")
    assert "LookupError: slow, and wrong (test_slow_plugins.py:" in str(failure)
    assert counted.calls == [("Worker", "Unreserve")]


def test_of_an_async_plugin_only_its_own_work_counts() -> None:
    framework, counted, worker, watch = stage(0.25)

    async def bound() -> None:
        waiting = asyncio.ensure_future(framework.pre_bind(CycleState(), POD, "a"))
        await asyncio.sleep(0)
        watch.works(60)  # Somebody else's work, while the plugin waits.
        await waiting

    asyncio.run(bound())
    assert counted.calls == [("Worker", "PreBind")]
    worker.seconds = 0.05
    asyncio.run(bound())
    assert counted.calls == [("Worker", "PreBind")]


def test_an_async_plugin_that_is_watched_can_be_cancelled_and_can_catch_that() -> None:
    watch, caught = Stopwatch(), []

    async def patient() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            caught.append("cancelled")
        return "done"

    method = SlowCalls(0.1, watch.now).watched("P", "bind", patient, lambda plugin, point: None)

    async def run() -> str:
        async def wait() -> str:
            return str(await method())

        task = asyncio.ensure_future(wait())
        await asyncio.sleep(0)
        task.cancel()
        return await task

    assert asyncio.run(run()) == "done"
    assert caught == ["cancelled"]


def test_moorage_s_own_plugins_are_not_slowed_down_by_being_watched() -> None:
    framework = framework_of(handle=Handle(slow_calls=SlowCalls(0.1)))
    [step] = framework.at("bind")
    assert step.method == framework.plugins["DefaultBinder"].bind  # type: ignore[attr-defined]
