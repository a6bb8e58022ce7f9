"""Which methods of plugins run in threads, and what becomes of what they answer."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from moorage import SimulatedCluster, default_config
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.status import Code, PluginError, Status, unschedulable
from moorage.framework.loading.plugin_discovery import enabled_everywhere
from moorage.framework.runtime.plugin_metrics import PluginMetrics
from moorage.framework.runtime.plugin_threads import PluginThreads, WrongThreadError
from moorage.framework.runtime.slow_plugins import SlowCalls
from moorage.plugins import default_registry
from moorage.scheduler.observers import MetricsObserver
from moorage.services.metrics import Metrics
from tests.builders import make_node, make_pod
from tests.framework.helpers import POD, framework_of


class Placed:
    """Notes in which thread it is called."""

    name = "Placed"

    def __init__(self, answer: Callable[[], Any] = lambda: None) -> None:
        self.threads: dict[str, str] = {}
        self._answer = answer

    def _note(self, point: str) -> None:
        self.threads[point] = threading.current_thread().name.partition("-")[0]

    def pre_bind(self, cycle: Any, pod: Any, node_name: str) -> Any:
        self._note("pre_bind")
        return self._answer()

    async def bind(self, cycle: Any, pod: Any, node_name: str) -> None:
        self._note("bind")

    def post_bind(self, cycle: Any, pod: Any, node_name: str) -> None:
        self._note("post_bind")

    def reserve(self, cycle: Any, pod: Any, node_name: str) -> None:
        self._note("reserve")


def beside_loop(work: Callable[[PluginThreads], Coroutine[Any, Any, Any]]) -> Any:
    """Run something with threads beside its loop."""

    async def run() -> Any:
        threads = PluginThreads(2)
        outcome: Any = None
        async with asyncio.TaskGroup() as tasks:
            threads.begin(tasks)
            ending = asyncio.all_tasks() - {asyncio.current_task()}
            [outcome] = await asyncio.gather(work(threads), return_exceptions=True)
            for task in ending:
                task.cancel()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return asyncio.run(run())


def pre_bound(plugin: Placed) -> Status:
    async def work(threads: PluginThreads) -> Status:
        return await framework_of(plugin, handle=Handle(threads=threads)).pre_bind(CycleState(), POD, "a")

    status: Status = beside_loop(work)
    return status


def test_ordinary_methods_of_the_binding_cycle_run_in_threads() -> None:
    plugin = Placed()

    async def work(threads: PluginThreads) -> None:
        framework = framework_of(plugin, handle=Handle(threads=threads))
        framework.reserve(CycleState(), POD, "a")
        for ask in (framework.pre_bind, framework.bind, framework.post_bind):
            await ask(CycleState(), POD, "a")

    beside_loop(work)
    main = threading.current_thread().name.partition("-")[0]
    assert plugin.threads == {"reserve": main, "pre_bind": "plugin", "bind": main, "post_bind": "plugin"}


def test_moorage_s_own_plugins_do_not() -> None:
    framework = framework_of(handle=Handle(threads=PluginThreads(1)))
    assert [step.method for step in framework.at("bind")] == [framework.plugins["DefaultBinder"].bind]  # type: ignore[attr-defined]


async def _later(answer: Any) -> Any:
    await asyncio.sleep(0)
    return answer


def _ended() -> None:
    sys.exit("enough")


def test_answers() -> None:
    assert pre_bound(Placed(lambda: unschedulable("no"))).message == "no"
    assert pre_bound(Placed(lambda: _later(unschedulable("late")))).message == "late"
    with pytest.raises(PluginError, match='PreBind plugin "Placed": RuntimeError: SystemExit: enough'):
        pre_bound(Placed(_ended))


def test_what_blocks_in_a_thread_is_not_slow() -> None:
    slow_points: list[str] = []

    class RecordingMetrics(PluginMetrics):
        def slow_call(self, plugin: str, point: str) -> None:
            slow_points.append(point)

    async def work(threads: PluginThreads) -> None:
        handle = Handle(threads=threads, metrics=RecordingMetrics(), slow_calls=SlowCalls(1e-12))
        framework = framework_of(Placed(), handle=handle)
        for ask in (framework.pre_bind, framework.bind, framework.post_bind):
            await ask(CycleState(), POD, "a")

    beside_loop(work)
    assert set(slow_points) == {"Bind"}


def test_calls_in_threads_are_measured() -> None:
    metrics, registry = Metrics(), default_registry()
    registry.register("Placed", lambda: Placed(lambda: Status(Code.ERROR, ("no",))))
    [profile] = enabled_everywhere(default_config(), Placed).profiles

    async def work(threads: PluginThreads) -> None:
        framework, cycle = (
            MetricsObserver(metrics).framework(profile, registry, Handle(threads=threads)),
            CycleState(),
        )
        cycle.is_sampled = True
        with pytest.raises(PluginError, match='running PreBind plugin "Placed": no'):
            await framework.pre_bind(cycle, POD, "a")

    beside_loop(work)
    assert ("Placed", "PreBind", "Error") in metrics.plugin_execution_duration.cells
    assert ("PreBind", "Error", "default-scheduler") in metrics.framework_extension_point_duration.cells


def test_simulations_call_one_after_the_other() -> None:
    class Asking(Placed):
        def __init__(self, handle: Handle) -> None:
            super().__init__(lambda: unschedulable(*handle.on_loop(lambda: handle.nodes().names)))

    registry = default_registry()
    made: list[Placed] = []
    registry.register("Placed", lambda handle: made.append(Asking(handle)) or made[0])
    config = enabled_everywhere(default_config(), Placed)
    cluster = SimulatedCluster([make_node("a")], config, registry)
    cluster.decide(make_pod("p"), CycleState())
    status = cluster.bind(make_pod("p"), "a", CycleState())
    assert (status.message, status.plugin) == ("a", "Placed")
    assert made[0].threads["pre_bind"] == threading.current_thread().name.partition("-")[0]


def test_the_loop_does_not_wait_for_itself() -> None:
    handle = Handle()
    assert handle.on_loop(lambda: 5) == 5
    with pytest.raises(WrongThreadError, match="nothing can wait here; make the method async, and await"):
        handle.on_loop(lambda: _later(5))


BLOCKED = """
import asyncio, threading
from moorage.framework.runtime.plugin_threads import PluginThreads

async def run():
    threads = PluginThreads(1)
    async with asyncio.TaskGroup() as tasks:
        threads.begin(tasks)
        entered = asyncio.Event()

        def block():
            threads.post(entered.set)
            threading.Event().wait()

        tasks.create_task(threads.called(block)())
        await entered.wait()
        asyncio.get_running_loop().call_soon(asyncio.current_task().cancel)
        await asyncio.sleep(0)

try:
    asyncio.run(run())
except asyncio.CancelledError:
    print("ended")
"""


def test_a_plugin_that_blocks_for_ever_does_not_keep_the_process() -> None:
    done = subprocess.run([sys.executable, "-c", BLOCKED], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ended\n", "")
