"""Nominations: pods that wait for room on a node that is being freed for them."""

from __future__ import annotations

from collections.abc import Mapping

from moorage.api.pod import Pod
from moorage.cluster.pods import PodInfo


class Nominations:
    """Pods by the node they are nominated to; a pod has at most one nomination."""

    def __init__(self) -> None:
        self.version = 0
        self._node_of: dict[str, str] = {}
        self._on: dict[str, dict[str, PodInfo]] = {}

    def put(self, pod: Pod, node_name: str) -> None:
        """Nominate a pod to a node; an empty name clears its nomination."""
        self.remove(pod.uid)
        if node_name:
            self._node_of[pod.uid] = node_name
            self._on.setdefault(node_name, {})[pod.uid] = PodInfo(pod)
            self.version += 1

    def remove(self, uid: str) -> None:
        """Forget a pod's nomination, if it has one."""
        name = self._node_of.pop(uid, None)
        if name is not None:
            del self._on[name][uid]
            if not self._on[name]:
                del self._on[name]
            self.version += 1

    def node_of(self, uid: str) -> str | None:
        """The node a pod is nominated to."""
        return self._node_of.get(uid)

    def frozen(self) -> Mapping[str, tuple[PodInfo, ...]]:
        """A copy that does not move: the nominated pods by node name."""
        return {name: tuple(pods.values()) for name, pods in self._on.items()}
