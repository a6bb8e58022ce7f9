"""Plugins that block the scheduler: detected call by call, with warnings at a limited rate.

While a plugin runs in the scheduling cycle, nothing else does: one that calls a web service there makes every
pod wait. The waits of an async plugin block nothing, so each interval between two of them is measured
separately.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Awaitable, Callable, Generator
from functools import wraps
from time import perf_counter
from typing import Any, Final

from moorage.framework.interface.status import point_name
from moorage.klog import Logger

SLOW_SECONDS: Final = 0.1
"""Duration above which a call is slow, in seconds."""
_QUIET_SECONDS: Final = 60.0
"""Minimum time between warnings about the same plugin at the same extension point, in seconds."""

OnSlowCall = Callable[[str, str], None]
"""Callback for slow calls: the plugin, and the extension point's name in metrics."""

log = Logger(__name__)


class SlowCalls:
    """Measures calls of plugins; none if `threshold_seconds` is zero."""

    def __init__(
        self, threshold_seconds: float = SLOW_SECONDS, now: Callable[[], float] = perf_counter
    ) -> None:
        self._threshold_seconds = threshold_seconds
        self._now = now
        self._warned: dict[tuple[str, str], float] = {}

    def watched(
        self, plugin: str, point: str, method: Callable[..., Any], on_slow_call: OnSlowCall
    ) -> Callable[..., Any]:
        """A plugin's method, wrapped to report slow calls."""
        if not self._threshold_seconds:
            return method
        now, name = self._now, point_name(point)

        def ended(began: float) -> None:
            seconds = now() - began
            if seconds > self._threshold_seconds:
                on_slow_call(plugin, name)
                self._warn(plugin, name, seconds)

        @wraps(method)
        def call(*arguments: Any) -> Any:
            began = now()
            try:
                answer = method(*arguments)
            finally:
                ended(began)
            return _stretches(answer, now, ended) if inspect.isawaitable(answer) else answer

        return call

    def _warn(self, plugin: str, point: str, seconds: float) -> None:
        now, last = self._now(), self._warned.get((plugin, point))
        if last is not None and now - last < _QUIET_SECONDS:
            return
        self._warned[plugin, point] = now
        message = "Plugin is slow; nothing else was scheduled meanwhile"
        log.warning(message, plugin=plugin, extensionPoint=point, milliseconds=round(seconds * 1000))


@types.coroutine
def _stretches(
    waiting: Awaitable[Any], now: Callable[[], float], ended: Callable[[float], None]
) -> Generator[Any, Any, Any]:
    """Await, measuring each interval of work between two waits."""
    work: Any = waiting.__await__()
    go_on, given = work.send, None
    while True:
        began = now()
        try:
            awaited = go_on(given)
        except StopIteration as end:
            return end.value
        finally:
            ended(began)
        try:
            go_on, given = work.send, (yield awaited)
        except BaseException as error:
            go_on, given = work.throw, error
