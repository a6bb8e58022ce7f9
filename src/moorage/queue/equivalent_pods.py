"""Unschedulable pods, grouped by equivalence class and rejecting plugins, and indexed by what may help them.

Hints are evaluated once for each group. Where there are thousands of groups (every pod of a StatefulSet is
one), event indexes select the few that an event can concern.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from moorage.api.base import Object
from moorage.api.pod import Pod
from moorage.queue.cluster_events import EventIndex, Interest
from moorage.queue.equivalence_key import equivalence_key
from moorage.queue.queued_pod import QueuedPod

ProfilePlugin = tuple[str, str]
"""The name of a profile and of one of its plugins."""


class EquivalentPodsKey(NamedTuple):
    """What the pods of a group have in common."""

    profile: str
    rejecting: tuple[str, ...]
    pending: tuple[str, ...]
    gating_plugin: str
    template: bytes


def equivalent_pods_key(queued: QueuedPod) -> EquivalentPodsKey:
    """The key of a pod's group."""
    return EquivalentPodsKey(
        queued.profile,
        tuple(sorted(queued.rejector_plugins())),
        tuple(sorted(queued.pending_plugins)),
        queued.gating_plugin,
        _template(queued),
    )


def _template(queued: QueuedPod) -> bytes:
    """The equivalence key of a pod, computed again where a version differs in what it is made of."""
    pod, known = queued.pod, queued.keyed_pod
    if known is not pod:
        if known is None or not _are_of_one_template(known, pod):
            queued.template = equivalence_key(pod)
        queued.keyed_pod = pod
    return queued.template


def _are_of_one_template(known: Pod, pod: Pod) -> bool:
    """Whether two versions of a pod are certain to have the same equivalence key."""
    before, meta = known.metadata, pod.metadata
    return (
        known.spec is pod.spec
        and (before.namespace, before.name, before.labels) == (meta.namespace, meta.name, meta.labels)
        and before.owner_references == meta.owner_references
    )


class EquivalentPods:
    """Pods of one equivalence class that the same plugins rejected."""

    __slots__ = ("key", "pods", "rejectors")

    def __init__(self, key: EquivalentPodsKey) -> None:
        self.key = key
        self.rejectors: tuple[ProfilePlugin, ...] = tuple((key.profile, p) for p in key.rejecting)
        self.pods: dict[str, QueuedPod] = {}

    def any_pod(self) -> QueuedPod:
        """Any pod of the group, as its representative."""
        return next(iter(self.pods.values()))

    @property
    def awaited_plugins(self) -> tuple[ProfilePlugin, ...]:
        """The plugins whose events may requeue these pods: the gating plugin alone, if there is one."""
        profile, gate = self.key.profile, self.key.gating_plugin
        return ((profile, gate),) if gate else self.rejectors


class GroupsOfPlugin:
    """The groups that a plugin's events may requeue. A group is added after its first pod."""

    def __init__(self) -> None:
        self.groups: dict[EquivalentPods, None] = {}
        self._indexed: dict[EventIndex, _IndexedGroups] = {}

    def add(self, group: EquivalentPods) -> None:
        """Add a group."""
        self.groups[group] = None
        for indexed in self._indexed.values():
            indexed.add(group)

    def remove(self, group: EquivalentPods) -> None:
        """Remove a group."""
        del self.groups[group]
        for indexed in self._indexed.values():
            indexed.remove(group)

    def interested_groups(
        self, interests: Sequence[Interest], old: Object | None, new: Object | None
    ) -> Mapping[EquivalentPods, None]:
        """The groups that the hint of at least one interest has to be evaluated for."""
        found: dict[EquivalentPods, None] = {}
        for interest in interests:
            if interest.index is None:
                return self.groups
            found |= self._indexed_by(interest.index).interested_groups(old, new)
        return found

    def clear_indexes(self) -> None:
        """Drop all indexes; they are built again at the next event."""
        self._indexed.clear()

    def _indexed_by(self, index: EventIndex) -> _IndexedGroups:
        indexed = self._indexed.get(index)
        if indexed is None:
            indexed = self._indexed[index] = _IndexedGroups(index)
            for group in self.groups:
                indexed.add(group)
        return indexed

    def validate(self) -> None:
        """Raise AssertionError unless every group is found by its keys."""
        for indexed in self._indexed.values():
            indexed.validate(self.groups)


class _IndexedGroups:
    """Groups by the keys of one event index."""

    def __init__(self, index: EventIndex) -> None:
        self._index = index
        self._keys: dict[EquivalentPods, Collection[Hashable] | None] = {}
        self._by_key: dict[Hashable, dict[EquivalentPods, None]] = {}
        self._unknown: dict[EquivalentPods, None] = {}
        """Groups with unknown keys."""

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
        event_keys = _keys_or_none(lambda: self._index.keys_of_event(old, new))
        if event_keys is None:
            return dict.fromkeys(self._keys)
        found = self._unknown.copy()
        for key in event_keys:
            found |= self._by_key.get(key, {})
        return found

    def _keys_of(self, group: EquivalentPods) -> Collection[Hashable] | None:
        # An event that ungates a pod has the hints of all its rejecting plugins evaluated; this index has no
        # keys for those.
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


def _keys_or_none(compute: Callable[[], Iterable[Hashable] | None]) -> Collection[Hashable] | None:
    """The keys that an index function returns; None if unknown. An error is left to the hint to report."""
    try:
        keys = compute()
        return None if keys is None else frozenset(keys)
    except Exception:
        return None
