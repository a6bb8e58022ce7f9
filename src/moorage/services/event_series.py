"""Events as objects: what they are about, and what happens again becomes a series instead of many events."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final, NamedTuple
from uuid import UUID

from moorage.api.manifests import Manifest, micro_timestamp
from moorage.api.names import dns_subdomain_problems
from moorage.api.pod import Pod
from moorage.client.kinds import EVENT

MOST_NOTE_BYTES: Final = 1024
"""What the API server accepts of an event's note."""
_CUT: Final = " ..."
_PLAIN_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,60}[a-z0-9]\.[0-9a-f]{1,16}")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class Reference(NamedTuple):
    """What an event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: str

    @classmethod
    def to_pod(cls, pod: Pod) -> Reference:
        """A pod, as it is now: with its next version begins another series."""
        meta = pod.metadata
        return cls("v1", "Pod", meta.namespace, meta.name, meta.uid, meta.resource_version)

    def manifest(self) -> Manifest:
        """The reference as events carry it."""
        fields = {
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
            "apiVersion": self.api_version,
            "resourceVersion": self.resource_version,
        }
        return {key: value for key, value in fields.items() if value}


class Happening(NamedTuple):
    """Something that happened: an event before it is an object."""

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
        """Equal keys are the same thing happening again; the note may differ."""
        return self[1:-1]


@dataclass(slots=True, eq=False)
class Entry:
    """An event that may happen again."""

    namespace: str
    name: str
    event: Manifest
    """As it was when it first happened."""
    last: datetime
    count: int = 1
    is_stored: bool = False
    """Whether the API server is known to have it."""
    is_stale: bool = False
    """Whether there is something to write."""
    is_waiting: bool = False
    """Whether somebody is going to write it, or is writing it now."""

    @property
    def is_series(self) -> bool:
        """Whether it has happened more than once."""
        return self.count > 1

    @property
    def series(self) -> Manifest:
        """How often it has happened, and when last."""
        return {"count": self.count, "lastObservedTime": micro_timestamp(self.last)}

    def manifest(self) -> Manifest:
        """The event as it is now."""
        return {**self.event, "series": self.series} if self.is_series else self.event


class Names:
    """Names for events, no two alike."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._last_nanoseconds = 0

    def name(self, subject: str, at: datetime) -> str:
        """The subject's name and the time; something else where that is no name for an object."""
        nanoseconds = (at - _EPOCH) // _MICROSECOND * 1000
        self._last_nanoseconds = nanoseconds = max(nanoseconds, self._last_nanoseconds + 1)
        name = f"{subject}.{nanoseconds:x}"
        # Mostly the subject's name is one for any object; looking closer takes longer than all else here.
        if not _PLAIN_NAME.fullmatch(name) and dns_subdomain_problems(name):
            return str(UUID(int=self._random.getrandbits(128), version=4))
        return name


def new_entry(happened: Happening, names: Names) -> Entry:
    """An event that has happened for the first time."""
    namespace = happened.regarding.namespace or "default"
    name = names.name(happened.regarding.name, happened.at)
    event: Manifest = {
        "apiVersion": EVENT.api_version,
        "kind": EVENT.name,
        "metadata": {"name": name, "namespace": namespace},
        "eventTime": micro_timestamp(happened.at),
        "reportingController": happened.controller,
        "reportingInstance": happened.instance,
        "action": happened.action,
        "reason": happened.reason,
        "regarding": happened.regarding.manifest(),
        "note": cut_note(happened.note),
        "type": happened.type,
    }
    if happened.related is not None:
        event["related"] = happened.related.manifest()
    return Entry(namespace, name, event, happened.at)


def cut_note(note: str) -> str:
    """A note that the API server accepts."""
    encoded = note.encode()
    if len(encoded) <= MOST_NOTE_BYTES:
        return note
    return encoded[: MOST_NOTE_BYTES - len(_CUT)].decode(errors="ignore") + _CUT
