"""Pods whose pre-bind plugins are at work: until those are done, a pod can be stopped without a trace."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")


class Stopped(Exception):  # noqa: N818 -- it says what happened
    """A pod was stopped before it was bound; the message says why."""


class Stoppable:
    """One pod's pre-bind work."""

    def __init__(self) -> None:
        self._reason: str | None = None
        self._task: asyncio.Task[Any] | None = None

    def stop(self, reason: str) -> None:
        """Cancel what runs now, and let nothing else begin."""
        if self._reason is None:
            self._reason = reason
            if self._task is not None:
                self._task.cancel()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do some of the work; Stopped if somebody stops the pod before it is done."""
        self._task = task = asyncio.ensure_future(work)
        try:
            result = await task
        except asyncio.CancelledError:
            if self._reason is None:
                task.cancel()
                raise  # The whole scheduler ends.
            raise Stopped(self._reason) from None
        finally:
            self._task = None
        if self._reason is not None:
            raise Stopped(self._reason)
        return result


class PreBinding:
    """All pods in pre-bind, by uid."""

    def __init__(self) -> None:
        self._pods: dict[str, Stoppable] = {}

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

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods
