"""Pods that wait for an event: rejected by plugins, or gated by pre_enqueue.

They are indexed by the plugins that rejected them, so hints are evaluated only for pods that an event may
help; pods of one equivalence class that the same plugins rejected are grouped and evaluated together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from moorage.api.base import Object
from moorage.api.pod import Pod
from moorage.queue.equivalence_key import equivalence_key
from moorage.queue.equivalent_pods import (
    EquivalentPods,
    EquivalentPodsKey,
    GroupsOfPlugin,
    ProfilePlugin,
    equivalent_pods_key,
)
from moorage.queue.queued_pod import QueuedPod
from moorage.queue.queueing_rules import Interested


class UnschedulablePods:
    """Pods by uid, and in groups by the plugins that rejected them."""

    def __init__(self) -> None:
        self.gated_count = 0
        self._pods: dict[str, tuple[QueuedPod, EquivalentPods]] = {}
        self._groups: dict[EquivalentPodsKey, EquivalentPods] = {}
        self._by_plugin: dict[ProfilePlugin, GroupsOfPlugin] = {}

    def put(self, queued: QueuedPod) -> None:
        """Add a pod, or move it to its current group."""
        key = equivalent_pods_key(queued)
        known = self._pods.get(queued.uid)
        if known is not None:
            if known[1].key == key:
                return
            self.remove(queued.uid)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = EquivalentPods(key)
        queued.template = group.key.template  # The same object for all pods of the group.
        group.pods[queued.uid] = queued
        if len(group.pods) == 1:
            self._list(group)
        self._pods[queued.uid] = (queued, group)
        self.gated_count += bool(key.gating_plugin)

    def remove(self, uid: str) -> QueuedPod | None:
        """Remove a pod; None if it is not here."""
        known = self._pods.pop(uid, None)
        if known is None:
            return None
        queued, group = known
        self.gated_count -= bool(group.key.gating_plugin)
        del group.pods[uid]
        if not group.pods:
            del self._groups[group.key]
            self._unlist(group)
        return queued

    def _list(self, group: EquivalentPods) -> None:
        for plugin in group.awaited_plugins:
            groups = self._by_plugin.get(plugin)
            if groups is None:
                groups = self._by_plugin[plugin] = GroupsOfPlugin()
            groups.add(group)

    def _unlist(self, group: EquivalentPods) -> None:
        for plugin in group.awaited_plugins:
            groups = self._by_plugin[plugin]
            groups.remove(group)
            if not groups.groups:
                del self._by_plugin[plugin]

    def get(self, uid: str) -> QueuedPod | None:
        """A pod by its uid."""
        known = self._pods.get(uid)
        return None if known is None else known[0]

    def interested_groups(
        self, interested: Interested, old: Object | None, new: Object | None
    ) -> Mapping[EquivalentPods, None]:
        """The groups that hints have to be evaluated for at an event; each once."""
        found: dict[EquivalentPods, None] = {}
        for plugin, groups in self._by_plugin.items():
            interests = interested.interests.get(plugin)
            if interests is not None:
                found |= groups.interested_groups(interests, old, new)
        # The pod that the event is about is evaluated regardless of indexes.
        subject = old if new is None else new
        if isinstance(subject, Pod) and (known := self._pods.get(subject.uid)) is not None:
            group = known[1]
            if not interested.interests.keys().isdisjoint(group.awaited_plugins):
                found[group] = None
        return found

    def clear_indexes(self) -> None:
        """Drop all indexes, because other plugins are used from now on."""
        for groups in self._by_plugin.values():
            groups.clear_indexes()

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def __iter__(self) -> Iterator[QueuedPod]:
        return (queued for queued, _ in self._pods.values())

    def __len__(self) -> int:
        return len(self._pods)

    def validate(self) -> None:
        """Raise AssertionError unless every pod is in its group, and in no other."""
        assert self.gated_count == sum(bool(queued.gating_plugin) for queued in self)
        assert len(self) == sum(len(group.pods) for group in self._groups.values())
        for uid, (queued, group) in self._pods.items():
            assert uid == queued.uid
            assert queued.is_rejected, f"nothing would ever wake {uid}"
            assert not queued.gating_plugin or queued.gating_plugin in queued.unschedulable_plugins, uid
            assert group.key == equivalent_pods_key(queued), uid
            assert group.key.template == equivalence_key(queued.pod), uid
            assert self._groups[group.key] is group
            assert group.pods[uid] is queued
        expected: dict[ProfilePlugin, set[EquivalentPods]] = {}
        for group in self._groups.values():
            assert group.pods
            for plugin in group.awaited_plugins:
                expected.setdefault(plugin, set()).add(group)
        assert {plugin: set(groups.groups) for plugin, groups in self._by_plugin.items()} == expected
        for groups in self._by_plugin.values():
            groups.validate()
