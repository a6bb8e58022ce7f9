"""Until when pods on nodes tolerate preemption, as columns: one entry per row of the snapshot's pod table.

The class of each pod, and when it was scheduled, are kept in columns that follow pods coming and going; what
is left for a cycle is arithmetic. Times are in microseconds since 1970.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from moorage import Nodes, Objects, Pod, PodColumn, PodInfo, microseconds
from moorage.optional_plugins.preemption_toleration.policy import (
    NO_TOLERATION,
    Policy,
    PriorityClass,
    policy_of,
)

FOR_EVER: Final[int] = np.iinfo(np.int64).max
"""The end of a toleration that has none."""
SECOND: Final = 1_000_000
"""A second, in microseconds."""
_MAX_SECONDS: Final = 10**10
"""Number of seconds (317 years) from which on a toleration is for ever: times have to fit an int64."""
_LATEST: Final = 253_370_764_800 * SECOND
"""The year 9999: tolerations that end later are for ever, because no time can be written for it."""
_NOT_SCHEDULED: Final = -1
"""In place of the time of pods that have no condition PodScheduled=True: they are being bound."""

log = logging.getLogger("moorage.preemption_toleration")

Times = NDArray[np.int64]


def scheduled_at(pod: Pod) -> int:
    """When a pod was scheduled; -1 if the API server does not say so yet."""
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "True":
            time = condition.last_transition_time
            return 0 if time is None else microseconds(time)
    return _NOT_SCHEDULED


class Tolerations:
    """Knows the policies of PriorityClasses and the pods on nodes that have them."""

    def __init__(self) -> None:
        self._policies: Mapping[str, Policy] = {}
        self._source: tuple[Any, int] = (None, 0)
        self._codes: dict[str, int] = {}
        self._classes = PodColumn(np.int32, self._code_of)
        self._scheduled = PodColumn(np.int64, lambda info: scheduled_at(info.pod))

    def ends(self, nodes: Nodes, lower: NDArray[np.bool_], priority: int, now: int) -> Times | None:
        """When the toleration of each pod towards preemptors of a priority ends.

        lower: the pods of lower priority, one entry per row; others are not looked at. Zero or past: a pod
        tolerates nothing (any more). None: this holds for all of them. A pod that is still being bound
        counts as scheduled now, and tolerates for a second at least.
        """
        policies = self._policies_of(nodes.objects)
        codes = self._classes.values(nodes.snapshot.pods)
        minimum, lasting = _columns([policies.get(name, NO_TOLERATION) for name in self._codes])
        rows = np.flatnonzero((minimum[codes] > priority) & lower)
        if not len(rows):
            return None
        lasting = lasting[codes[rows]]
        began, is_bound = self._scheduled_at(nodes, rows)
        end = np.where(is_bound, began + lasting, now + np.maximum(lasting, SECOND))
        ends = np.zeros(len(codes), np.int64)
        ends[rows] = np.where((lasting < 0) | (end > _LATEST), FOR_EVER, end)
        return ends if (ends > now).any() else None

    def _scheduled_at(self, nodes: Nodes, rows: NDArray[np.intp]) -> tuple[Times, NDArray[np.bool_]]:
        """When the pods of some rows were scheduled, and which of them were.

        Once true, the condition stays as it is; only that it becomes true has to be noticed.
        """
        table = nodes.snapshot.pods
        open_rows = rows[self._scheduled.values(table)[rows] == _NOT_SCHEDULED]
        if len(open_rows):
            self._scheduled.renew(table, open_rows.tolist())
        times: Times = self._scheduled.values(table)[rows]
        return times, times != _NOT_SCHEDULED

    def _code_of(self, info: PodInfo) -> int:
        """The code of a pod's PriorityClass."""
        return self._codes.setdefault(info.pod.spec.priority_class_name, len(self._codes))

    def _policies_of(self, objects: Objects) -> Mapping[str, Policy]:
        """The policies of all classes that can be read, by name."""
        table = objects.of(PriorityClass)
        if self._source != (table, table.version):
            self._policies = {each.name: _policy_or_none(each) for each in table}
            self._source = (table, table.version)
        return self._policies


def _policy_or_none(priority_class: PriorityClass) -> Policy:
    """The policy of a class; no toleration if it cannot be read."""
    try:
        return policy_of(priority_class)
    except ValueError as error:
        log.warning("PriorityClass %s: pods do not tolerate preemption: %s", priority_class.name, error)
        return NO_TOLERATION


def _columns(policies: Sequence[Policy]) -> tuple[Times, Times]:
    """The minimum preemptable priority of each policy, and its toleration in microseconds; -1: for ever."""
    seconds = [each.toleration_seconds for each in policies]
    lasting = [each * SECOND if 0 <= each < _MAX_SECONDS else -1 for each in seconds]
    minimum = [policy.minimum_preemptable_priority for policy in policies]
    return np.array(minimum, np.int64), np.array(lasting, np.int64)
