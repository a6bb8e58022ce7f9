"""Nominations: pods that wait for resources on a node that preemption is freeing for them.

The live instance records the nodes it was changed for, so that a snapshot's replica is updated at the cost of
the changes.
"""

from __future__ import annotations

from collections.abc import Iterator

from moorage.api.pod import Pod
from moorage.cluster.pod_table import PodInfo


class Nominations:
    """Pods by the node they are nominated to; a pod has at most one nomination."""

    def __init__(self) -> None:
        self._node_of: dict[str, str] = {}
        self._on: dict[str, tuple[PodInfo, ...]] = {}
        self._changed: dict[str, None] = {}

    def put(self, pod: Pod, node_name: str, like: PodInfo | None = None) -> None:
        """Nominate a pod to a node; an empty name clears its nomination.

        like: an info of the same equivalence class, if there is one, whose computed values are reused.
        """
        uid = pod.uid
        if node_name and self._node_of.get(uid) == node_name:
            known = self._on[node_name][-1]
            is_same = known.pod.uid == uid and known.pod.labels == pod.labels
            if is_same and known.holds_but_for_labels(pod):
                known.pod = pod  # Nothing that scheduling reads has changed: no row changes.
                return
        self.remove(uid)
        if node_name:
            self._node_of[uid] = node_name
            info = PodInfo(pod) if like is None else like.renewed(pod)
            self._set(node_name, (*self.on(node_name), info))

    def remove(self, uid: str) -> None:
        """Remove a pod's nomination, if it has one."""
        name = self._node_of.pop(uid, None)
        if name is not None:
            self._set(name, tuple(info for info in self._on[name] if info.pod.uid != uid))

    def _set(self, node_name: str, pods: tuple[PodInfo, ...]) -> None:
        self._changed[node_name] = None
        if pods:
            self._on[node_name] = pods
        else:
            self._on.pop(node_name, None)

    def node_of(self, uid: str) -> str | None:
        """The node a pod is nominated to."""
        return self._node_of.get(uid)

    def on(self, node_name: str) -> tuple[PodInfo, ...]:
        """The pods nominated to a node."""
        return self._on.get(node_name, ())

    def items(self) -> Iterator[tuple[str, tuple[PodInfo, ...]]]:
        """The nominated nodes, with their pods."""
        return iter(self._on.items())

    def __len__(self) -> int:
        """Number of nominated nodes."""
        return len(self._on)

    def sync_from(self, source: Nominations) -> list[str]:
        """Become equal to `source`, of which this is the only replica; returns the changed nodes."""
        changed = list(source._changed)
        if not changed:
            return changed
        source._changed.clear()
        for name in changed:
            for info in self._on.pop(name, ()):
                self._node_of.pop(info.pod.uid, None)
        for name in changed:
            if pods := source.on(name):
                self._on[name] = pods
                self._node_of.update((info.pod.uid, name) for info in pods)
        return changed
