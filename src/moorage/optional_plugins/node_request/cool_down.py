"""Pods for which a node has come: they ask for no other one for some time, each time twice as long.

A pod that does not fit on the node that was made for it would otherwise ask for one node after another.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from moorage import Pod

_MAX_SECONDS: Final = 3600.0
_MAX_PODS: Final = 10_000
"""Number of pods that are remembered; of more, the oldest are forgotten."""


class CoolDown:
    """Until when each pod asks for no node."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._pods: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """By uid, the pause of each pod, and when it ends."""

    def begin(self, pods: Iterable[Pod], now: float) -> None:
        """A node has come for some pods."""
        for pod in pods:
            before, _ = self._pods.pop(pod.uid, (self._seconds / 2, 0.0))
            pause = min(2 * before, max(_MAX_SECONDS, self._seconds))
            self._pods[pod.uid] = pause, now + pause
        while len(self._pods) > _MAX_PODS:
            self._pods.popitem(last=False)

    def end(self, pods: Iterable[Pod], now: float) -> float | None:
        """When the last of some pods may ask again; None: all may."""
        ends = (self._pods[pod.uid][1] for pod in pods if pod.uid in self._pods)
        return max((end for end in ends if end > now), default=None)
