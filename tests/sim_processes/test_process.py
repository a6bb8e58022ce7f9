"""Processes of this machine: short ones, which are waited for."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from moorage.clock import VirtualClock
from moorage_cluster.nodes.log_options import LogOptions
from moorage_cluster.nodes.workload import Ended, Probed, StartDelayed, Started
from moorage_cluster.processes.command import Command, CommandError
from moorage_cluster.processes.container_log import ContainerLog
from moorage_cluster.processes.container_process import ContainerContext, ContainerProcess
from moorage_cluster.processes.sweeping import Sweeper
from moorage_cluster.processes.tasks import Tasks
from tests.sim_processes.test_container_log import START

WAITS_WITHIN_SECONDS = 20
STUBBORN = "trap '' TERM; echo ready; sleep 1000 & wait; sleep 1000"
OBEDIENT = "trap 'echo bye; exit 7' TERM; echo ready; sleep 1000 & wait"


class Container:
    """A container that runs a shell command."""

    def __init__(self, sweeper: Sweeper, folder: Path, *words: str, **spec: Any) -> None:
        self.clock = VirtualClock()
        self.tasks = Tasks()
        self.log = ContainerLog(lambda: START)
        self.events: list[tuple[str, str, str]] = []
        self.problem = ""
        self._woken = asyncio.Event()
        self._command = Command(words, {"PATH": os.environ["PATH"]}, folder, str)
        context = ContainerContext(
            self.clock,
            self.tasks,
            sweeper,
            "127.0.0.1",
            30,
            self._woken.set,
            lambda *event: self.events.append(event),
        )
        self.process = ContainerProcess(context, {"name": "main", **spec}, self._make, lambda: self.log)

    async def _make(self) -> Command:
        if self.problem:
            raise CommandError(self.problem)
        return self._command

    async def reports(self, last: type) -> list[object]:
        """All reports up to one of a kind."""
        async with asyncio.timeout(WAITS_WITHIN_SECONDS):
            while not any(isinstance(each, last) for each in self.process.reports):
                self._woken.clear()
                await self._woken.wait()
        return list(self.process.reports)

    async def says(self, text: bytes) -> None:
        async with asyncio.timeout(WAITS_WITHIN_SECONDS):
            while text not in self.text:
                await self.log.changed.wait()

    @property
    def text(self) -> bytes:
        return self.log.read(LogOptions())


def run_in(folder: Path, scenario: Callable[[Sweeper], Awaitable[None]]) -> None:
    async def run() -> None:
        sweeper = Sweeper()
        try:
            await scenario(sweeper)
        finally:
            await sweeper.close()
        assert not sweeper.folder.exists()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("command", "code", "reason"),
    [("echo out; echo err >&2", 0, "Completed"), ("exit 3", 3, "Error"), ("kill -9 $$", 137, "Error")],
)
def test_a_process_reports_its_end(command: str, code: int, reason: str, tmp_path: Path) -> None:
    async def scenario(sweeper: Sweeper) -> None:
        container = Container(sweeper, tmp_path, "sh", "-c", command)
        started, *_, ended = await container.reports(Ended)
        assert (started, ended) == (Started(0.0), Ended(0.0, code, reason))
        assert container.text == (b"out\nerr\n" if "echo" in command else b"")
        assert container.log.is_closed

    run_in(tmp_path, scenario)


def test_a_process_that_is_asked_to_end_may_do_so(tmp_path: Path) -> None:
    async def scenario(sweeper: Sweeper) -> None:
        container = Container(sweeper, tmp_path, "sh", "-c", OBEDIENT)
        await container.says(b"ready")
        container.process.stop(30)
        assert (await container.reports(Ended))[-1] == Ended(0.0, 7, "Error")
        assert container.text == b"ready\nbye\n"

    run_in(tmp_path, scenario)


def test_a_process_that_does_not_end_is_killed_after_its_grace_period(tmp_path: Path) -> None:
    async def scenario(sweeper: Sweeper) -> None:
        container = Container(sweeper, tmp_path, "sh", "-c", STUBBORN)
        await container.says(b"ready")
        container.process.stop(30)
        container.clock.advance(29)
        # Asking once more does not make it longer.
        container.process.stop(30)
        assert not any(isinstance(each, Ended) for each in container.process.reports)
        container.clock.advance(1)
        assert (await container.reports(Ended))[-1] == Ended(30.0, 137, "Error")

    run_in(tmp_path, scenario)


def test_a_process_that_is_discarded_reports_nothing(tmp_path: Path) -> None:
    async def scenario(sweeper: Sweeper) -> None:
        container = Container(sweeper, tmp_path, "sh", "-c", STUBBORN)
        await container.says(b"ready")
        container.process.discard(0)
        container.clock.advance(0)
        await container.process.task
        assert not any(isinstance(each, Ended) for each in container.process.reports)

    run_in(tmp_path, scenario)


def test_what_a_process_has_started_ends_with_it(tmp_path: Path) -> None:
    async def scenario(sweeper: Sweeper) -> None:
        container = Container(sweeper, tmp_path, "sh", "-c", "sleep 1000 & echo $!")
        await container.reports(Ended)
        await _gone(int(container.text))

    run_in(tmp_path, scenario)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("/no/such/program",), 'exec: "/no/such/program": no such file or directory'),
        (("embedded\0null",), "embedded null byte"),
    ],
)
def test_a_command_that_cannot_be_started(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    async def scenario(sweeper: Sweeper) -> None:
        container = Container(sweeper, tmp_path, *words)
        assert await container.reports(Ended) == [Ended(0.0, 128, "StartError", message)]

    run_in(tmp_path, scenario)


def test_a_container_waits_for_what_its_command_needs(tmp_path: Path) -> None:
    async def scenario(sweeper: Sweeper) -> None:
        container = Container(sweeper, tmp_path, "true")
        container.problem = 'configmap "x" not found'
        (delayed,) = await container.reports(StartDelayed)
        assert delayed == StartDelayed(0.0, "CreateContainerConfigError", container.problem)
        assert container.events == [("Warning", "Failed", 'Error: configmap "x" not found')]
        container.process.stop(30)
        await container.process.task

    run_in(tmp_path, scenario)


def test_a_container_that_fails_its_liveness_probe_is_ended(tmp_path: Path) -> None:
    async def scenario(sweeper: Sweeper) -> None:
        probe = {
            "exec": {"command": ["sh", "-c", "echo no; exit 1"]},
            "failureThreshold": 1,
            "timeoutSeconds": 60,
        }
        container = Container(sweeper, tmp_path, "sh", "-c", OBEDIENT, livenessProbe=probe)
        await container.says(b"ready")
        # The first probe may have come before the trap was set.
        assert isinstance((await container.reports(Ended))[-1], Ended)
        assert container.events == [
            ("Warning", "Unhealthy", "Liveness probe failed: no\n"),
            ("Normal", "Killing", "Container main failed liveness probe, will be restarted"),
        ]
        assert Probed(0.0, is_started=True, is_ready=True) in container.process.reports

    run_in(tmp_path, scenario)


def test_the_last_output_may_be_the_message(tmp_path: Path) -> None:
    async def scenario(sweeper: Sweeper) -> None:
        policy = {"terminationMessagePolicy": "FallbackToLogsOnError"}
        container = Container(sweeper, tmp_path, "sh", "-c", "echo why; exit 1", **policy)
        assert (await container.reports(Ended))[-1] == Ended(0.0, 1, "Error", "why\n")

    run_in(tmp_path, scenario)


async def _gone(pid: int) -> None:
    """Returns once a process has ended, which need not be one of ours."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(watched, ended.set)
    try:
        async with asyncio.timeout(WAITS_WITHIN_SECONDS):
            await ended.wait()
    finally:
        loop.remove_reader(watched)
        os.close(watched)


def test_moorage_is_this_very_program(tmp_path: Path) -> None:
    async def run() -> tuple[int, bytes]:
        return await Command(["moorage", "--version"], {"PATH": ""}, tmp_path, str).run()

    code, output = asyncio.run(run())
    assert (code, output.startswith(b"moorage ")) == (0, True), (sys.executable, output)
