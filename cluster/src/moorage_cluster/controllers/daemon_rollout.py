"""The next step of a DaemonSet's rolling update: which old pods to delete, and which nodes get new ones.

Without surge, old pods are deleted first, up to maxUnavailable, and new ones follow. With surge, new pods are
created first, up to maxSurge, and old ones are deleted when those are available.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from moorage.api.manifests import Manifest
from moorage_cluster.controllers.pods import is_deleted
from moorage_cluster.controllers.statuses import share


class Changes(NamedTuple):
    """Pods to delete, and nodes that need a pod."""

    delete: list[Manifest]
    create: list[str]


class OnNode(NamedTuple):
    """A set's pods on one node that are not terminating; neither if there are too many of a kind."""

    new: Manifest | None
    old: Manifest | None
    is_clear: bool


class Rollout(NamedTuple):
    """The current state of a rolling update."""

    pods_by_node: Mapping[str, list[Manifest]]
    is_new: Callable[[Manifest], bool]
    is_available: Callable[[Manifest], bool]
    runs_on: Callable[[str], bool]
    desired: int

    def _on(self, pods: list[Manifest]) -> OnNode:
        alive = [pod for pod in pods if not is_deleted(pod)]
        new = [pod for pod in alive if self.is_new(pod)]
        old = [pod for pod in alive if not self.is_new(pod)]
        if len(new) > 1 or len(old) > 1:
            return OnNode(None, None, False)
        return OnNode(new[0] if new else None, old[0] if old else None, True)

    def old_first(self, max_unavailable: int) -> Changes:
        """Old pods to delete: all unavailable ones, and others up to maxUnavailable."""
        unavailable = 0
        broken: list[Manifest] = []
        working: list[Manifest] = []
        for pods in self.pods_by_node.values():
            new, old, is_clear = self._on(pods)
            if not is_clear or (new is None) == (old is None):
                unavailable += 1
            elif new is not None:
                unavailable += not self.is_available(new)
            elif old is not None and not self.is_available(old):
                broken.append(old)
                unavailable += 1
            elif old is not None:
                working.append(old)
        return Changes([*broken, *working[: max(0, max_unavailable - unavailable)]], [])

    def new_first(self, max_surge: int) -> Changes:
        """Replaced old pods, and nodes for new ones: those without a working pod, others up to maxSurge."""
        surging = available = 0
        replaced: list[Manifest] = []
        misplaced: list[Manifest] = []
        broken: list[str] = []
        working: list[str] = []
        for node, pods in self.pods_by_node.items():
            new, old, is_clear = self._on(pods)
            if not is_clear:
                surging += 1
                continue
            serving = old or new
            works = serving is not None and self.is_available(serving)
            available += works
            if old is None:
                continue
            if new is not None:
                if self.is_available(new):
                    replaced.append(old)
                else:
                    surging += 1
            elif not self.runs_on(node):
                (misplaced if works else replaced).append(old)
            else:
                (working if works else broken).append(node)
        spare = max(0, available - self.desired)
        room = max(0, max_surge - surging)
        return Changes([*replaced, *misplaced[:spare]], [*broken, *working[:room]])


def limits(daemon_set: Manifest, desired: int) -> tuple[int, int]:
    """maxSurge and maxUnavailable as numbers of pods, for this number of desired pods."""
    strategy = (daemon_set["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    surge = share(strategy.get("maxSurge", 0), desired, round_up=True)
    unavailable = share(strategy.get("maxUnavailable", 0), desired, round_up=True)
    if desired > 0 and surge == 0 and unavailable == 0:
        unavailable = 1
    return surge, unavailable


def is_rolling(daemon_set: Manifest) -> bool:
    """Whether a set has the update strategy RollingUpdate."""
    strategy = daemon_set["spec"].get("updateStrategy") or {}
    return bool(strategy.get("type", "RollingUpdate") == "RollingUpdate")


def allows_surge(daemon_set: Manifest) -> bool:
    """Whether a set may have two pods on a node during an update."""
    return is_rolling(daemon_set) and limits(daemon_set, 1)[0] > 0
