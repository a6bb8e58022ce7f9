"""The conditions of groups, as a scheduler writes them that may not have seen its last write yet."""

from __future__ import annotations

from moorage.api.base import Condition
from moorage.api.pod_groups import INITIALLY_SCHEDULED, GroupKey
from moorage.cluster.pod_groups import PodGroups

ConditionFields = tuple[str, ...]
"""Status, reason and message of a condition."""


class GroupConditions:
    """What the conditions of groups on the API server may be.

    What is left of a group that was scheduled is tried again at once. Whether the scheduler has seen by then
    the condition that it has just written is a race; a patch has what differs from the one that it has seen.
    """

    def __init__(self, groups: PodGroups) -> None:
        self._groups = groups
        self._stored: dict[GroupKey, set[ConditionFields | None]] = {}
        self._before: dict[GroupKey, set[ConditionFields | None]] = {}

    def possible(self, key: GroupKey) -> set[ConditionFields | None]:
        """A group's condition (status, reason, message), or those it may have; None: it has none."""
        if key not in self._stored:
            group = self._groups.get(key)
            known = None if group is None else condition_fields(group.condition(INITIALLY_SCHEDULED))
            self._stored[key] = {known}
        return self._stored[key]

    def settle(self, key: GroupKey, recorded: ConditionFields | None) -> None:
        """Follow the recorded one of several."""
        self._stored[key] = {recorded}

    def catch_up(self) -> None:
        """The scheduler sees all conditions."""
        self._before.clear()

    def forget(self, key: GroupKey) -> None:
        """A group was deleted."""
        self._stored.pop(key, None)
        self._before.pop(key, None)

    def write(self, key: GroupKey, *fields: str) -> None:
        """Patch a condition."""
        stored = self.possible(key)
        seen = self._before.get(key, set())
        self._stored[key] = {
            _patched(stale, current, fields) for current in stored for stale in (*seen, current)
        }
        self._before[key] = stored


def _patched(
    seen: ConditionFields | None, stored: ConditionFields | None, fields: ConditionFields
) -> ConditionFields | None:
    """A condition after a patch by a scheduler that has seen a certain one; one seen as True stays True."""
    if seen is not None and seen[0] == "True" != fields[0]:
        return stored
    if seen is None or stored is None:
        return fields
    return tuple(kept if new == known else new for new, known, kept in zip(fields, seen, stored, strict=True))


def condition_fields(condition: Condition | None) -> ConditionFields | None:
    """What is compared of a condition."""
    return None if condition is None else (condition.status, condition.reason, condition.message)
