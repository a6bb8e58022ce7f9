"""Coscheduling: enough pods of one of scheduler-plugins' PodGroups get nodes at once, or none does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from moorage.api.pod import Pod
from moorage.api.pod_groups import GroupKey, PodGroup, group_of
from moorage.client import kinds
from moorage.client.kinds import Kind
from moorage.cluster.object_tables import Objects
from moorage.config.args import CoschedulingArgs
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.dependencies import NOT_CONCERNED, DependsOn
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import SKIP, Status, unresolvable
from moorage.plugins.coscheduling.resource_gap import resource_gap
from moorage.plugins.gang_scheduling import GangScheduling
from moorage.plugins.priority_sort import PrioritySort

TWO_KINDS_OF_GROUPS = (
    "it schedules PodGroups of scheduling.x-k8s.io, the feature gate GenericWorkload those of "
    "scheduling.k8s.io; enable one of them"
)

_PERMIT_WAITING_SECONDS: Final = 60
"""How long members wait for each other if neither the group nor the arguments say so."""
_NO_ARGS: Final = CoschedulingArgs()
_WITHOUT_MINIMUM: Final = DependsOn(tables=(PodGroup,), reads=())


class Coscheduling(GangScheduling, PrioritySort):
    """Counts the members of groups, and what is free for them."""

    name = "Coscheduling"
    watched_kinds: tuple[Kind, ...] = (kinds.COSCHEDULING_POD_GROUP,)

    def __init__(self, handle: Handle, args: CoschedulingArgs = _NO_ARGS) -> None:
        if handle.version.features.generic_workload:
            raise ValueError(TWO_KINDS_OF_GROUPS)
        super().__init__(handle)
        self.watched_kinds = (kinds.COSCHEDULING_POD_GROUP,)
        self._permit_waiting_seconds = args.permit_waiting_time_seconds or _PERMIT_WAITING_SECONDS

    def depends_on(self, pod: Pod, objects: Objects) -> DependsOn | None:
        """On pods everywhere, for members of a group with minimum resources; on nothing for others."""
        key = group_of(pod)
        if key is None:
            return NOT_CONCERNED
        return _WITHOUT_MINIMUM if _minimum(key, objects) is None else None

    def pre_filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """The minimum resources of the group must be free, summed over all nodes."""
        key = group_of(pod)
        minimum = None if key is None else _minimum(key, nodes.objects)
        if key is None or minimum is None:
            return SKIP
        everywhere = nodes.all
        if not resource_gap(*minimum, everywhere):
            return SKIP
        pods = everywhere.snapshot.pods
        members = pods.rows_of(uid for uid in self._groups.scheduled_uids(key) if uid in pods)
        gap = resource_gap(*minimum, everywhere, members)
        return unresolvable(gap) if gap else SKIP

    def _permit_timeout_seconds(self, key: GroupKey) -> float:
        group = self._groups.get(key)
        spec = group.coscheduling if isinstance(group, PodGroup) else None
        own = 0 if spec is None else spec.schedule_timeout_seconds or 0
        return own if own > 0 else self._permit_waiting_seconds


def _minimum(key: GroupKey, objects: Objects) -> tuple[Mapping[str, str | int], int] | None:
    """The minimum resources and the minimum number of pods of a group; None if resources do not count."""
    group = objects.of(PodGroup).get(key.namespace, key.name)
    spec = None if group is None else group.coscheduling
    return None if spec is None or spec.min_resources is None else (spec.min_resources, spec.min_member)
