"""The cache's entry of one node: the node itself and the sums of its pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from moorage.api.node import Node
from moorage.cluster.columns import V
from moorage.cluster.pod_table import Disk, HostPort, PodInfo


class NodeEntry:
    """A node and its pods. Pods may be added before their node: then `node` is None.

    The order of `pods` is kube-scheduler's: the last pod takes the place of a removed one. It decides between
    equally important pods in preemption.
    """

    __slots__ = (
        "claims",
        "come",
        "disks",
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
        self.pods: dict[str, PodInfo] = {}
        self.come: list[PodInfo] | None = None
        """The pods added since the last snapshot, if they are the only change."""
        self.requested: Mapping[str, int] = {}
        """What the pods request; replaced, not changed: the snapshot keeps it until it is written again."""
        self.scoring_cpu_milli = 0
        self.scoring_memory = 0
        self.ports: Counter[HostPort] = Counter()
        self.claims: Counter[str] = Counter()
        self.disks: Counter[Disk] = Counter()

    def add(self, info: PodInfo) -> None:
        """Add a pod."""
        self.pods[info.pod.uid] = info
        self._count(info, 1)
        if self.come is not None:
            self.come.append(info)

    def remove(self, uid: str) -> None:
        """Remove a pod."""
        self.come = None
        info = self.pods[uid]
        order = list(self.pods)
        order[order.index(uid)] = order[-1]
        order.pop()
        self.pods = {key: self.pods[key] for key in order}
        self._count(info, -1)

    def _count(self, info: PodInfo, sign: int) -> None:
        load = info.load
        requested = dict(self.requested)
        for name, amount in load.amounts.items():
            total = requested.get(name, 0) + sign * amount
            if total:
                requested[name] = total
            else:
                requested.pop(name, None)
        self.requested = requested
        self.scoring_cpu_milli += sign * load.scoring_cpu_milli
        self.scoring_memory += sign * load.scoring_memory
        if info.holds:
            _tally(self.ports, info.host_ports, sign)
            _tally(self.claims, info.claims, sign)
            _tally(self.disks, info.disks, sign)


def _tally(counter: Counter[V], items: frozenset[V], sign: int) -> None:
    for item in items:
        counter[item] += sign
        if not counter[item]:
            del counter[item]
