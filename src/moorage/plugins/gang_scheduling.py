"""GangScheduling: enough members of a group get nodes at once, or none does.

A group is tried when enough of its pods are there, can run in a placement when enough of them have nodes, and
is bound when enough of them are assumed. Of a composite group, enough parts have to have enough.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from moorage.api.pod import Pod
from moorage.api.pod_groups import Group, GroupKey, PodGroup, group_of, key_of
from moorage.client import kinds
from moorage.client.kinds import Kind
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.events import Action, Interest, Resource, on
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.pod_groups import PlacementProgress, PodGroupInfo
from moorage.framework.interface.status import Status, unresolvable, unschedulable, wait
from moorage.klog import Logger, kobj

PERMIT_TIMEOUT_SECONDS: Final = 300.0

WAITING_FOR_PODS = "waiting for minCount pods from a gang to appear in scheduling queue"
WAITING_FOR_NODES = "waiting for minCount pods from a gang to be scheduled"
WAITING_FOR_GROUP = 'waiting for pods\'s pod group "{}" to appear in scheduling queue'
WAITING_FOR_TREE = 'waiting for composite pod group "{}" tree to meet quorum'

log = Logger(__name__)

_Count = Callable[[GroupKey], int]
"""How many pods of a PodGroup count."""


class GangScheduling:
    """Counts the members of groups."""

    name = "GangScheduling"
    watched_kinds: tuple[Kind, ...] = (kinds.POD_GROUP, kinds.COMPOSITE_POD_GROUP)

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._groups = handle.pod_groups
        self.watched_kinds = self._groups.watched_kinds

    # Events

    def events(self) -> tuple[Interest, ...]:
        """A member or a group is added, or fewer members are sufficient."""
        return (
            on(Resource.UNSCHEDULED_POD, Action.ADD, self._is_completed_by_pod),
            on(Resource.ASSIGNED_POD, Action.ADD, self._is_completed_by_pod),
            on(Resource.POD_GROUP, Action.ADD, self._is_completed_by_group),
            on(Resource.POD_GROUP, Action.UPDATE, self._needs_fewer),
            on(Resource.COMPOSITE_POD_GROUP, Action.ADD, self._is_completed_by_group),
        )

    def _is_completed_by_pod(self, pod: Pod, old: None, new: Pod) -> bool:
        added = group_of(new)
        return added is not None and self._is_of_same_tree(pod, added)

    def _is_completed_by_group(self, pod: Pod, old: None, new: Group) -> bool:
        return self._is_of_same_tree(pod, key_of(new))

    def _needs_fewer(self, pod: Pod, old: PodGroup, new: PodGroup) -> bool:
        before, after = old.spec.scheduling_policy.gang, new.spec.scheduling_policy.gang
        if before is None or after is None or after.min_count >= before.min_count:
            return False
        return self._is_of_same_tree(pod, key_of(new))

    def _is_of_same_tree(self, pod: Pod, other: GroupKey) -> bool:
        own = group_of(pod)
        if own is None or own.namespace != other.namespace:
            return False
        if not self._groups.is_nested:
            return own == other
        root = self._groups.root_of(own)
        return root is not None and root == self._groups.root_of(other)

    # Before the queue

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Gate a member until enough of its group are there."""
        key = group_of(pod)
        if key is None:
            return None
        group, root = self._groups.get(key), self._groups.root_of(key)
        if group is None:
            return unresolvable(WAITING_FOR_GROUP.format(key.name))
        if root is None:
            return unresolvable(f"failed to build hierarchy snapshot: a parent of {key} is not known")
        if self._has_quorum(root, self._groups.known_count):
            return None
        return unresolvable(WAITING_FOR_TREE.format(root.name) if root.is_composite else WAITING_FOR_PODS)

    def _has_quorum(self, key: GroupKey, count: _Count) -> bool:
        """Whether enough pods, or parts, of a group count."""
        group = self._groups.get(key)
        if group is None:
            return False
        if key.is_composite:
            ready = sum(self._has_quorum(child, count) for child in self._groups.children(key))
            return ready >= group.quorum
        if group.spec.scheduling_policy.gang is None and not (self._groups.is_nested and group.parent):
            return True
        return count(key) >= group.quorum

    # The cycle of a group

    def placement_feasible(
        self, cycle: CycleState, group: PodGroupInfo, progress: PlacementProgress
    ) -> Status | None:
        """Whether enough parts have nodes, or can still get one."""
        needed, scheduled, remaining = group.group.quorum, progress.scheduled, progress.remaining
        counts = f"{scheduled} scheduled, {remaining} remaining"
        if remaining + scheduled < needed:
            return unschedulable(f"minCount ({needed}) cannot be satisfied: {counts}")
        if scheduled < needed:
            return wait(0, f"minCount ({needed}) is not yet satisfied: {counts}")
        return None

    def permit(self, cycle: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Hold a member until enough are assumed or bound; the one that completes them lets all go."""
        key = group_of(pod)
        if key is None:
            return None
        root = self._groups.root_of(key)
        if root is None:
            raise LookupError(f"failed to get podGroup {key}: it is not known, or one of its parents")
        if not self._has_quorum(root, self._groups.scheduled_count):
            self._handle.activate_group(root)
            if log.v >= 4:
                message = "Quorum is not met for a gang. Waiting for another pod to allow"
                activated = len(self._groups.unscheduled(root))
                log.info(4, message, pod=kobj(pod), schedulingGroup=key.name, activatedPods=activated)
            reason = WAITING_FOR_TREE.format(root.name) if root.is_composite else WAITING_FOR_NODES
            return wait(self._permit_timeout_seconds(key), reason)
        if held := self._handle.waiting.held_by(self.name):
            uids = [uid for leaf in self._groups.leaves(root) for uid in self._groups.scheduled_uids(leaf)]
            for waiting in [held[uid] for uid in uids if uid in held]:
                waiting.allow(self.name)
        if log.v >= 4:
            message = "Quorum is met for a gang. Allowing other pods from a gang waiting on permit"
            log.info(4, message, pod=kobj(pod), schedulingGroup=key.name)
        return None

    def _permit_timeout_seconds(self, key: GroupKey) -> float:
        """How long a member of a group waits for the others."""
        return PERMIT_TIMEOUT_SECONDS
