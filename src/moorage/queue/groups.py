"""Waiting pods in the same situation, kept together, and found by what may help them.

An event is put to the hints once a group. Where there are thousands of groups (every pod of a StatefulSet is
one of its own), sieves find the few that it can concern at all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from moorage.api.base import Object
from moorage.queue.entry import QueuedPod
from moorage.queue.events import Interest, Sieve
from moorage.queue.templates import equivalence_key

Refuser = tuple[str, str]
"""A profile and a plugin of it."""


class Situation(NamedTuple):
    """What pods of a group have in common."""

    profile: str
    refusing: tuple[str, ...]
    pending: tuple[str, ...]
    gating_plugin: str
    template: bytes


def situation_of(queued: QueuedPod) -> Situation:
    """Where a pod belongs."""
    return Situation(
        queued.profile,
        tuple(sorted(queued.refusing_plugins())),
        tuple(sorted(queued.pending_plugins)),
        queued.gating_plugin,
        equivalence_key(queued.pod),
    )


class Group:
    """Pods in the same situation: who refused them, and what they are, to whoever looks at their template."""

    __slots__ = ("pods", "refusers", "situation")

    def __init__(self, situation: Situation) -> None:
        self.situation = situation
        self.refusers: tuple[Refuser, ...] = tuple((situation.profile, p) for p in situation.refusing)
        self.pods: dict[str, QueuedPod] = {}

    def any_pod(self) -> QueuedPod:
        """One of them, to speak for all."""
        return next(iter(self.pods.values()))

    @property
    def wakers(self) -> tuple[Refuser, ...]:
        """Whose events may help these pods: the gate's alone, while there is one."""
        profile, gate = self.situation.profile, self.situation.gating_plugin
        return ((profile, gate),) if gate else self.refusers


class GroupsOfPlugin:
    """The groups that a plugin's events may help. A group that is added has pods."""

    def __init__(self) -> None:
        self.groups: dict[Group, None] = {}
        self._sifted: dict[Sieve, _Sifted] = {}

    def add(self, group: Group) -> None:
        """A group is there."""
        self.groups[group] = None
        for sifted in self._sifted.values():
            sifted.add(group)

    def remove(self, group: Group) -> None:
        """A group is there no more."""
        del self.groups[group]
        for sifted in self._sifted.values():
            sifted.remove(group)

    def concerned(
        self, interests: Sequence[Interest], old: Object | None, new: Object | None
    ) -> Mapping[Group, None]:
        """The groups about which any of some interests has to be asked when something has happened."""
        found: dict[Group, None] = {}
        for interest in interests:
            if interest.sieve is None:
                return self.groups
            found |= self._sifted_by(interest.sieve).concerned(old, new)
        return found

    def forget_sieves(self) -> None:
        """Those that were used so far are used no more."""
        self._sifted.clear()

    def _sifted_by(self, sieve: Sieve) -> _Sifted:
        sifted = self._sifted.get(sieve)
        if sifted is None:
            sifted = self._sifted[sieve] = _Sifted(sieve)
            for group in self.groups:
                sifted.add(group)
        return sifted

    def validate(self) -> None:
        """Raise AssertionError unless every group is found by what it wants."""
        for sifted in self._sifted.values():
            sifted.validate(self.groups)


class _Sifted:
    """Groups by the marks that they want."""

    def __init__(self, sieve: Sieve) -> None:
        self._sieve = sieve
        self._marks: dict[Group, Collection[Hashable] | None] = {}
        self._by_mark: dict[Hashable, dict[Group, None]] = {}
        self._unknown: dict[Group, None] = {}
        """Those of which one cannot tell what may help them."""

    def add(self, group: Group) -> None:
        marks = self._marks[group] = self._wanted(group)
        if marks is None:
            self._unknown[group] = None
        else:
            for mark in marks:
                self._by_mark.setdefault(mark, {})[group] = None

    def remove(self, group: Group) -> None:
        marks = self._marks.pop(group)
        if marks is None:
            del self._unknown[group]
        else:
            for mark in marks:
                wanting = self._by_mark[mark]
                del wanting[group]
                if not wanting:
                    del self._by_mark[mark]

    def concerned(self, old: Object | None, new: Object | None) -> dict[Group, None]:
        borne = _told(lambda: self._sieve.borne(old, new))
        if borne is None:
            return dict.fromkeys(self._marks)
        found = self._unknown.copy()
        for mark in borne:
            found |= self._by_mark.get(mark, {})
        return found

    def _wanted(self, group: Group) -> Collection[Hashable] | None:
        # A gate's event lets all be asked who refused the pod: what they want, this sieve does not know.
        if group.situation.gating_plugin:
            return None
        return _told(lambda: self._sieve.wanted(group.any_pod().pod))

    def validate(self, groups: Collection[Group]) -> None:
        assert self._marks.keys() == set(groups)
        assert self._unknown.keys() == {group for group, marks in self._marks.items() if marks is None}
        assert all(marks == self._wanted(group) for group, marks in self._marks.items())
        pairs = {(mark, group) for mark, wanting in self._by_mark.items() for group in wanting}
        assert pairs == {(mark, group) for group, marks in self._marks.items() for mark in marks or ()}
        assert all(self._by_mark.values())


def _told(tell: Callable[[], Iterable[Hashable] | None]) -> Collection[Hashable] | None:
    """What a sieve says; None if it cannot tell: then it is for the hint to say what is wrong."""
    try:
        marks = tell()
        return None if marks is None else frozenset(marks)
    except Exception:
        return None
