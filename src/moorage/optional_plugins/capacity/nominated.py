"""Pods that wait for room on a node: how many there are of those that count alike, kept up to date.

They count for their quota before they are on a node. There may be thousands of them, so that they are not
looked at one by one: only those of nodes that have changed are read again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from moorage import Nodes, PodInfo, RowReader
from moorage.optional_plugins.capacity.requests import request_of


class Waiting(NamedTuple):
    """What pods that count alike have in common. request: by resource, in order."""

    namespace: str
    priority: int
    request: tuple[tuple[str, int], ...]


class NominatedPods:
    """The pods that are nominated to nodes that there are, and that are on none yet."""

    def __init__(self) -> None:
        self._by_node: dict[str, list[Waiting]] = {}
        self._counts: Counter[Waiting] = Counter()
        self._reader = RowReader()

    def follow(self, nodes: Nodes, moved: Iterable[PodInfo]) -> None:
        """Know the nominations of a snapshot. moved: the pods that came to nodes and went since then."""
        snapshot = nodes.snapshot
        nominated = snapshot.nominated
        rows = self._reader.new_rows(snapshot, snapshot.changes)
        if len(nominated) or self._by_node:
            if rows is None:
                names = {*self._by_node, *(name for name, _ in nominated.items())}
            else:
                of_moved = {nominated.node_of(info.pod.uid) for info in moved}
                names = {*(snapshot.names[row] for row in rows), *filter(None, of_moved)}
            for name in names:
                self._read(name, nodes)

    def _read(self, name: str, nodes: Nodes) -> None:
        """Read the nominations to a node again."""
        snapshot = nodes.snapshot
        self._counts.subtract(self._by_node.pop(name, ()))
        if name not in snapshot.row_of:
            return
        infos = [info for info in snapshot.nominated.on(name) if info.pod.uid not in snapshot.pods]
        if infos:
            self._by_node[name] = [_waiting(info, nodes) for info in infos]
            self._counts.update(self._by_node[name])

    def groups(self, nodes: Nodes, but: Collection[str]) -> Iterator[tuple[Waiting, int]]:
        """Those that count alike, and how many they are. but: the uids of pods that do not count."""
        if not self._by_node:
            return
        left_out: Counter[Waiting] = Counter()
        nominated, pods = nodes.snapshot.nominated, nodes.snapshot.pods
        for uid in but:
            name = nominated.node_of(uid)
            if name in self._by_node and uid not in pods:
                own = (info for info in nominated.on(name) if info.pod.uid == uid)
                left_out.update(_waiting(info, nodes) for info in own)
        for waiting, count in self._counts.items():
            if count > left_out[waiting]:
                yield waiting, count - left_out[waiting]


def _waiting(info: PodInfo, nodes: Nodes) -> Waiting:
    request = request_of(info, nodes.objects)
    return Waiting(info.pod.namespace, info.priority, tuple(sorted(request.items())))
