"""Tasks in several processes."""

from __future__ import annotations

import multiprocessing
import multiprocessing.process
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import islice
from threading import Thread
from typing import Final, TypeVar

_TASKS_AHEAD: Final = 2
"""Number of tasks of each process that are handed out at a time."""

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")


def in_processes(do: Callable[[_Task], _Result], tasks: Iterable[_Task], processes: int) -> Iterator[_Result]:
    """The results of tasks, as they end; with one process, in this one."""
    if processes == 1:
        yield from map(do, tasks)
        return
    todo = iter(tasks)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_leave_signals_to_parent) as pool:
        waiting: set[Future[_Result]] = set()
        try:
            while True:
                new = islice(todo, processes * _TASKS_AHEAD - len(waiting))
                waiting |= {pool.submit(do, task) for task in new}
                if not waiting:
                    return
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from (each.result() for each in done)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _leave_signals_to_parent() -> None:
    """The parent hears of an interrupt and ends its processes; they end by themselves when it is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None
    Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: multiprocessing.process.BaseProcess) -> None:
    parent.join()
    os._exit(0)
