"""FairShare: the next decision is for a pod of the owner that has the smallest share for its weight.

Pods of an owner are a sub-queue. The order among owners is that of their shares, which change as pods come to
nodes and leave them, and as past use fades.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from moorage import Handle, Pod, QueuedPod, kinds
from moorage.optional_plugins.fair_share.arguments import FairShareArgs
from moorage.optional_plugins.fair_share.shares import OwnerOf, Shares
from moorage.optional_plugins.fair_share.turns import Turns

_Key = tuple[int, int, float, float]


class FairShare:
    """Orders the queue by priority, then by the owner's share, then by time; by share first if configured."""

    name = "FairShare"
    watched_kinds = (kinds.NAMESPACE,)

    def __init__(self, args: FairShareArgs, handle: Handle) -> None:
        self._args = args
        self._handle = handle
        self._owner_of = _owner_of(args.owner_label)
        self._priority_first = args.priority == "AcrossOwners"
        self._turns = Turns()
        self._shares: Shares | None = None
        """None until a pod is popped: only the queue's own profile has to follow pods."""

    def queue_sort(self, queued: QueuedPod) -> tuple[int, float]:
        """The order among pods of an owner: by priority, then by time."""
        return (-queued.priority, queued.timestamp)

    def sub_queue(self, queued: QueuedPod) -> str:
        """The owner of a pod; of a group, that of the member that stands for it."""
        return self._owner_of(queued.pod)

    def sub_queue_sort(self, sub_queue: str, first: QueuedPod) -> _Key:
        """The order among owners."""
        share = 0.0 if self._shares is None else self._shares.of(sub_queue)
        priority = -first.priority if self._priority_first else 0
        return (priority, self._turns.rank(sub_queue), share, first.timestamp)

    def changed_sub_queues(
        self, firsts: Mapping[str, QueuedPod], popped: str | None, failed: bool
    ) -> Iterable[str] | None:
        """The owners whose pods came and went, and those whose ranks have changed."""
        if self._shares is None:
            self._shares = Shares(self._args, self._handle, self._owner_of)
            self._handle.follow_pods(self._shares)
        changes, turns = self._shares.renew(), self._turns
        if popped is not None:
            turns.popped(popped, failed=failed)
        if changes.has_room:
            turns.room_appeared()
        turns.renew(firsts)
        ranks, turns.changed = turns.changed, set()
        return None if changes.are_all else ranks.union(changes.owners)


def _owner_of(label: str) -> OwnerOf:
    """How the owner of a pod is found: it is the value of a label, or the namespace if there is no label."""
    if label:
        return lambda pod: pod.metadata.labels.get(label, "")

    def namespace_of(pod: Pod) -> str:
        return pod.metadata.namespace

    return namespace_of
