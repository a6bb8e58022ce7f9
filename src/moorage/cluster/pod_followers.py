"""Those that are told of every pod that comes to a node or leaves it."""

from __future__ import annotations

import weakref
from typing import Protocol

from moorage.cluster.pod_table import PodInfo
from moorage.klog import Logger, kobj

log = Logger(__name__)


class PodFollower(Protocol):
    """Follows the pods on nodes."""

    def pod_moved(self, info: PodInfo, count: int) -> None:
        """A pod came to a node, assumed or seen there (1), or left it (-1); a pod that changes does both."""


class PodFollowers:
    """Followers, none of which is kept alive: one that nothing else needs is told no more."""

    def __init__(self) -> None:
        self._followers: tuple[weakref.ref[PodFollower], ...] = ()

    def add(self, follower: PodFollower) -> None:
        """Tell an object from now on."""
        self._followers = (*self._followers, weakref.ref(follower, self._drop))

    def _drop(self, gone: weakref.ref[PodFollower]) -> None:
        self._followers = tuple(each for each in self._followers if each is not gone)

    def __len__(self) -> int:
        return len(self._followers)

    def moved(self, info: PodInfo, count: int) -> None:
        """Tell all of them of a pod. What one raises is logged: the cluster state must not depend on it."""
        for reference in self._followers:
            follower = reference()
            if follower is not None:
                try:
                    follower.pod_moved(info, count)
                except Exception as error:
                    log.error(error, "A plugin failed to follow a pod", pod=kobj(info.pod))
