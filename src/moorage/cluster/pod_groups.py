"""Groups of pods: their hierarchy, and which pods belong to each.

A pod names its PodGroup; a PodGroup may be a part of a CompositePodGroup, and that of another. The group
without a parent is the root: it is scheduled as a whole, and its priority is that of all its pods.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final

from moorage.api.pod import Pod
from moorage.api.pod_groups import CompositePodGroup, Group, GroupKey, PodGroup, group_of, key_of
from moorage.client.kinds import COMPOSITE_POD_GROUP, COSCHEDULING_POD_GROUP, POD_GROUP, Kind
from moorage.cluster.grouped_objects import GroupedObjects
from moorage.cluster.object_tables import Objects
from moorage.emulation.feature_gates import Features

_MAX_DEPTH: Final = 16
"""Maximum number of levels that are followed upwards; the API server allows fewer, but not against cycles."""


class PodGroups:
    """The groups among some objects, and their members.

    is_enabled: whether pods of a group are scheduled, and evicted, by its rules.
    are_labelled: whether groups are those of scheduler-plugins, which pods name with a label.
    is_nested: whether composite groups are supported; otherwise parents are ignored.
    has_preemption_policy: whether groups have a preemption policy of their own; otherwise their pods' counts.
    """

    def __init__(self, objects: Objects, placed_pod: Callable[[str], Pod | None]) -> None:
        self.is_enabled = False
        self.are_labelled = False
        self.is_nested = False
        self.has_preemption_policy = False
        self._objects = objects
        self._placed_pod = placed_pod
        self._known: dict[GroupKey, dict[str, Pod]] = {}
        self._placed: dict[GroupKey, dict[str, None]] = {}
        self._parts: tuple[GroupedObjects[PodGroup], GroupedObjects[CompositePodGroup]] = (
            GroupedObjects(_parent_key),
            GroupedObjects(_parent_key),
        )

    def set_features(self, features: Features) -> None:
        """Follow the rules that feature gates enable."""
        self.is_enabled = features.generic_workload or self.are_labelled
        self.is_nested = features.composite_pod_group
        self.has_preemption_policy = features.pod_group_preemption_policy

    def follow_labels(self) -> None:
        """Follow the rules of groups for those of scheduler-plugins, instead of Kubernetes' own."""
        self.is_enabled = self.are_labelled = True

    @property
    def watched_kinds(self) -> tuple[Kind, ...]:
        """The kinds of groups that count."""
        if not self.is_enabled:
            return ()
        if self.are_labelled:
            return (COSCHEDULING_POD_GROUP,)
        return (POD_GROUP, COMPOSITE_POD_GROUP) if self.is_nested else (POD_GROUP,)

    # Members

    def add(self, pod: Pod) -> None:
        """A pod is known: with or without a node."""
        key = group_of(pod)
        if key is not None:
            self._known.setdefault(key, {})[pod.uid] = pod

    def remove(self, pod: Pod) -> None:
        """A pod was deleted, or is finished."""
        key = group_of(pod)
        if key is not None:
            _discard(self._known, key, pod.uid)

    def place(self, pod: Pod) -> None:
        """A pod is on a node, bound or assumed."""
        key = group_of(pod)
        if key is not None:
            self._known.setdefault(key, {}).setdefault(pod.uid, pod)
            self._placed.setdefault(key, {})[pod.uid] = None

    def unplace(self, pod: Pod) -> None:
        """A pod is on no node any more."""
        key = group_of(pod)
        if key is not None:
            _discard(self._placed, key, pod.uid)

    def known_count(self, key: GroupKey) -> int:
        """How many pods of a PodGroup there are."""
        return len(self._known.get(key, ()))

    def scheduled_count(self, key: GroupKey) -> int:
        """How many pods of a PodGroup are on nodes, bound or assumed."""
        return len(self._placed.get(key, ()))

    def scheduled_uids(self, key: GroupKey) -> Collection[str]:
        """The pods of a PodGroup that are on nodes, bound or assumed."""
        return self._placed.get(key, {}).keys()

    def scheduled(self, key: GroupKey) -> list[Pod]:
        """The pods on nodes of a PodGroup, or of all parts of a composite group."""
        uids = (uid for leaf in self.leaves(key) for uid in self._placed.get(leaf, ()))
        return [pod for uid in uids if (pod := self._placed_pod(uid)) is not None]

    def all_scheduled(self) -> Iterator[Pod]:
        """The pods of all groups that are on nodes."""
        uids = (uid for members in self._placed.values() for uid in members)
        return (pod for uid in uids if (pod := self._placed_pod(uid)) is not None)

    def unscheduled(self, key: GroupKey) -> list[Pod]:
        """The pods of a PodGroup, or of all parts of a composite group, that are on no node."""
        pods: list[Pod] = []
        for leaf in self.leaves(key):
            placed = self._placed.get(leaf, {})
            pods += [pod for uid, pod in self._known.get(leaf, {}).items() if uid not in placed]
        return pods

    @property
    def has_scheduled(self) -> bool:
        """Whether pods of any group are on nodes, and its rules count."""
        return self.is_enabled and bool(self._placed)

    # Groups

    def group_of(self, pod: Pod) -> GroupKey | None:
        """The PodGroup that a pod names; None: it belongs to none."""
        return group_of(pod)

    def priority_of_group(self, key: GroupKey) -> int | None:
        """The priority of a group, 0 if it is not known; None: that of its pods counts."""
        group = self.get(key)
        if group is None:
            return 0
        return group.priority if group.is_native else None

    def get(self, key: GroupKey) -> Group | None:
        """A group by its key."""
        kind: type[Group] = CompositePodGroup if key.is_composite else PodGroup
        return self._objects.of(kind).get(key.namespace, key.name)

    def ancestors(self, key: GroupKey) -> Iterator[Group | None]:
        """A group, its parent, and so on up to the root; None where one of them is missing."""
        for _ in range(_MAX_DEPTH):
            group = self.get(key)
            yield group
            if group is None or not self.is_nested or not group.parent:
                return
            key = GroupKey(key.namespace, group.parent, is_composite=True)
        yield None

    def root_of(self, key: GroupKey) -> GroupKey | None:
        """The root of a group's hierarchy; None if a group on the way to it is missing."""
        *_, root = self.ancestors(key)
        return None if root is None else key_of(root)

    def children(self, key: GroupKey) -> list[GroupKey]:
        """The parts of a composite group."""
        if not key.is_composite:
            return []
        name = f"{key.namespace}/{key.name}"
        groups, composites = self._parts
        parts: list[Group] = [
            *groups.members(self._objects.of(PodGroup), name),
            *composites.members(self._objects.of(CompositePodGroup), name),
        ]
        return [key_of(part) for part in parts]

    def leaves(self, key: GroupKey) -> Iterator[GroupKey]:
        """The PodGroups of a hierarchy: a PodGroup is one itself."""
        if not key.is_composite:
            yield key
            return
        for child in self.children(key):
            yield from self.leaves(child)

    def priority_of(self, pod: Pod) -> int:
        """The priority that counts when a pod may be evicted: that of its root group, if that has one."""
        key = group_of(pod)
        if key is None:
            return pod.priority
        known = [group for group in self.ancestors(key) if group is not None]
        return known[-1].priority if known and known[-1].is_native else pod.priority

    def evicted_with(self, pod: Pod) -> GroupKey | None:
        """The group all of whose pods are evicted if this one is; None: it can be evicted alone."""
        key = group_of(pod)
        if key is None:
            return None
        whole = [group for group in self.ancestors(key) if group is not None and group.is_evicted_whole]
        return key_of(whole[-1]) if whole else None


def _parent_key(group: Group) -> str:
    return f"{group.namespace}/{group.parent}"


def _discard(
    table: dict[GroupKey, dict[str, Pod]] | dict[GroupKey, dict[str, None]], key: GroupKey, uid: str
) -> None:
    members = table.get(key)
    if members is not None and members.pop(uid, members) is not members and not members:
        del table[key]
