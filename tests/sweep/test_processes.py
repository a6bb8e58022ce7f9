"""Sweeps as processes: a Dask cluster whose workers die, and Ctrl-C.

What ends processes is a plugin of the study, in the middle of simulations: no test depends on time.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.sweep.studies import study, written

WORKERS, DEATHS = 3, 2
_LOOPBACK = ["--host", "127.0.0.1", "--no-dashboard", "--dashboard-address", "127.0.0.1:0"]
_ENDING = """
import os
import signal
from pathlib import Path


class Ending:
    name = "Ending"
    calls = 0

    def filter(self, cycle, pod, nodes):
        Ending.calls += 1
        if Ending.calls == 5:
            self._end()
        return nodes.label("kubernetes.io/hostname").exists().otherwise("no name")

    def _end(self):
        for token in sorted(Path({folder!r}).glob("token-*")):
            try:
                token.unlink()
            except FileNotFoundError:
                continue
            os.kill(os.{process}(), signal.{signal})
            return
"""


class Process:
    """A part of a Dask cluster, with the lines that it writes."""

    def __init__(self, stack: ExitStack, folder: Path, module: str, *words: str) -> None:
        command = [sys.executable, "-m", f"distributed.cli.{module}", *_LOOPBACK, *words]
        self.process = stack.enter_context(
            subprocess.Popen(
                command, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
            )
        )
        stack.callback(self.process.kill)

    def says(self, text: str) -> str:
        """What follows a text in the first line that has it."""
        assert self.process.stderr is not None
        said = []
        for line in self.process.stderr:
            said.append(line)
            if text in line:
                return line.partition(text)[2].strip()
        raise AssertionError("".join(said))


class Cluster:
    """A Dask scheduler and workers, each a process of its own, in an empty folder."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self.scheduler = Process(stack, folder, "dask_scheduler", "--port", "0")
        tcp = self.scheduler.says("Scheduler at:")
        words = (tcp, "--no-nanny", "--nthreads", "1", "--local-directory", str(folder))
        self.workers = [Process(stack, folder, "dask_worker", *words) for _ in range(WORKERS)]
        for worker in self.workers:
            worker.says("Registered to:")
        self.address = tcp.replace("tcp://", "dask://")


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with ExitStack() as stack:
        yield Cluster(stack, tmp_path_factory.mktemp("dask"))


def sweep(*words: str, status: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "moorage", "sweep", *words]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == status, ended.stderr
    return ended


def ending_study(folder: Path, tokens: int, **how: str) -> str:
    """A study with a file of pods, and a plugin that sends a signal for each token that is there."""
    (folder / "pods.csv").write_text(
        "".join(["arrival,duration,cpu\n", *(f"{10 * at},60,3\n" for at in range(9))])
    )
    (folder / "ending.py").write_text(_ENDING.format(folder=str(folder), **how))
    for number in range(tokens):
        (folder / f"token-{number}").touch()
    scenario: dict[str, Any] = {**study()["scenarios"][0], "workload": {"files": ["pods.csv"]}}
    configurations = [{"name": "ending", "plugins": ["ending.py"]}, {"name": "default"}]
    return str(written(folder, study(configurations=configurations, scenarios=[scenario], seeds=4)))


def test_dask_with_workers_that_are_killed_has_the_table_of_one_core(
    tmp_path: Path, cluster: Cluster
) -> None:
    file = ending_study(tmp_path, DEATHS, process="getpid", signal="SIGKILL")
    there = sweep(file, "--on", cluster.address, "-o", "json", status=0)
    deaths = [each.process.wait() for each in cluster.workers if each.process.poll() is not None]
    assert deaths == [-signal.SIGKILL] * DEATHS
    assert list(tmp_path.glob("token-*")) == []
    here = sweep(file, "--jobs", "1", "-o", "json", "--results", str(tmp_path / "here.jsonl"), status=0)
    assert there.stdout == here.stdout
    assert len((tmp_path / "here.jsonl").read_text().splitlines()) == 8


def test_an_interrupted_sweep_says_so_and_goes_on(tmp_path: Path) -> None:
    file = ending_study(tmp_path, 1, process="getppid", signal="SIGINT")
    ended = sweep(file, "--jobs", "1", status=130)
    assert "moorage sweep: interrupted; results so far are in " in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "of 4" in ended.stdout
    resumed = sweep(file, "--jobs", "1", status=0)
    assert "of 4" not in resumed.stdout
