"""The cache's entry of one node: the node itself and the sums of its pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from moorage.api.node import Node
from moorage.cluster.columns import V
from moorage.cluster.host_ports import HostPort
from moorage.cluster.pod_table import Disk, PodInfo
from moorage.cluster.pods_on_node import PodsOnNode

_MAX_MOVES: Final = 1024
"""Maximum number of moves kept until the next snapshot; with more, all pods of the node are written again."""


class NodeEntry:
    """A node and its pods. Pods may be added before their node: then `node` is None."""

    __slots__ = (
        "claims",
        "disks",
        "has_departures",
        "moves",
        "name",
        "node",
        "pods",
        "ports",
        "requested",
        "scoring_cpu_milli",
        "scoring_memory",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.node: Node | None = None
        self.pods = PodsOnNode()
        self.moves: list[tuple[str, PodInfo, bool]] | None = None
        """The pods added (True) and removed (False) since the last snapshot, by uid and in order.

        None: not known.
        """
        self.has_departures = True
        """Whether pods may have been removed since the last snapshot."""
        self.requested: Mapping[str, int] = {}
        """What the pods request; replaced, not changed: the snapshot keeps it until it is written again."""
        self.scoring_cpu_milli = 0
        self.scoring_memory = 0
        self.ports: dict[HostPort, int] = {}
        self.claims: dict[str, int] = {}
        self.disks: dict[Disk, int] = {}

    def add(self, uid: str, info: PodInfo) -> None:
        """Add a pod."""
        self.pods.append(uid, info)
        self._count((info,), 1)
        self._note(uid, info, True)

    def extend(self, uids: Sequence[str], infos: Sequence[PodInfo]) -> None:
        """Add pods; their sums are computed once."""
        self.pods.extend(uids, infos)
        self._count(infos, 1)
        for uid, info in zip(uids, infos, strict=True) if self.moves is not None else ():
            self._note(uid, info, True)

    def remove(self, uid: str) -> PodInfo:
        """Remove a pod and return it."""
        info = self.pods.remove(uid)
        self._count((info,), -1)
        self._note(uid, info, False)
        self.has_departures = True
        return info

    def reorder(self, uids: Sequence[str]) -> None:
        """Change the order of the pods, which are the same."""
        self.pods.reorder(uids)
        self.forget_moves()

    def relabel(self, uid: str, info: PodInfo) -> None:
        """Replace a pod by a version that differs in labels only."""
        self._note(uid, self.pods.renew(uid, info), False)
        self._note(uid, info, True)

    def has_same_load(self) -> bool:
        """Whether the pods are those of the last snapshot, but for their order and labels.

        A group's cycle forgets its members at its end, and those that get nodes are assumed there again.
        """
        if self.moves is None:
            return False
        moved: dict[str, PodInfo] = {}
        for uid, info, is_added in self.moves:
            if is_added == (uid not in moved) or info.holds:
                return False
            if not is_added:
                moved[uid] = info
            elif moved.pop(uid).load is not info.load:
                return False
        return not moved

    def written(self) -> None:
        """The snapshot has the node's pods as they are now."""
        self.moves = []
        self.has_departures = False

    def forget_moves(self) -> None:
        """Have all pods of the node written to the next snapshot."""
        self.moves = None
        self.has_departures = True

    def _note(self, uid: str, info: PodInfo, is_added: bool) -> None:
        if self.moves is not None:
            self.moves.append((uid, info, is_added))
            if len(self.moves) > _MAX_MOVES:
                self.forget_moves()

    def _count(self, infos: Iterable[PodInfo], sign: int) -> None:
        requested = dict(self.requested)
        for info in infos:
            load = info.load
            for name, amount in load.amounts.items():
                total = requested.get(name, 0) + sign * amount
                if total:
                    requested[name] = total
                else:
                    requested.pop(name, None)
            self.scoring_cpu_milli += sign * load.scoring_cpu_milli
            self.scoring_memory += sign * load.scoring_memory
            if info.holds:
                _tally(self.ports, info.host_ports, sign)
                _tally(self.claims, info.claims, sign)
                _tally(self.disks, info.disks, sign)
        self.requested = requested


def _tally(counts: dict[V, int], items: frozenset[V], sign: int) -> None:
    for item in items:
        count = counts.get(item, 0) + sign
        if count:
            counts[item] = count
        else:
            del counts[item]
