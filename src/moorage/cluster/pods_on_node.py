"""The pods on one node, in kube-scheduler's order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from moorage.cluster.pod_table import PodInfo


class PodsOnNode:
    """Pods by uid, in order: the last pod takes the place of a removed one, whose cost is constant.

    The order decides between equally important pods in preemption.
    """

    __slots__ = ("index_of", "infos")

    def __init__(self) -> None:
        self.infos: list[PodInfo] = []
        """The pods in order."""
        self.index_of: dict[str, int] = {}
        """The index of each pod, by uid."""

    def append(self, uid: str, info: PodInfo) -> None:
        """Add a pod that is not here."""
        self.index_of[uid] = len(self.infos)
        self.infos.append(info)

    def extend(self, uids: Sequence[str], infos: Sequence[PodInfo]) -> None:
        """Add pods that are not here."""
        self.index_of.update(zip(uids, range(len(self.infos), len(self.infos) + len(infos)), strict=True))
        self.infos.extend(infos)

    def remove(self, uid: str) -> PodInfo:
        """Remove a pod and return it."""
        index, last = self.index_of.pop(uid), self.infos.pop()
        if index == len(self.infos):
            return last
        info, self.infos[index] = self.infos[index], last
        self.index_of[last.pod.uid] = index
        return info

    def renew(self, uid: str, info: PodInfo) -> PodInfo:
        """Replace a pod by a later version, which comes last, and return the one before."""
        infos = self.infos
        if self.index_of[uid] == len(infos) - 1:
            before, infos[-1] = infos[-1], info
            return before
        before = self.remove(uid)
        self.append(uid, info)
        return before

    def reorder(self, uids: Sequence[str]) -> None:
        """Bring the pods, which are the same, into another order."""
        assert self.index_of.keys() == set(uids)
        self.infos = [self[uid] for uid in uids]
        self.index_of = {uid: index for index, uid in enumerate(uids)}

    def get(self, uid: str) -> PodInfo | None:
        """A pod by uid; None if it is not here."""
        index = self.index_of.get(uid)
        return None if index is None else self.infos[index]

    def copy(self) -> PodsOnNode:
        """The same pods in the same order, to be changed apart."""
        twin = PodsOnNode()
        twin.infos, twin.index_of = self.infos.copy(), self.index_of.copy()
        return twin

    def __getitem__(self, uid: str) -> PodInfo:
        return self.infos[self.index_of[uid]]

    def __contains__(self, uid: str) -> bool:
        return uid in self.index_of

    def __iter__(self) -> Iterator[str]:
        """The uids in order."""
        return (info.pod.uid for info in self.infos)

    def __len__(self) -> int:
        return len(self.infos)
