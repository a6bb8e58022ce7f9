"""The scheduling queue where pods of a group are scheduled together: the group is one entry of the queue.

```
 add ──► incomplete: its group, or one above that, is not known
   │         │ groups_changed
   ├─────────┴─► the group's entry: active, in backoff, or gated if a member is ──pop──► in flight
   └─► pending, while the group is in flight; so are members whose attempt failed          │
           ▲                                                                               │
           └── all of them form the group's next entry ◄──────── group_attempted ──────────┘
```

A group's entry is retried after backoff, whatever its members were rejected by: only a gated one waits for
events. It counts as a failure with an error, so that its backoff is never cut short.

Further invariants: a waiting member is incomplete, pending, or in the entry of its root group. Members are
pending only while their group is in flight.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Protocol

from moorage.api.pod import Pod
from moorage.api.pod_groups import GroupKey
from moorage.queue import cluster_events as events
from moorage.queue import queue_log
from moorage.queue.nominator import update_nomination
from moorage.queue.queue_log import log
from moorage.queue.queued_group import QueuedGroup
from moorage.queue.queued_pod import QueuedPod
from moorage.queue.queueing_hints import QueueingStrategy
from moorage.queue.scheduling_queue import Place, SchedulingQueue


class GroupTree(Protocol):
    """Which groups there are."""

    def group_of(self, pod: Pod) -> GroupKey | None:
        """The group that a pod names; None: it belongs to none."""

    def root_of(self, key: GroupKey) -> GroupKey | None:
        """The root of a group's hierarchy; None if a group on the way to it is missing."""

    def priority_of_group(self, key: GroupKey) -> int | None:
        """The priority of a group; None: that of its pods counts."""


class GroupSchedulingQueue(SchedulingQueue):
    """A scheduling queue with an entry for each group."""

    def __init__(self, *arguments: Any, groups: GroupTree, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._groups = groups
        self._members: dict[str, QueuedPod] = {}
        """Waiting members of groups, by uid."""
        self._where: dict[str, QueuedGroup | Place] = {}
        """By the uid of a waiting member: the entry that it is in; or incomplete, or pending."""
        self._pending: dict[str, QueuedPod] = {}
        """The members that wait for the end of their group's attempt, by uid."""
        self._by_group: dict[GroupKey, dict[str, QueuedPod]] = {}
        """The waiting members of each group that pods name."""
        self._entries: dict[GroupKey, QueuedGroup] = {}
        """The waiting groups, by root."""
        self._in_flight_group: QueuedGroup | None = None

    # Changes of pods

    def add(self, pod: Pod) -> None:
        """A pod without a node was added."""
        if self._groups.group_of(pod) is None:
            super().add(pod)
        elif pod.uid not in self:
            self._nominations.put(pod, pod.status.nominated_node_name)
            self._add_member(QueuedPod(pod, self._clock.now()), self.pod_events.added.label)

    def update(self, old: Pod, new: Pod) -> None:
        """A pod without a node was updated; an unknown pod is added."""
        member = self._members.get(new.uid)
        if member is not None:
            self._update_member(member, old, new)
        elif self._groups.group_of(new) is None or new.uid in self._in_flight:
            super().update(old, new)
        else:
            self.delete(old)
            self.add(new)

    def _update_member(self, member: QueuedPod, old: Pod, new: Pod) -> None:
        member.pod = new
        update_nomination(self._nominations, old, new)
        entry = self._where[new.uid]
        if isinstance(entry, QueuedGroup) and entry.pod.uid == new.uid:
            entry.pod = new
            if entry.gating_plugin:
                self._requeue_after_update(entry, old, new)

    def delete(self, pod: Pod) -> None:
        """A pod was deleted or bound. An attempt in flight continues until `done` or `put_back`."""
        member = self._members.get(pod.uid)
        if member is None:
            super().delete(pod)
            return
        self._nominations.remove(pod.uid)
        entry = self._detach(member)
        self._count_rejections(member, -1)
        if entry is not None and entry.members:
            self._place_again(entry, self.pod_events.added.label)  # That is the event for kube-scheduler.

    # Groups

    def groups_changed(self, keys: Iterable[GroupKey]) -> None:
        """Groups that pods name were added or deleted, or groups above them: members go where they belong."""
        for key in keys:
            for member in list(self._by_group.get(key, {}).values()):
                if not self._is_in_place(member, self._groups.root_of(key)):
                    left = self._detach(member)
                    if left is not None and left.members:
                        self._place_again(left, self.pod_events.updated.label)
                    self._add_member(member, self.pod_events.added.label)

    def _is_in_place(self, member: QueuedPod, root: GroupKey | None) -> bool:
        where = self._where[member.uid]
        if where is Place.INCOMPLETE:
            return root is None
        entry = where if isinstance(where, QueuedGroup) else self._in_flight_group
        return entry is not None and entry.key == root

    def _add_member(self, member: QueuedPod, event: str) -> Place:
        """Put a pod where it belongs: into the entry of its group, if there is one."""
        key = self._groups.group_of(member.pod)
        assert key is not None
        root = self._groups.root_of(key)
        if root is None:
            return self._keep(member, key, Place.INCOMPLETE)
        if self._in_flight_group is not None and self._in_flight_group.key == root:
            return self._keep(member, key, Place.PENDING)
        entry = self._entries.get(root)
        is_new = entry is None
        if entry is None:
            priority = self._groups.priority_of_group(root)
            entry = QueuedGroup(member.pod, member.timestamp, key=root, has_own_priority=priority is not None)
            entry.priority = priority or 0
            self._entries[root] = entry
        self._keep(member, key, entry)
        if is_new:
            return self._to_active(entry, event)
        if entry.gating_plugin:
            return self._place_again(entry, event)
        return self._still_ungated(entry, member, event)

    def _keep(self, member: QueuedPod, key: GroupKey, where: QueuedGroup | Place) -> Place:
        self._members[member.uid] = member
        self._where[member.uid] = where
        self._by_group.setdefault(key, {})[member.uid] = member
        if isinstance(where, QueuedGroup):
            where.join(member)
            return Place.ACTIVE
        if where is Place.PENDING:
            self._pending[member.uid] = member
        if log.v >= 5:
            queue_log.member_waits(member.pod, key, where)
        return where

    def _detach(self, member: QueuedPod) -> QueuedGroup | None:
        """Remove a member from where it waits; returns its entry, which is removed with its last member."""
        uid, where = member.uid, self._forget_place(member)
        if not isinstance(where, QueuedGroup):
            return None
        del where.members[uid]
        if not where.members:
            self._remove_entry(where)
        elif where.pod.uid == uid:
            where.pod = next(iter(where.members.values())).pod
        return where

    def _forget_place(self, member: QueuedPod) -> QueuedGroup | Place:
        """A member waits no more, or not where it did; returns where that was."""
        uid, key = member.uid, self._groups.group_of(member.pod)
        assert key is not None
        del self._members[uid]
        self._pending.pop(uid, None)
        members = self._by_group[key]
        del members[uid]
        if not members:
            del self._by_group[key]
        return self._where.pop(uid)

    def _remove_entry(self, entry: QueuedGroup) -> None:
        del self._entries[entry.key]
        del self._waiting[entry.uid]
        uid = entry.uid
        _ = self._active.remove(uid) or self._backoff.remove(uid) or self._unschedulable.remove(uid)

    def _still_ungated(self, entry: QueuedGroup, member: QueuedPod, event: str) -> Place:
        """A member came to a group that no other one gates."""
        place = self._place_of_entry(entry)
        if self._member_gates(entry, member):
            self._active.remove(entry.uid)
            self._backoff.remove(entry.uid)
            return self._to_unschedulable(entry, event)
        self._count_again(place, event, entry)
        return place

    def _place_again(self, entry: QueuedGroup, event: str) -> Place:
        """Evaluate all gates again: a group may be too small without one of its members."""
        if self._active.remove(entry.uid) is not None:
            return self._place(entry, QueueingStrategy.IMMEDIATELY, event)
        if self._backoff.remove(entry.uid) is None:
            self._count_again(Place.UNSCHEDULABLE, event, entry)
        return self._place(entry, QueueingStrategy.AFTER_BACKOFF, event)

    def _count_again(self, place: Place, event: str, entry: QueuedGroup) -> None:
        """A group stays in its queue while its members change: its pods come in once more."""
        self._observer.incoming(place, event, entry)
        self._observer.stayed(place, event, entry)

    def _gated(self, queued: QueuedPod) -> bool:
        """Whether a plugin rejects a pod, or a member of a group, before it is queued."""
        if not isinstance(queued, QueuedGroup):
            return super()._gated(queued)
        first = queued.members.get(queued.pod.uid)
        candidates = queued.members.values() if first is None else chain((first,), queued.members.values())
        for member in candidates:
            if self._member_gates(queued, member):
                return True
        queued.pod = queued.in_order()[0].pod
        queued.gating_plugin, queued.unschedulable_plugins = "", frozenset()
        return False

    def _member_gates(self, entry: QueuedGroup, member: QueuedPod) -> bool:
        if not super()._gated(member):
            return False
        entry.pod = member.pod
        entry.gating_plugin = member.gating_plugin
        entry.unschedulable_plugins = frozenset((member.gating_plugin,))
        return True

    # Attempts

    def pop_now(self) -> QueuedPod | None:
        """The first pod or group, which is in flight from now on; None if there is nothing to schedule."""
        queued = super().pop_now()
        if isinstance(queued, QueuedGroup):
            self._in_flight.end(queued.uid)
            del self._entries[queued.key]
            self._in_flight_group = queued
            for member in list(queued.members.values()):
                self._forget_place(member)
                member.attempts += 1
                self._count_rejections(member, -1)
                self._in_flight.begin(member)
        return queued

    def put_back(
        self,
        queued: QueuedPod,
        pod: Pod,
        *,
        unschedulable_plugins: Iterable[str] = (),
        pending_plugins: Iterable[str] = (),
    ) -> Place:
        """An attempt failed: queue the pod again. A member waits for the end of its group's attempt."""
        if self._groups.group_of(pod) is None:
            return super().put_back(
                queued, pod, unschedulable_plugins=unschedulable_plugins, pending_plugins=pending_plugins
            )
        self._in_flight.end(queued.uid)
        if (place := self.place_of(queued.uid)) is not None:
            return place
        queued.pod = pod
        self._note_failure(queued, frozenset(unschedulable_plugins), frozenset(pending_plugins))
        return self._add_member(queued, events.SCHEDULE_ATTEMPT_FAILURE)

    def group_attempted(self, group: QueuedGroup, *, scheduled: bool = False, failed: bool = False) -> None:
        """A group's attempt ended: members that came back, or came late, are its next entry.

        scheduled: what is left of it is tried at once, before later groups. failed: an error ended it.
        """
        self._in_flight_group = None
        tried, group.members = group.members, {}
        returned, self._pending = self._pending, {}
        others = [member for member in returned.values() if not self._joins(member, group)]
        if group.members:
            self._requeue_group(group, scheduled, failed, any(uid in tried for uid in group.members))
        for member in others:
            self._detach(member)
            self._add_member(member, events.SCHEDULE_ATTEMPT_FAILURE)

    def _joins(self, member: QueuedPod, group: QueuedGroup) -> bool:
        key = self._groups.group_of(member.pod)
        if key is None or self._groups.root_of(key) != group.key:
            return False
        self._keep(member, key, group)
        return True

    def _requeue_group(self, group: QueuedGroup, scheduled: bool, failed: bool, has_leftovers: bool) -> None:
        self._entries[group.key] = group
        if scheduled:
            group.consecutive_errors = group.unschedulable_count = 0
        else:
            group.backoff_expiration = None
            if failed:
                group.consecutive_errors += 1
            else:
                group.unschedulable_count += 1
                group.consecutive_errors = 0
        if not (scheduled and has_leftovers):
            group.timestamp = self._clock.now()
        group.was_flushed, group.flush_timestamp = False, None
        waits = not scheduled and self._backoff.is_backing_off(group)
        to_queue = self._to_backoff if waits else self._to_active
        place = to_queue(group, events.SCHEDULE_ATTEMPT_FAILURE)
        if log.v >= 3:
            queue_log.group_put_back(group, place, self._scheduling_cycle)

    # Events

    def activate(self, pods: Iterable[Pod]) -> None:
        """Schedule pods now, as a plugin requests; for a member of a group, the whole group.

        A group in flight is tried again after backoff in any case.
        """
        for pod in pods:
            entry = self._where.get(pod.uid)
            if isinstance(entry, QueuedGroup):
                self._activate_entry(entry)
            elif self._groups.group_of(pod) is None:
                super().activate((pod,))

    def activate_group(self, root: GroupKey) -> None:
        """Schedule a group now, by the root of its hierarchy, as a plugin requests."""
        entry = self._entries.get(root)
        if entry is not None:
            self._activate_entry(entry)

    def _activate_entry(self, entry: QueuedGroup) -> None:
        if self._backoff.remove(entry.uid) is not None:
            self._into_active(entry, events.FORCE_ACTIVATE.label)
        elif entry.uid in self._unschedulable:
            self._to_active(entry, events.FORCE_ACTIVATE.label)

    # Reading

    def place_of(self, uid: str) -> Place | None:
        """Where a pod is; None if it is not here."""
        where = self._where.get(uid)
        if where is None:
            return super().place_of(uid)
        return self._place_of_entry(where) if isinstance(where, QueuedGroup) else where

    def _place_of_entry(self, entry: QueuedGroup) -> Place:
        place = super().place_of(entry.uid)
        assert place is not None
        return place

    def get(self, uid: str) -> QueuedPod | None:
        """A waiting pod, in any queue; not one in flight."""
        return self._members.get(uid) or super().get(uid)

    def pods_in(self, place: Place) -> list[QueuedPod]:
        """All pods in a place, in the order of popping where that is defined; groups by their members."""
        if place in (Place.INCOMPLETE, Place.PENDING):
            return [self._members[uid] for uid, where in self._where.items() if where is place]
        return list(_pods(super().pods_in(place)))

    def pending(self) -> dict[Place, int]:
        """Number of pods in each queue."""
        places = (Place.ACTIVE, Place.BACKOFF, Place.UNSCHEDULABLE, Place.GATED)
        return {place: len(self.pods_in(place)) for place in (*places, Place.INCOMPLETE, Place.PENDING)}

    def groups_by_queue(self) -> dict[str, tuple[int, int]]:
        """By queue, how many PodGroups there are, and how many pods in groups, composite ones included."""
        found: dict[str, tuple[int, int]] = {}
        for entry in self._entries.values():
            place = str(self._place_of_entry(entry))
            count, pod_count = found.get(place, (0, 0))
            found[place] = (count + entry.is_entity, pod_count + entry.pod_count)
        return found

    def __contains__(self, uid: str) -> bool:
        return uid in self._members or super().__contains__(uid)

    def __iter__(self) -> Iterator[QueuedPod]:
        """All waiting pods, those of groups included."""
        entries = _pods(super().__iter__())
        return chain(entries, (m for uid, m in self._members.items() if isinstance(self._where[uid], Place)))

    def __len__(self) -> int:
        return len(self._waiting) - len(self._entries) + len(self._members)

    def _check_waiting(self) -> None:
        assert self._members.keys() == self._where.keys()
        entries = {queued.uid: queued for queued in super().__iter__()}
        assert self._waiting == entries
        assert {e.key: e for e in entries.values() if isinstance(e, QueuedGroup)} == self._entries
        for uid, where in self._where.items():
            if isinstance(where, QueuedGroup):
                assert where.members[uid] is self._members[uid]
            else:
                assert where is Place.INCOMPLETE or self._in_flight_group is not None, uid
        for entry in self._entries.values():
            assert entry.members
            assert entry.pod is entry.members[entry.pod.uid].pod
            assert all(self._where[uid] is entry for uid in entry.members)
        listed = {uid: member for members in self._by_group.values() for uid, member in members.items()}
        assert listed == self._members
        assert all(self._by_group.values())
        pending = {uid for uid, where in self._where.items() if where is Place.PENDING}
        assert self._pending.keys() == pending


def _pods(queued: Iterable[QueuedPod]) -> Iterator[QueuedPod]:
    """Pods, and the members of groups."""
    for each in queued:
        if isinstance(each, QueuedGroup):
            yield from each.in_order()
        else:
            yield each
