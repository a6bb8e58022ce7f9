"""Whether watchers saw each change once, in order, and none was missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from moorage_cluster.chaos.durability.history import Call, History, Session

_EXISTS_BEFORE: Final = {"ADDED": False, "MODIFIED": True, "DELETED": True}


def watch_problems(history: History) -> Iterator[str]:
    """What is wrong with what watchers saw."""
    writes = [call for call in history.calls if call.is_acknowledged_write]
    deletions = [call for call in history.calls if call.verb == "delete" and call.code]
    contents = {call.version: (call.key, call.content) for call in writes}
    for session in history.sessions:
        yield from _disorder(session)
        yield from _missing(session, writes)
        yield from _missing_deletions(session, writes, deletions)
        yield from _other_contents(session, contents)


def _disorder(session: Session) -> Iterator[str]:
    """Events that do not follow each other."""
    last, existing = session.revision, set(session.listed)
    for event in session.events:
        if event.version <= last:
            yield f"an event of {event.key} at version {event.version} came after one at {last}"
        if _EXISTS_BEFORE[event.type] != (event.key in existing):
            yield f"{event.type} of {event.key} at version {event.version} does not follow what was seen"
        (existing.discard if event.type == "DELETED" else existing.add)(event.key)
        last = event.version


def _missing(session: Session, writes: Sequence[Call]) -> Iterator[str]:
    """Acknowledged writes that are neither in the list nor among the events."""
    seen = {event.version for event in session.events}
    for call in writes:
        if session.revision < call.version <= session.end and call.version not in seen:
            yield f"the {call.verb} of {call.key} at version {call.version} was not seen"
        elif call.version <= session.revision and call.ended_at < session.begun_at:
            listed, _ = session.listed.get(call.key, (call.version, ""))
            if listed < call.version:
                yield f"{call.key} was listed at version {listed}, after {call.version} was acknowledged"


def _missing_deletions(session: Session, writes: Sequence[Call], deletions: Sequence[Call]) -> Iterator[str]:
    """Acknowledged deletions, after which something was written that was seen, without an event of theirs.

    A deletion names the version that it deletes, and its answer has none.
    """
    seen = [(event.key, event.version) for event in session.events if event.type == "DELETED"]
    latest = max((call.begun_at for call in writes if call.version <= session.end), default=0.0)
    for call in deletions:
        if call.code != 200 or call.begun_at < session.listed_at or call.ended_at > latest:
            continue
        if not any(key == call.key and version > call.expected for key, version in seen):
            yield f"the deletion of {call.key} at version {call.expected} was not seen"


def _other_contents(session: Session, contents: dict[int, tuple[str, str]]) -> Iterator[str]:
    """Objects that are not what was written under their version, or not what another watcher saw."""
    seen = [(event.version, event.key, event.content) for event in session.events if event.type != "DELETED"]
    seen += [(version, key, content) for key, (version, content) in session.listed.items()]
    for version, key, content in seen:
        known = contents.setdefault(version, (key, content))
        if known != (key, content):
            yield f"{key} was seen as {content!r} at version {version}, which is {known}"
