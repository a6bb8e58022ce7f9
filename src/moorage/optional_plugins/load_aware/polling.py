"""Reads the usage of nodes again and again, beside the scheduling cycles, and drops what is too old."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from moorage import Handle, microseconds
from moorage.optional_plugins.load_aware.arguments import LoadAwareArgs
from moorage.optional_plugins.load_aware.readings import (
    SECOND,
    NodeUsage,
    Usage,
    put_reading,
    reading_of,
)
from moorage.optional_plugins.load_aware.sources import ReadFailed, Source

log = logging.getLogger("moorage.load_aware")

_AGE: Final = "Age of the oldest usage of a node that counts, in seconds, when usage was read last."
_FAILED: Final = "Number of times that the usage of nodes could not be read."
_BY_REQUESTS: Final = "Number of nodes whose use is estimated by requests, because there is no usage of them."


class Polling:
    """Puts what is read for one profile where cycles see it; calls `changed` with the usage before."""

    def __init__(
        self, handle: Handle, source: Source, args: LoadAwareArgs, changed: Callable[[Usage], None]
    ) -> None:
        self._handle = handle
        self._source = source
        self._timeout_seconds = float(args.timeout)
        self._max_age = args.max_age
        self._changed = changed
        self._is_failing = False
        self._by_requests = 0
        metrics, labels = handle.metrics, ("profile",)
        self._age = metrics.gauge("moorage_load_aware_usage_age_seconds", _AGE, labels)
        self._failed = metrics.counter("moorage_load_aware_failed_reads_total", _FAILED, labels)
        self._nodes = metrics.gauge("moorage_load_aware_nodes_by_requests", _BY_REQUESTS, labels)
        self._failed.labels(handle.profile)

    async def poll(self) -> None:
        """Read once."""
        known = reading_of(self._handle.objects, self._handle.profile)
        self._put(known)
        try:
            known = await self._handle.within(self._timeout_seconds, self._source.read())
        except (ReadFailed, TimeoutError) as error:
            self._note_failure(str(error))
        else:
            self._note_success()
            self._put(known)
        self._show()

    def _now(self) -> int:
        return microseconds(self._handle.clock.utc_now())

    def _put(self, usage: Usage) -> None:
        """Count with usage from now on, as far as it is not too old; a time in the future counts as now."""
        objects, profile, now = self._handle.objects, self._handle.profile, self._now()
        oldest = now - round(self._max_age * SECOND)
        recent = {name: _at_latest(each, now) for name, each in usage.items() if each.end >= oldest}
        if recent != reading_of(objects, profile):
            self._changed(recent)
            put_reading(objects, profile, recent)

    def _note_failure(self, reason: str) -> None:
        self._failed.labels(self._handle.profile).inc()
        if not self._is_failing:
            self._is_failing = True
            message = "LoadAware: reading the usage of nodes failed: %s; the last usage counts for up to %s"
            log.warning(message, reason, self._max_age)

    def _note_success(self) -> None:
        if self._is_failing:
            self._is_failing = False
            log.info("LoadAware: the usage of nodes is read again")

    def _show(self) -> None:
        """Say how old usage is, and for how many nodes there is none."""
        profile = self._handle.profile
        usage = reading_of(self._handle.objects, profile)
        ends = [each.end for each in usage.values()]
        age = (self._now() - min(ends)) / SECOND if ends else 0.0
        self._age.labels(profile).set(max(age, 0.0))
        names = self._handle.nodes().names
        by_requests = sum(name not in usage for name in names)
        self._nodes.labels(profile).set(by_requests)
        if by_requests and by_requests != self._by_requests:
            message = "LoadAware: %d of %d nodes have no usage of the last %s: they count with requests"
            level = logging.WARNING if by_requests == len(names) else logging.INFO
            log.log(level, message, by_requests, len(names), self._max_age)
        elif self._by_requests and not by_requests:
            log.info("LoadAware: all nodes have usage")
        self._by_requests = by_requests


def _at_latest(usage: NodeUsage, now: int) -> NodeUsage:
    """Usage whose age is counted from now on, if its node's clock is ahead."""
    if usage.end <= now:
        return usage
    return NodeUsage(cpu=usage.cpu, memory=usage.memory, begin=usage.begin, end=now)
