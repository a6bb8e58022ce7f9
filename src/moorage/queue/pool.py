"""Pods that wait for something to happen: refused by plugins, or not let in at all (gated).

They are found by who refused them, so that an event is put only to pods it may help; and pods of one template
that the same plugins refused are kept together, so that it can be put to all of them at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from moorage.queue.entry import QueuedPod
from moorage.queue.templates import template_of

Refuser = tuple[str, str]
"""A profile and a plugin of it."""


class _Situation(NamedTuple):
    """What pods of a group have in common."""

    profile: str
    refusing: tuple[str, ...]
    pending: tuple[str, ...]
    gating_plugin: str
    template: bytes


class Group:
    """Pods in the same situation: who refused them, and what they are, to whoever looks at their template."""

    __slots__ = ("pods", "refusers", "situation")

    def __init__(self, situation: _Situation) -> None:
        self.situation = situation
        self.refusers: tuple[Refuser, ...] = tuple((situation.profile, p) for p in situation.refusing)
        self.pods: dict[str, QueuedPod] = {}

    def any_pod(self) -> QueuedPod:
        """One of them, to speak for all."""
        return next(iter(self.pods.values()))


class UnschedulablePods:
    """Pods by uid, and in groups by the plugins that refused them."""

    def __init__(self) -> None:
        self.gated_count = 0
        self._pods: dict[str, tuple[QueuedPod, Group]] = {}
        self._groups: dict[_Situation, Group] = {}
        self._by_refuser: dict[Refuser, dict[_Situation, Group]] = {}

    def put(self, queued: QueuedPod) -> None:
        """Add a pod, or find its group anew if it is here."""
        situation = _situation(queued)
        known = self._pods.get(queued.uid)
        if known is not None:
            if known[1].situation == situation:
                return
            self.remove(queued.uid)
        group = self._groups.get(situation)
        if group is None:
            group = self._groups[situation] = Group(situation)
            for refuser in group.refusers:
                self._by_refuser.setdefault(refuser, {})[situation] = group
        group.pods[queued.uid] = queued
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
            for refuser in group.refusers:
                of_refuser = self._by_refuser[refuser]
                del of_refuser[group.situation]
                if not of_refuser:
                    del self._by_refuser[refuser]
        return queued

    def get(self, uid: str) -> QueuedPod | None:
        """A pod by its uid."""
        known = self._pods.get(uid)
        return None if known is None else known[0]

    def refused_by(self, refusers: Iterable[Refuser]) -> list[Group]:
        """The groups that any of some plugins refused, each once."""
        found: dict[int, Group] = {}
        for refuser in refusers:
            for group in self._by_refuser.get(refuser, {}).values():
                found[id(group)] = group
        return list(found.values())

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
            assert group.situation == _situation(queued), uid
            assert self._groups[group.situation] is group
            assert group.pods[uid] is queued
        expected: dict[Refuser, set[_Situation]] = {}
        for situation, group in self._groups.items():
            assert group.pods
            for refuser in group.refusers:
                expected.setdefault(refuser, set()).add(situation)
        assert {refuser: set(groups) for refuser, groups in self._by_refuser.items()} == expected


def _situation(queued: QueuedPod) -> _Situation:
    return _Situation(
        queued.profile,
        tuple(sorted(queued.refusing_plugins())),
        tuple(sorted(queued.pending_plugins)),
        queued.gating_plugin,
        template_of(queued.pod),
    )
