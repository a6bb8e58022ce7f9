"""Waiting pods in the same key, kept together, and found by what may help them.

An event is put to the hints once a group. Where there are thousands of groups (every pod of a StatefulSet is
one of its own), indexes find the few that it can concern at all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from moorage.api.base import Object
from moorage.queue.cluster_events import EventIndex, Interest
from moorage.queue.equivalence_key import equivalence_key
from moorage.queue.queued_pod import QueuedPod

ProfilePlugin = tuple[str, str]
"""A profile and a plugin of it."""


class EquivalentPodsKey(NamedTuple):
    """What pods of a group have in common."""

    profile: str
    refusing: tuple[str, ...]
    pending: tuple[str, ...]
    gating_plugin: str
    template: bytes


def equivalent_pods_key(queued: QueuedPod) -> EquivalentPodsKey:
    """Where a pod belongs."""
    return EquivalentPodsKey(
        queued.profile,
        tuple(sorted(queued.rejector_plugins())),
        tuple(sorted(queued.pending_plugins)),
        queued.gating_plugin,
        equivalence_key(queued.pod),
    )


class EquivalentPods:
    """Pods in the same key: who refused them, and what they are, to whoever looks at their template."""

    __slots__ = ("key", "pods", "rejectors")

    def __init__(self, key: EquivalentPodsKey) -> None:
        self.key = key
        self.rejectors: tuple[ProfilePlugin, ...] = tuple((key.profile, p) for p in key.refusing)
        self.pods: dict[str, QueuedPod] = {}

    def any_pod(self) -> QueuedPod:
        """One of them, to speak for all."""
        return next(iter(self.pods.values()))

    @property
    def awaited_plugins(self) -> tuple[ProfilePlugin, ...]:
        """Whose events may help these pods: the gate's alone, while there is one."""
        profile, gate = self.key.profile, self.key.gating_plugin
        return ((profile, gate),) if gate else self.rejectors


class GroupsOfPlugin:
    """The groups that a plugin's events may help. A group that is added has pods."""

    def __init__(self) -> None:
        self.groups: dict[EquivalentPods, None] = {}
        self._indexed: dict[EventIndex, _IndexedGroups] = {}

    def add(self, group: EquivalentPods) -> None:
        """A group is there."""
        self.groups[group] = None
        for indexed in self._indexed.values():
            indexed.add(group)

    def remove(self, group: EquivalentPods) -> None:
        """A group is there no more."""
        del self.groups[group]
        for indexed in self._indexed.values():
            indexed.remove(group)

    def interested_groups(
        self, interests: Sequence[Interest], old: Object | None, new: Object | None
    ) -> Mapping[EquivalentPods, None]:
        """The groups about which any of some interests has to be asked when something has happened."""
        found: dict[EquivalentPods, None] = {}
        for interest in interests:
            if interest.index is None:
                return self.groups
            found |= self._indexed_by(interest.index).interested_groups(old, new)
        return found

    def clear_indexes(self) -> None:
        """Those that were used so far are used no more."""
        self._indexed.clear()

    def _indexed_by(self, index: EventIndex) -> _IndexedGroups:
        indexed = self._indexed.get(index)
        if indexed is None:
            indexed = self._indexed[index] = _IndexedGroups(index)
            for group in self.groups:
                indexed.add(group)
        return indexed

    def validate(self) -> None:
        """Raise AssertionError unless every group is found by what it wants."""
        for indexed in self._indexed.values():
            indexed.validate(self.groups)


class _IndexedGroups:
    """Groups by the keys that they want."""

    def __init__(self, index: EventIndex) -> None:
        self._index = index
        self._keys: dict[EquivalentPods, Collection[Hashable] | None] = {}
        self._by_key: dict[Hashable, dict[EquivalentPods, None]] = {}
        self._unknown: dict[EquivalentPods, None] = {}
        """Those of which one cannot tell what may help them."""

    def add(self, group: EquivalentPods) -> None:
        keys = self._keys[group] = self._keys_of(group)
        if keys is None:
            self._unknown[group] = None
        else:
            for key in keys:
                self._by_key.setdefault(key, {})[group] = None

    def remove(self, group: EquivalentPods) -> None:
        keys = self._keys.pop(group)
        if keys is None:
            del self._unknown[group]
        else:
            for key in keys:
                wanting = self._by_key[key]
                del wanting[group]
                if not wanting:
                    del self._by_key[key]

    def interested_groups(self, old: Object | None, new: Object | None) -> dict[EquivalentPods, None]:
        borne = _keys_or_none(lambda: self._index.keys_of_event(old, new))
        if borne is None:
            return dict.fromkeys(self._keys)
        found = self._unknown.copy()
        for key in borne:
            found |= self._by_key.get(key, {})
        return found

    def _keys_of(self, group: EquivalentPods) -> Collection[Hashable] | None:
        # A gate's event lets all be asked who refused the pod: what they want, this index does not know.
        if group.key.gating_plugin:
            return None
        return _keys_or_none(lambda: self._index.keys_of_pod(group.any_pod().pod))

    def validate(self, groups: Collection[EquivalentPods]) -> None:
        assert self._keys.keys() == set(groups)
        assert self._unknown.keys() == {group for group, keys in self._keys.items() if keys is None}
        assert all(keys == self._keys_of(group) for group, keys in self._keys.items())
        pairs = {(key, group) for key, wanting in self._by_key.items() for group in wanting}
        assert pairs == {(key, group) for group, keys in self._keys.items() for key in keys or ()}
        assert all(self._by_key.values())


def _keys_or_none(tell: Callable[[], Iterable[Hashable] | None]) -> Collection[Hashable] | None:
    """What a index says; None if it cannot tell: then it is for the hint to say what is wrong."""
    try:
        keys = tell()
        return None if keys is None else frozenset(keys)
    except Exception:
        return None
