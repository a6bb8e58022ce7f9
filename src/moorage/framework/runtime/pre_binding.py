"""Pre-bind: which plugins have work for a pod, which may run at the same time, and how a pod is stopped.

Until its pre-bind plugins are done, a pod can be stopped without effect. Plugins run in their order, but
neighbours that allow it (`PreFlight.in_parallel`) run together: volumes are bound while devices get ready.
The first that fails ends the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from moorage.api.pod import Pod
from moorage.framework.interface.cycle_state import CycleState, StateKey
from moorage.framework.interface.extension_points import PreFlight
from moorage.framework.interface.status import SUCCESS, Code, PluginError, Status
from moorage.framework.runtime.plugin_call import PluginCall

_IN_PARALLEL: Final[StateKey[set[str]]] = StateKey("pre-bind plugins that allow others beside them")
_OTHER_FAILED: Final = "some other PreBind operation failed"
_UNSUPPORTED: Final = (
    'PreBindPreFlight {plugin} returned "{reason}", which is unsupported. '
    "It is supposed to return Success, Skip, or Error status"
)


def ask_pre_flights(calls: Sequence[PluginCall], cycle: CycleState, pod: Pod, node_name: str) -> None:
    """Determine which pre-bind plugins are left out, and which may run together."""
    for call in calls:
        answer = call(cycle, pod, node_name)
        if isinstance(answer, PreFlight):
            if answer.in_parallel:
                cycle.read_or(_IN_PARALLEL, set).add(call.plugin)
            answer = answer.status
        if isinstance(answer, Status) and answer.code is Code.SKIP:
            cycle.skip_pre_bind.add(call.plugin)
            continue
        status = call.as_status(answer)
        if status is not None:
            raise PluginError(call.plugin, call.point, status.code.value, _UNSUPPORTED)


def _groups(calls: Sequence[PluginCall], cycle: CycleState) -> Iterator[list[PluginCall]]:
    """The plugins that have something to do, in order, those that may run together in one group."""
    in_parallel = cycle.read(_IN_PARALLEL) or ()
    group: list[PluginCall] = []
    for call in calls:
        is_called = call.plugin not in cycle.skip_pre_bind
        if call.plugin in in_parallel:
            if is_called:
                group.append(call)
            continue
        if group:
            yield group
            group = []
        if is_called:
            yield [call]
    if group:
        yield group


class Stoppable:
    """One pod's pre-bind work."""

    def __init__(self) -> None:
        self._reason: str | None = None
        self._running: dict[asyncio.Task[Any], PluginCall] = {}

    @property
    def running(self) -> int:
        """Number of running plugins."""
        return len(self._running)

    @property
    def is_stopped(self) -> bool:
        """Whether the work has been stopped."""
        return self._reason is not None

    def stop(self, reason: str) -> None:
        """Cancel the running plugins, and start no others."""
        if self._reason is None:
            self._reason = reason
            self._cancel()

    def _cancel(self) -> None:
        for task in self._running:
            task.cancel()

    async def run(self, calls: Sequence[PluginCall], cycle: CycleState, pod: Pod, node_name: str) -> Status:
        """Run plugins up to the first that does not succeed; PluginError if one fails, or is stopped."""
        for group in _groups(calls, cycle):
            failure = await self._run_group(group, cycle, pod, node_name)
            if failure is not None:
                return failure
        return SUCCESS

    async def _run_group(self, group: Sequence[PluginCall], *arguments: Any) -> Status | None:
        """Run plugins at the same time; the first failure, which ends those that still run, or None."""
        if self._reason is not None:
            raise group[0].failed(self._reason)
        self._running = {asyncio.ensure_future(call.waited(*arguments)): call for call in group}
        failure: Status | PluginError | None = None
        try:
            while self._running:
                done, _ = await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
                for task in [task for task in self._running if task in done]:
                    outcome = self._outcome(self._running.pop(task), task)
                    if outcome is not None and failure is None:
                        failure = outcome
                        self._cancel()
        except asyncio.CancelledError:
            self._cancel()
            raise  # The scheduler shuts down.
        if isinstance(failure, PluginError):
            raise failure
        return failure

    def _outcome(self, call: PluginCall, task: asyncio.Task[Any]) -> Status | PluginError | None:
        """The failure of a plugin that is done, or None."""
        if task.cancelled():
            return call.failed(self._reason or _OTHER_FAILED)
        error = task.exception()
        if self._reason is not None:
            return call.failed(self._reason)
        if error is not None:
            return error if isinstance(error, PluginError) else call.failed(str(error))
        try:
            status = call.as_status(task.result(), also=Code.SKIP)
        except PluginError as wrong:
            return wrong
        return status if status is not None and status.refused else None


class PreBinding:
    """All pods in pre-bind, by uid."""

    def __init__(self) -> None:
        self._pods: dict[str, Stoppable] = {}

    @property
    def running(self) -> int:
        """Number of running plugins, for all pods."""
        return sum(stoppable.running for stoppable in self._pods.values())

    @contextmanager
    def of(self, uid: str) -> Iterator[Stoppable]:
        """While this is entered, the pod can be stopped."""
        stoppable = self._pods[uid] = Stoppable()
        try:
            yield stoppable
        finally:
            del self._pods[uid]

    def stop(self, uid: str, reason: str) -> bool:
        """Stop a pod; False if it is not, or no longer, in pre-bind."""
        stoppable = self._pods.get(uid)
        if stoppable is None:
            return False
        stoppable.stop(reason)
        return True

    def is_stopped(self, uid: str) -> bool:
        """Whether a pod in pre-bind has been stopped: further work for it is useless. Safe in threads."""
        stoppable = self._pods.get(uid)
        return stoppable is not None and stoppable.is_stopped

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods
