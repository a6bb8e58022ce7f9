"""Pods and groups that are tried again at a certain time."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import Final

from moorage import Handle, Pod, microseconds
from moorage.optional_plugins.preemption_toleration.tolerations import SECOND

_MARGIN_SECONDS: Final = 0.05
"""How much later a retry is than the end of a toleration: timers and the wall clock are not quite equal."""
_MIN_PAUSE_SECONDS: Final = 1.0
_MAX_PAUSE_SECONDS: Final = 10.0
_PAUSE_BY_AGE: Final = 0.1
"""The least pause between two tries, as a share of the pod's age: many may wait long for the same room."""
MAX_WAITING: Final = 10_000
"""Number of pods and groups that have a timer; of more, those that have waited longest lose theirs."""


class Retries:
    """One timer for each pod or group: the one that was set last. Simulations without a queue have none."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._cancels: dict[Hashable, Callable[[], None]] = {}
        waiting = "Number of pods and groups that are tried again when a toleration of preemption ends."
        self._waiting = handle.metrics.gauge("moorage_preemption_toleration_waiting", waiting).labels()
        retried = "Number of pods and groups that were tried again because a toleration of preemption ended."
        self._retried = handle.metrics.counter(
            "moorage_preemption_toleration_retries_total", retried
        ).labels()

    def put(self, name: Hashable, pod: Pod, end: int, activate: Callable[[], None]) -> None:
        """Activate a pod, or the group that it is one of, at the end of a toleration (in microseconds)."""
        self.remove(name)
        if not self._handle.is_live:
            return
        if len(self._cancels) >= MAX_WAITING:
            self.remove(next(iter(self._cancels)))
        now = microseconds(self._handle.clock.utc_now())
        seconds = max((end - now) / SECOND + _MARGIN_SECONDS, _pause_seconds(pod, now))
        timer = self._handle.clock.call_later(seconds, partial(self._due, name, activate))
        self._cancels[name] = timer.cancel
        self._waiting.inc()

    def remove(self, name: Hashable) -> None:
        """Do not activate a pod or group any more."""
        if (cancel := self._cancels.pop(name, None)) is not None:
            cancel()
            self._waiting.inc(-1)

    def _due(self, name: Hashable, activate: Callable[[], None]) -> None:
        del self._cancels[name]
        self._waiting.inc(-1)
        self._retried.inc()
        activate()


def _pause_seconds(pod: Pod, now: int) -> float:
    """The least time until a pod is tried again: a tenth of its age, within bounds."""
    created = pod.metadata.creation_timestamp
    age_seconds = 0.0 if created is None else (now - microseconds(created)) / SECOND
    return min(max(_PAUSE_BY_AGE * age_seconds, _MIN_PAUSE_SECONDS), _MAX_PAUSE_SECONDS)
