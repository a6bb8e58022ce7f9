"""All checks of a data directory, cut into tasks for several processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Final

import msgspec

from moorage_cluster.chaos.durability.damage import damaged_files
from moorage_cluster.chaos.durability.disk_errors import disk_errors
from moorage_cluster.chaos.durability.killed_writers import killed_writers
from moorage_cluster.chaos.durability.kills import killed_at_boundaries
from moorage_cluster.chaos.durability.power import power_failures
from moorage_cluster.chaos.durability.recording import Recording
from moorage_cluster.chaos.durability.report import Result
from moorage_cluster.chaos.durability.served import killed_servers
from moorage_cluster.chaos.durability.writes import planned
from moorage_cluster.chaos.processes import in_processes

_BOUNDARIES_PER_TASK: Final = 100


class Scale(msgspec.Struct, frozen=True):
    """The size of a round."""

    writes: int = 320
    big_objects: int = 10
    """Objects whose deletion makes the next start compact the database."""
    writes_with_errors: int = 60
    damaged: int = 2_000
    killed: int = 1_000
    served: int = 100


class Task(msgspec.Struct, frozen=True):
    """Some cases of a check."""

    check: str
    seed: int
    begin: int
    end: int
    scale: Scale


class Check(msgspec.Struct, frozen=True):
    """One way to lose data."""

    summary: str
    cases: Callable[[Scale, int], int]
    """The number of cases at a scale with a seed."""
    cases_per_task: int
    run: Callable[[Result, Task], None]


@lru_cache(maxsize=1)
def _recording(seed: int, scale: Scale, *, is_synced: bool = False) -> Recording:
    return Recording(planned(seed, scale.writes, scale.big_objects), is_synced=is_synced)


def _boundaries(scale: Scale, seed: int) -> int:
    return len(_recording(seed, scale).operations) + 1


def _boundaries_with_syncs(scale: Scale, seed: int) -> int:
    return len(_recording(seed, scale, is_synced=True).operations) + 1


def _kill(result: Result, task: Task) -> None:
    killed_at_boundaries(result, _recording(task.seed, task.scale), task.seed, task.begin, task.end)


def _fail_power(result: Result, task: Task) -> None:
    power_failures(result, _recording(task.seed, task.scale), task.seed, task.begin, task.end)


def _fail_power_with_syncs(result: Result, task: Task) -> None:
    recording = _recording(task.seed, task.scale, is_synced=True)
    power_failures(result, recording, task.seed, task.begin, task.end)


def _operations_with_errors(scale: Scale, seed: int) -> int:
    return len(Recording(planned(seed, scale.writes_with_errors)).operations)


def _fail_disk(result: Result, task: Task) -> None:
    writes = list(planned(task.seed, task.scale.writes_with_errors))
    disk_errors(result, writes, task.seed, task.begin, task.end)


def _damage(result: Result, task: Task) -> None:
    damaged_files(result, _recording(task.seed, task.scale), task.seed, task.begin, task.end)


def _kill_writers(result: Result, task: Task) -> None:
    killed_writers(result, task.seed, task.begin, task.end)


def _kill_servers(result: Result, task: Task) -> None:
    killed_servers(result, task.seed, task.begin, task.end)


CHECKS: Final = {
    "kills": Check(
        "the process is killed after each operation on files", _boundaries, _BOUNDARIES_PER_TASK, _kill
    ),
    "power": Check(
        "the power fails after each operation on files", _boundaries, _BOUNDARIES_PER_TASK, _fail_power
    ),
    "power-sync": Check(
        "the power fails after each operation on files of a server with --sync",
        _boundaries_with_syncs,
        _BOUNDARIES_PER_TASK,
        _fail_power_with_syncs,
    ),
    "disk": Check(
        "each operation on files fails: disk full, I/O error", _operations_with_errors, 50, _fail_disk
    ),
    "damage": Check(
        "files are cut off, or have wrong bytes", lambda scale, seed: scale.damaged, 100, _damage
    ),
    "writers": Check(
        "a writing process is killed, and another goes on",
        lambda scale, seed: scale.killed,
        50,
        _kill_writers,
    ),
    "servers": Check(
        "a server is killed while clients write, read and watch over HTTPS",
        lambda scale, seed: scale.served,
        10,
        _kill_servers,
    ),
}


def tasks(checks: Sequence[str], first_seed: int, rounds: int, scale: Scale) -> Iterator[Task]:
    """The tasks of a campaign, round by round."""
    for seed in range(first_seed, first_seed + rounds):
        for name in checks:
            check = CHECKS[name]
            total = check.cases(scale, seed)
            for begin in range(0, total, check.cases_per_task):
                yield Task(name, seed, begin, min(begin + check.cases_per_task, total), scale)


def do(task: Task) -> Result:
    """The cases of a task."""
    result = Result(task.check)
    CHECKS[task.check].run(result, task)
    return result


def run_campaign(todo: Sequence[Task], processes: int) -> Iterator[Result]:
    """The results of tasks, as they end."""
    return in_processes(do, todo, processes)
