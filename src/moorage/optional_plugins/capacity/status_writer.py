"""Writes what is used into the status of ElasticQuotas, a second after it has changed.

Where nothing changes, it is looked at less and less often, but once a minute as long as anything is used:
pods end without a scheduling cycle.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from moorage import ConnectionFailed, Handle, RequestError, format_amount, whole_units
from moorage.optional_plugins.capacity.elastic_quota import ELASTIC_QUOTA, ElasticQuota
from moorage.optional_plugins.capacity.usage import Usage

_FIRST_PAUSE_SECONDS: Final = 1.0
_MAX_PAUSE_SECONDS: Final = 60.0

log = logging.getLogger("moorage.capacity")


class Write(NamedTuple):
    """What is to be written of a quota. The resources of the status that are gone are None."""

    quota: ElasticQuota
    used: Mapping[str, str | None]


class StatusWriter:
    """Writes the status of all quotas, one after another; a failure is logged until the next change."""

    def __init__(self, handle: Handle, usage: Usage) -> None:
        self._handle = handle
        self._usage = usage
        self._pause_seconds = _FIRST_PAUSE_SECONDS
        self._is_waiting = False
        self._is_writing = False
        self._written: dict[str, Mapping[str, int]] = {}
        """What was written last, by uid."""

    def changes(self) -> None:
        """What is used may be about to change."""
        self._pause_seconds = _FIRST_PAUSE_SECONDS
        if not self._is_waiting:
            self._wait()

    def _wait(self) -> None:
        self._is_waiting = True
        self._handle.clock.call_later(self._pause_seconds, self._due)

    def _due(self) -> None:
        self._is_waiting = False
        if self._handle.has_ended:
            return
        if self._is_writing:
            self._wait()
            return
        self._usage.follow(self._handle.nodes())
        writes = list(self._outdated())
        if writes:
            self._pause_seconds = _FIRST_PAUSE_SECONDS
            self._is_writing = True
            self._handle.in_background(self._write(writes))
        else:
            self._pause_seconds = min(2 * self._pause_seconds, _MAX_PAUSE_SECONDS)
        if writes or any(any(used.values()) for used in self._usage.used):
            self._wait()

    def _outdated(self) -> Iterable[Write]:
        """The quotas whose status is not what is used."""
        by_key = self._usage.by_key()
        known: dict[str, Mapping[str, int]] = {}
        for quota in self._handle.objects.of(ElasticQuota):
            uid, of_quota = quota.metadata.uid, by_key.get(quota.key, {})
            used = {name: of_quota.get(name, 0) for name in {**quota.spec.min, **quota.spec.max}}
            shown = {name: whole_units(name, amount) for name, amount in quota.status.used.items()}
            if used != shown and used != self._written.get(uid):
                texts = {name: format_amount(name, amount) for name, amount in used.items()}
                yield Write(quota, {**dict.fromkeys(shown), **texts})
            known[uid] = used
        self._written = known

    async def _write(self, writes: Iterable[Write]) -> None:
        try:
            for quota, used in writes:
                await self._write_one(quota, used)
        finally:
            self._is_writing = False

    async def _write_one(self, quota: ElasticQuota, used: Mapping[str, str | None]) -> None:
        patch, client = {"status": {"used": used}}, self._handle.client
        try:
            await client.patch(ELASTIC_QUOTA, quota.namespace, quota.name, patch, "merge", "status")
        except (RequestError, ConnectionFailed) as error:
            log.warning("ElasticQuota %s: its status was not written: %s", quota.key, error)
