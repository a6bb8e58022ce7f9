"""Pods that wait for something to happen: refused by plugins, or not let in at all (gated).

They are found by who refused them, so that an event is put only to pods it may help; and pods of one template
that the same plugins refused are kept together, so that it can be put to all of them at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from moorage.api.base import Object
from moorage.api.pod import Pod
from moorage.queue.equivalent_pods import Group, GroupsOfPlugin, Refuser, Situation, situation_of
from moorage.queue.queued_pod import QueuedPod
from moorage.queue.queueing_rules import Interested


class UnschedulablePods:
    """Pods by uid, and in groups by the plugins that refused them."""

    def __init__(self) -> None:
        self.gated_count = 0
        self._pods: dict[str, tuple[QueuedPod, Group]] = {}
        self._groups: dict[Situation, Group] = {}
        self._by_waker: dict[Refuser, GroupsOfPlugin] = {}

    def put(self, queued: QueuedPod) -> None:
        """Add a pod, or find its group anew if it is here."""
        situation = situation_of(queued)
        known = self._pods.get(queued.uid)
        if known is not None:
            if known[1].situation == situation:
                return
            self.remove(queued.uid)
        group = self._groups.get(situation)
        if group is None:
            group = self._groups[situation] = Group(situation)
        group.pods[queued.uid] = queued
        if len(group.pods) == 1:
            self._list(group)
        self._pods[queued.uid] = (queued, group)
        self.gated_count += bool(situation.gating_plugin)

    def remove(self, uid: str) -> QueuedPod | None:
        """Take a pod out; None if it is not here."""
        known = self._pods.pop(uid, None)
        if known is None:
            return None
        queued, group = known
        self.gated_count -= bool(group.situation.gating_plugin)
        del group.pods[uid]
        if not group.pods:
            del self._groups[group.situation]
            self._unlist(group)
        return queued

    def _list(self, group: Group) -> None:
        for waker in group.wakers:
            groups = self._by_waker.get(waker)
            if groups is None:
                groups = self._by_waker[waker] = GroupsOfPlugin()
            groups.add(group)

    def _unlist(self, group: Group) -> None:
        for waker in group.wakers:
            groups = self._by_waker[waker]
            groups.remove(group)
            if not groups.groups:
                del self._by_waker[waker]

    def get(self, uid: str) -> QueuedPod | None:
        """A pod by its uid."""
        known = self._pods.get(uid)
        return None if known is None else known[0]

    def concerned(self, interested: Interested, old: Object | None, new: Object | None) -> Iterable[Group]:
        """The groups about which someone has to be asked when something has happened; each once."""
        found: dict[Group, None] = {}
        for waker, groups in self._by_waker.items():
            interests = interested.interests.get(waker)
            if interests is not None:
                found |= groups.concerned(interests, old, new)
        for each in (old, new):
            # The pod that something has happened to goes through every sieve.
            if isinstance(each, Pod) and (known := self._pods.get(each.uid)) is not None:
                group = known[1]
                if not interested.interests.keys().isdisjoint(group.wakers):
                    found[group] = None
        return found

    def forget_sieves(self) -> None:
        """Other plugins are going to be asked, with sieves of their own."""
        for groups in self._by_waker.values():
            groups.forget_sieves()

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def __iter__(self) -> Iterator[QueuedPod]:
        return (queued for queued, _ in self._pods.values())

    def __len__(self) -> int:
        return len(self._pods)

    def validate(self) -> None:
        """Raise AssertionError unless every pod is in the group that it belongs to, and in no other."""
        assert self.gated_count == sum(bool(queued.gating_plugin) for queued in self)
        assert len(self) == sum(len(group.pods) for group in self._groups.values())
        for uid, (queued, group) in self._pods.items():
            assert uid == queued.uid == queued.pod.uid
            assert queued.refused, f"nothing would ever wake {uid}"
            assert not queued.gating_plugin or queued.gating_plugin in queued.unschedulable_plugins, uid
            assert group.situation == situation_of(queued), uid
            assert self._groups[group.situation] is group
            assert group.pods[uid] is queued
        expected: dict[Refuser, set[Group]] = {}
        for group in self._groups.values():
            assert group.pods
            for waker in group.wakers:
                expected.setdefault(waker, set()).add(group)
        assert {waker: set(groups.groups) for waker, groups in self._by_waker.items()} == expected
        for groups in self._by_waker.values():
            groups.validate()
