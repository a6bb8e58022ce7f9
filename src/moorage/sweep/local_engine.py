"""Tasks on this machine: processes that each run one task at a time.

Each process has a pipe of its own, so that if one is killed, it is known which task it ran.
"""

from __future__ import annotations

import multiprocessing
import signal
import tempfile
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing.connection import Connection, wait
from tempfile import TemporaryDirectory
from typing import Any, Final

from moorage.sweep.engine import TaskResults
from moorage.sweep.task import Contents, Task, TaskResult
from moorage.sweep.worker import run_task

_MAX_ATTEMPTS: Final = 2
"""Maximum number of processes that a task may cost."""


def _nothing() -> None:
    """Sets up nothing."""


class LocalEngine:
    """Runs tasks in processes of this machine."""

    def __init__(self, jobs: int, set_up: Callable[[], None] = _nothing) -> None:
        """set_up: called in each process at its start."""
        self._jobs = jobs
        self._set_up = set_up

    def run(self, tasks: Mapping[str, Task], contents: Contents) -> TaskResults:
        """The results of tasks."""
        waiting, attempts = deque(tasks), Counter[str]()
        idle: list[_Worker] = []
        busy: dict[Connection, _Worker] = {}
        with ExitStack() as at_end:
            folder = at_end.enter_context(TemporaryDirectory(prefix="moorage-"))
            while waiting or busy:
                while waiting and len(busy) < self._jobs:
                    worker = idle.pop() if idle else _Worker(at_end, (self._set_up, contents, folder))
                    busy[worker.connection] = worker
                    worker.begin(waiting[0], tasks[waiting.popleft()])
                for connection in wait(list(busy)):
                    assert isinstance(connection, Connection)
                    worker = busy.pop(connection)
                    result = worker.result()
                    if result is not None:
                        idle.append(worker)
                        yield worker.key, result
                        continue
                    attempts[worker.key] += 1
                    if attempts[worker.key] < _MAX_ATTEMPTS:
                        waiting.appendleft(worker.key)
                    else:
                        yield worker.key, TaskResult({}, f"its process died, {_MAX_ATTEMPTS} times")


class _Worker:
    """A process, and the task that it runs."""

    def __init__(self, at_end: ExitStack, arguments: tuple[Any, ...]) -> None:
        """at_end: what ends the process."""
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self.key = ""
        process = context.Process(target=_serve, args=(other, *arguments), daemon=True)
        with _without_interrupts():
            process.start()
        other.close()
        at_end.callback(self.connection.close)
        at_end.callback(process.join)
        at_end.callback(process.kill)

    def begin(self, key: str, task: Task) -> None:
        """Let it run a task."""
        self.key = key
        with suppress(OSError):  # If it is dead, that is noticed when its result is read.
            self.connection.send(task)

    def result(self) -> TaskResult | None:
        """The result of the task; None if the process is dead."""
        try:
            result: TaskResult = self.connection.recv()
        except (EOFError, OSError):
            return None
        return result


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Processes that are started here do not hear of Ctrl-C, which is for the one that they work for."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(connection: Connection, set_up: Callable[[], None], contents: Contents, folder: str) -> None:
    """Run the tasks that come, until no more can.

    folder: where temporary files are put, which remain if the process is killed.
    """
    tempfile.tempdir = folder
    set_up()
    with suppress(EOFError, OSError):
        while True:
            connection.send(run_task(connection.recv(), contents))
