"""Events as objects; repeated ones become a series instead of many events.

The structs contain no cycles: the garbage collector need not track the thousands that are kept.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final
from uuid import UUID

import msgspec

from moorage.api.manifests import micro_timestamp
from moorage.api.names import dns_subdomain_problems
from moorage.api.pod import Pod
from moorage.client.kinds import EVENT

MAX_NOTE_BYTES: Final = 1024
"""Maximum length of an event's note in the API server."""
_CUT: Final = " ..."
_PLAIN_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,60}[a-z0-9]\.[0-9a-f]{1,16}")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class Reference(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """An object reference as events carry it; unknown fields are left out."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""

    @classmethod
    def to_pod(cls, pod: Pod) -> Reference:
        """A pod in its current version; its next version begins another series."""
        meta = pod.metadata
        return cls("v1", "Pod", meta.namespace, meta.name, meta.uid, meta.resource_version)


class Occurrence(msgspec.Struct, frozen=True, gc=False):
    """One occurrence of an event, before it is an object."""

    at: datetime
    controller: str
    instance: str
    regarding: Reference
    related: Reference | None
    type: str
    reason: str
    action: str
    note: str

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for occurrences of one series; the note may differ."""
        return (
            self.controller,
            self.instance,
            self.regarding,
            self.related,
            self.type,
            self.reason,
            self.action,
        )


class _Metadata(msgspec.Struct, gc=False):
    name: str
    namespace: str


class Series(msgspec.Struct, rename="camel", gc=False):
    """Number of occurrences, and the time of the last one."""

    count: int
    last_observed_time: str


class Event(msgspec.Struct, rename="camel", kw_only=True, gc=False):
    """An event as it is written."""

    api_version: str = EVENT.api_version
    kind: str = EVENT.name
    metadata: _Metadata
    event_time: str
    reporting_controller: str
    reporting_instance: str
    action: str
    reason: str
    regarding: Reference
    related: Reference | msgspec.UnsetType = msgspec.UNSET
    note: str
    type: str
    series: Series | msgspec.UnsetType = msgspec.UNSET


class SeriesEntry(msgspec.Struct, eq=False, gc=False):
    """An event that may be repeated."""

    namespace: str
    name: str
    event: Event
    """As it first occurred, or was last written."""
    last: datetime
    count: int = 1
    is_stored: bool = False
    """Whether the API server is known to have it."""
    is_stale: bool = False
    """Whether there is something to write."""
    is_waiting: bool = False
    """Whether a writer has it, or is going to."""

    @property
    def is_series(self) -> bool:
        """Whether it occurred more than once."""
        return self.count > 1

    @property
    def series(self) -> Series:
        """Number of occurrences, and the time of the last one."""
        return Series(self.count, micro_timestamp(self.last))

    def current(self) -> Event:
        """The event with its current series."""
        if self.is_series:
            self.event.series = self.series
        return self.event


class EventNames:
    """Generates unique names of events."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._last_nanoseconds = 0

    def name(self, subject: str, at: datetime) -> str:
        """The subject's name and the time; a generic name where that is not valid."""
        nanoseconds = (at - _EPOCH) // _MICROSECOND * 1000
        self._last_nanoseconds = nanoseconds = max(nanoseconds, self._last_nanoseconds + 1)
        name = f"{subject}.{nanoseconds:x}"
        # Fast path: most subjects' names are valid, and full validation takes longer than all else here.
        if not _PLAIN_NAME.fullmatch(name) and dns_subdomain_problems(name):
            return str(UUID(int=self._random.getrandbits(128), version=4))
        return name


def new_entry(occurrence: Occurrence, names: EventNames) -> SeriesEntry:
    """The entry of an event that occurred for the first time."""
    namespace = occurrence.regarding.namespace or "default"
    name = names.name(occurrence.regarding.name, occurrence.at)
    event = Event(
        metadata=_Metadata(name, namespace),
        event_time=micro_timestamp(occurrence.at),
        reporting_controller=occurrence.controller,
        reporting_instance=occurrence.instance,
        action=occurrence.action,
        reason=occurrence.reason,
        regarding=occurrence.regarding,
        related=occurrence.related or msgspec.UNSET,
        note=cut_note(occurrence.note),
        type=occurrence.type,
    )
    return SeriesEntry(namespace, name, event, occurrence.at)


def cut_note(note: str) -> str:
    """A note cut to the length that the API server accepts."""
    encoded = note.encode()
    if len(encoded) <= MAX_NOTE_BYTES:
        return note
    return encoded[: MAX_NOTE_BYTES - len(_CUT)].decode(errors="ignore") + _CUT
