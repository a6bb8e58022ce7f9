"""Writes the conditions of PodGroups."""

from __future__ import annotations

from typing import Final, NamedTuple

from moorage.api.manifests import Manifest, timestamp
from moorage.api.pod_groups import INITIALLY_SCHEDULED, Group, GroupKey
from moorage.client.client import Client
from moorage.client.kinds import POD_GROUP
from moorage.clock import Clock
from moorage.cluster.pod_groups import PodGroups
from moorage.http.errors import ConnectionFailed, RequestError
from moorage.klog import UNHANDLED, Logger, kobj

_MAX_SCHEDULED_GROUPS: Final = 10_000

log = Logger(__name__)


class _Outcome(NamedTuple):
    """What the condition is to say."""

    status: str
    reason: str
    message: str


class GroupStatusWriter:
    """Patches the condition that says whether a group was scheduled; a failure to write is only logged.

    A group has at most one write in flight; of outcomes that arrive meanwhile, the last is written next.
    """

    def __init__(self, client: Client, clock: Clock, groups: PodGroups) -> None:
        self._client = client
        self._clock = clock
        self._groups = groups
        self._in_flight: dict[str, _Outcome | None] = {}
        """By a group's uid: the outcome that follows the write in flight."""
        self._scheduled: dict[str, None] = {}
        """Groups whose condition was set to True and is not seen to be yet, by uid."""

    async def initially_scheduled(self, key: GroupKey, status: str, reason: str, message: str) -> None:
        """Set a group's condition; one that is True stays as it is. Only Kubernetes' own kind has it."""
        group = self._groups.get(key)
        if group is None or not group.is_native:
            return
        uid, outcome = group.metadata.uid, _Outcome(status, reason, message)
        if uid in self._in_flight:
            following = self._in_flight[uid]
            if following is None or following.status != "True":
                self._in_flight[uid] = outcome
            return
        try:
            next_outcome: _Outcome | None = outcome
            while next_outcome is not None:
                self._in_flight[uid] = None
                await self._write(key, uid, next_outcome)
                next_outcome = self._in_flight[uid]
        finally:
            del self._in_flight[uid]

    async def _write(self, key: GroupKey, uid: str, outcome: _Outcome) -> None:
        group = self._groups.get(key)
        if (
            group is None
            or group.metadata.uid != uid
            or (condition := self._condition(group, outcome)) is None
        ):
            return
        patch = {"metadata": {"uid": uid}, "status": {"conditions": [condition]}}
        try:
            await self._client.patch(POD_GROUP, key.namespace, key.name, patch, "strategic", "status")
        except (RequestError, ConnectionFailed) as error:
            self._scheduled.pop(uid, None)
            if not isinstance(error, RequestError) or not error.is_not_found:
                log.error(error, "Failed to update PodGroup status", logger=UNHANDLED, podGroup=kobj(group))

    def _condition(self, group: Group, outcome: _Outcome) -> Manifest | None:
        """The condition to write; None if it is set already."""
        known, uid = group.condition(INITIALLY_SCHEDULED), group.metadata.uid
        is_true = known is not None and known.status == "True"
        if is_true:
            self._scheduled.pop(uid, None)
        if (is_true or uid in self._scheduled) and outcome.status != "True":
            return None
        if known is not None and outcome == (known.status, known.reason, known.message):
            return None
        if outcome.status == "True":
            self._scheduled[uid] = None
            if len(self._scheduled) > _MAX_SCHEDULED_GROUPS:
                del self._scheduled[next(iter(self._scheduled))]
        condition: Manifest = {"type": INITIALLY_SCHEDULED, **outcome._asdict()}
        if group.metadata.generation:
            condition["observedGeneration"] = group.metadata.generation
        if known is None or known.status != outcome.status:
            condition["lastTransitionTime"] = timestamp(self._clock.utc_now())
        return condition
