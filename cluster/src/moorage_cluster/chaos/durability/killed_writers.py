"""Processes that write, and are killed with SIGKILL after some acknowledged write or a moment after.

The files after a kill are opened by the next writer, which goes on. What it finds must be all that was
acknowledged, and at most one write more.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path
from random import Random
from time import sleep
from typing import Final

from moorage_cluster.apiserver.store import Store
from moorage_cluster.chaos.durability.report import Result
from moorage_cluster.chaos.durability.scratch import scratch_directory
from moorage_cluster.chaos.durability.writes import (
    FIRST_REVISION,
    Expected,
    Write,
    do,
    found_in,
    opened,
    planned,
)

_MAX_WRITES: Final = 150
"""Number of acknowledged writes after which a process is killed, at most."""
_MAX_SECONDS: Final = 0.002
"""How long after that, at most."""
_BIG_OBJECTS: Final = 12


def killed_writers(result: Result, seed: int, begin: int, end: int) -> None:
    """Kill as many writers as there are numbers in a range, one after another in the same directory."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    random = Random(f"killed writers {seed} {begin}")
    writes = list(planned(random.randrange(2**32), (end - begin) * _MAX_WRITES, _BIG_OBJECTS))
    expected = _all_states(writes)
    with scratch_directory() as directory:
        data = directory / "data"
        revision = FIRST_REVISION
        for number in range(begin, end):
            ahead = writes[revision - FIRST_REVISION :][: 2 * _MAX_WRITES]
            count = random.randrange(_MAX_WRITES)
            acknowledged = revision + _killed(context, data, ahead, count, random.random() * _MAX_SECONDS)
            found = found_in(data, expected)
            problem = found.problem or found.refusal
            if not problem and not acknowledged <= found.revision <= acknowledged + 1:
                problem = f"revision {found.revision} after {acknowledged} was acknowledged"
            result.add(
                "all there" if found.revision == acknowledged else "one more than acknowledged",
                seed,
                f"after the kill of writer {number}: {problem}" if problem else "",
            )
            if problem:
                return
            revision = found.revision


def _all_states(writes: Sequence[Write]) -> Expected:
    """The states that writes lead to, by a store without a journal."""
    expected, store = Expected(), Store(None, FIRST_REVISION)
    for write in writes:
        expected.add(write.id, do(store, write))
    return expected


def _killed(context: ForkServerContext, data: Path, writes: list[Write], count: int, seconds: float) -> int:
    """Kill a writer some time after a number of acknowledged writes; returns how many it had acknowledged."""
    answers, answer = context.Pipe(duplex=False)
    process = context.Process(target=write_all, args=(data, writes, answer), daemon=True)
    process.start()
    answer.close()
    acknowledged = 0
    try:
        while acknowledged < min(count, len(writes)):
            acknowledged = answers.recv()
        sleep(seconds)
        process.kill()
        while True:
            acknowledged = answers.recv()
    except EOFError:
        return acknowledged
    finally:
        process.kill()
        process.join()
        process.close()
        answers.close()


def write_all(data: Path, writes: Sequence[Write], answer: Connection) -> None:
    """Do writes, and say after each how many there were."""
    journal, store = opened(data)
    for number, write in enumerate(writes, 1):
        do(store, write)
        answer.send(number)
        if write.ends_life:
            journal.close()
            journal, store = opened(data)
    journal.close()
