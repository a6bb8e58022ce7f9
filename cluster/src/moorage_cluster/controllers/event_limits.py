"""Rate limits of events, by reporter and object.

A set with thousands of pods would otherwise write as many events as pods. As with Kubernetes' own components,
each reporter has a burst of 25 events for each object, and one more every five minutes.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

_BURST: Final = 25.0
_SECONDS_PER_EVENT: Final = 300.0
_MAX_OBJECTS: Final = 4096
"""Maximum number of remembered objects; the least recently used are dropped."""


class EventLimits:
    """Event budgets by reporter and object."""

    def __init__(self) -> None:
        self._left: OrderedDict[tuple[str, str], tuple[float, float]] = OrderedDict()

    def take(self, component: str, uid: str, now_seconds: float) -> bool:
        """Whether a reporter may write one more event about an object now."""
        key = (component, uid)
        left, since = self._left.pop(key, (_BURST, now_seconds))
        left = min(_BURST, left + (now_seconds - since) / _SECONDS_PER_EVENT)
        allowed = left >= 1
        self._left[key] = (left - 1 if allowed else left, now_seconds)
        if len(self._left) > _MAX_OBJECTS:
            self._left.popitem(last=False)
        return allowed
