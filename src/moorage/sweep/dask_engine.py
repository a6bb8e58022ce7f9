"""Tasks on a Dask cluster that is there: it needs moorage, in the same version, and no files.

A file's contents are one piece of data on the cluster, which tasks depend on: it is sent once, and made again
where a worker that has it dies. Tasks of dead workers run again elsewhere, until the scheduler gives one up
that has lost too many (`distributed.scheduler.allowed-failures`). It counts a dead worker against all tasks
that were assigned to it, so only a few are under way at any time.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Mapping
from importlib import import_module
from itertools import islice
from typing import Any, Final

from moorage.api.decode import InputError
from moorage.config.problems import one_line
from moorage.sweep.engine import EngineError, TaskResults
from moorage.sweep.remote import kept, run_pickled
from moorage.sweep.task import Contents, Task, TaskResult
from moorage.version import __version__, running_version

SCHEME: Final = "dask://"
_CONNECT_SECONDS: Final = 10
"""Maximum time in which the scheduler has to answer, in seconds."""
_TASKS_PER_THREAD: Final = 2
"""Number of tasks under way for each thread of workers: one that runs, and one that is next."""
_MIN_UNDER_WAY: Final = 4
"""Minimum number of tasks under way: workers may come."""


def _distributed() -> Any:
    """Dask's library; InputError if it is not installed."""
    try:
        return import_module("distributed")
    except ImportError:
        raise InputError(SCHEME, "distributed is not installed; pip install 'moorage[dask]'") from None


class DaskEngine:
    """Runs tasks on a Dask cluster."""

    def __init__(self, address: str) -> None:
        """address: `dask://HOST:PORT` of the scheduler."""
        self._address = address

    def run(self, tasks: Mapping[str, Task], contents: Contents) -> TaskResults:
        """The results of tasks."""
        with self._connected() as client:
            self._check_versions(client)
            yield from _Tasks(client, tasks, contents).results()

    def _connected(self) -> Any:
        distributed = _distributed()
        address = f"tcp://{self._address.removeprefix(SCHEME)}"
        try:
            return distributed.Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError):
            raise InputError(self._address, "no Dask scheduler answers there") from None

    def _check_versions(self, client: Any) -> None:
        """InputError if a worker has no moorage, or another version of it."""
        try:
            versions = client.run(running_version)
        except Exception as error:  # It is Dask that says, in its own way, that moorage cannot be imported.
            raise InputError(self._address, f"a worker cannot run moorage: {one_line(str(error))}") from None
        for worker, version in versions.items():
            if version != __version__:
                reason = f"the worker {worker} has moorage {version}, and this is {__version__}"
                raise InputError(self._address, reason)


class _Tasks:
    """The tasks of a sweep on a cluster."""

    def __init__(self, client: Any, tasks: Mapping[str, Task], contents: Contents) -> None:
        self._client = client
        self._tasks = tasks
        self._contents = contents
        self._sent: dict[str, Any] = {}
        """Futures of contents, by digest."""

    def results(self) -> TaskResults:
        """The results as they come."""
        completed = _distributed().as_completed(loop=self._client.loop)
        waiting, keys = iter(self._tasks), dict[Any, str]()
        while True:
            for key in islice(waiting, max(self._most_under_way() - len(keys), 0)):
                future = self._submitted(key)
                keys[future] = key
                completed.add(future)
            if not keys:
                return
            future = next(completed)
            yield keys.pop(future), _result(future)

    def _most_under_way(self) -> int:
        threads = sum(self._client.nthreads().values())
        return max(_TASKS_PER_THREAD * int(threads), _MIN_UNDER_WAY)

    def _submitted(self, key: str) -> Any:
        task = self._tasks[key]
        digests = task.digests()
        for digest in digests:
            if digest not in self._sent:
                self._sent[digest] = self._send(digest)
        contents = [self._sent[digest] for digest in digests]
        pickled = pickle.dumps(task)
        return self._client.submit(run_pickled, pickled, digests, contents, key=f"moorage-task-{key}")

    def _send(self, digest: str) -> Any:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph")
            return self._client.submit(kept, self._contents[digest], key=f"moorage-file-{digest}")


def _result(future: Any) -> TaskResult:
    """The result of a future; EngineError if the scheduler is gone."""
    distributed = _distributed()
    try:
        result: TaskResult = future.result()
    except distributed.CancelledError:
        raise EngineError("the connection to the Dask scheduler is lost") from None
    except Exception as error:  # Workers died of it, or cannot load it; Dask says so in its own ways.
        return TaskResult({}, f"{type(error).__name__}: {one_line(str(error))}")
    return result
