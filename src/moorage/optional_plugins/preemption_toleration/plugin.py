"""PreemptionToleration: DefaultPreemption that spares pods whose PriorityClass makes them safe.

It runs in place of DefaultPreemption. A preemptor for which there will be room when tolerations end is tried
again when the first of them does: until then nothing else may happen that would requeue it.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from moorage import (
    Code,
    CycleState,
    DefaultPreemption,
    DefaultPreemptionArgs,
    Diagnosis,
    GroupDryRun,
    Handle,
    Nodes,
    Pod,
    PodGroupInfo,
    PodGroupPostFilterResult,
    PostFilterResult,
    Status,
    microseconds,
)
from moorage.optional_plugins.preemption_toleration.policy import PRIORITY_CLASS
from moorage.optional_plugins.preemption_toleration.retries import Retries
from moorage.optional_plugins.preemption_toleration.room import with_room
from moorage.optional_plugins.preemption_toleration.tolerations import (
    FOR_EVER,
    SECOND,
    Times,
    Tolerations,
)

ROOM_LATER: Final = (
    "There will be room when pods no longer tolerate preemption, the first of them from {} on."
)


class PreemptionTolerationArgs(DefaultPreemptionArgs):
    """The number of candidate nodes that preemption evaluates, as for DefaultPreemption."""

    def __post_init__(self) -> None:
        self.check()


class Sparing(NamedTuple):
    """Which pods have a lower priority, and when they tolerate preemption no longer: one entry per row."""

    lower: NDArray[np.bool_]
    ends: Times
    now: int

    @property
    def potential_victims(self) -> NDArray[np.bool_]:
        """The pods that tolerate nothing, or not any more."""
        return self.lower & (self.ends <= self.now)

    @property
    def victims_to_be(self) -> NDArray[np.bool_]:
        """The pods that tolerate preemption now, and not for ever."""
        return self.lower & (self.ends > self.now) & (self.ends < FOR_EVER)

    @property
    def victims_at_last(self) -> NDArray[np.bool_]:
        """The pods that do not tolerate preemption for ever."""
        return self.lower & (self.ends < FOR_EVER)


class PreemptionToleration(DefaultPreemption):
    """DefaultPreemption without the pods that tolerate it."""

    name = "PreemptionToleration"
    replaces = {"post_filter": ("DefaultPreemption",)}
    watched_kinds = (*DefaultPreemption.watched_kinds, PRIORITY_CLASS)

    def __init__(self, args: PreemptionTolerationArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._tolerations = Tolerations()
        self._retries = Retries(handle)

    def potential_victims(
        self, pod: Pod, nodes: Nodes, group: PodGroupInfo | None
    ) -> NDArray[np.bool_] | None:
        """The pods of lower priority but for those that tolerate preemption; None: all of them."""
        sparing = self._sparing(pod.priority if group is None else group.priority, nodes)
        return None if sparing is None else sparing.potential_victims

    def _sparing(self, priority: int, nodes: Nodes) -> Sparing | None:
        """The pods that tolerate preemption by a priority now; None: there are none."""
        now = microseconds(self._handle.clock.utc_now())
        lower = self.priorities(nodes) < priority
        ends = self._tolerations.ends(nodes, lower, priority, now)
        return None if ends is None else Sparing(lower, ends, now)

    def post_filter(
        self, cycle: CycleState, pod: Pod, nodes: Nodes, diagnosis: Diagnosis
    ) -> PostFilterResult | Status | Awaitable[PostFilterResult | Status]:
        """As DefaultPreemption; a pod that is refused is tried again when a toleration has ended."""
        answer = super().post_filter(cycle, pod, nodes, diagnosis)
        self._retries.remove(pod.uid)
        if not isinstance(answer, PostFilterResult) or answer.status.code is Code.SUCCESS:
            return answer
        end = self._first_end(cycle, pod, nodes, diagnosis)
        if end is None:
            return answer
        self._retries.put(pod.uid, pod, end, lambda: self._handle.activate([pod]))
        return PostFilterResult(_told(answer.status, end), nominated_node=answer.nominated_node)

    def _first_end(self, cycle: CycleState, pod: Pod, nodes: Nodes, diagnosis: Diagnosis) -> int | None:
        """When the first pod tolerates preemption no longer where there will be room; None: nowhere."""
        sparing = self._sparing(pod.priority, nodes)
        if sparing is None or not (open_ended := sparing.victims_to_be).any():
            return None
        has_room = with_room(
            self._handle, cycle, pod, nodes, diagnosis, gone=sparing.victims_at_last, some=open_ended
        )
        return _first(sparing.ends[open_ended & has_room[nodes.snapshot.pods.node_rows]])

    async def pod_group_post_filter(
        self, cycle: CycleState, group: PodGroupInfo, dry_run: GroupDryRun
    ) -> PodGroupPostFilterResult:
        """As DefaultPreemption; a group that is refused is tried again when a toleration has ended."""
        answer = await super().pod_group_post_filter(cycle, group, dry_run)
        self._retries.remove(group.key)
        if answer.status.code is Code.SUCCESS or not answer.is_evaluated:
            return answer
        end = await self._first_end_for_group(group, dry_run)
        if end is None:
            return answer
        member = next(group.all_pods())
        self._retries.put(group.key, member, end, lambda: self._handle.activate_group(group.key))
        return replace(answer, status=_told(answer.status, end))

    async def _first_end_for_group(self, group: PodGroupInfo, dry_run: GroupDryRun) -> int | None:
        """When the first pod tolerates preemption no longer, if there will be room at last; else None.

        The pods that may be evicted now were removed before.
        """
        nodes = dry_run.nodes()
        sparing = self._sparing(group.priority, nodes)
        if sparing is None or not (open_ended := sparing.victims_to_be).any():
            return None
        end = _first(sparing.ends[open_ended])
        infos = nodes.snapshot.pods.infos
        dry_run.remove([infos[row].pod for row in np.flatnonzero(sparing.victims_at_last).tolist()])
        found = await dry_run.schedule()
        return end if found.status.code is Code.SUCCESS else None


def _first(ends: Times) -> int | None:
    return int(ends.min()) if len(ends) else None


def _told(status: Status, end: int) -> Status:
    """A refusal that says when the next try may be of use."""
    moment = datetime.fromtimestamp(end / SECOND, UTC)
    return Status(status.code, (f"{status.message} {ROOM_LATER.format(f'{moment:%Y-%m-%dT%H:%M:%SZ}')}",))
