"""Events: stored once and served by two groups, with different names for the same fields."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from moorage.api.manifests import Manifest
from moorage_cluster.apiserver.tables.base import NAME, Printer, TableColumn
from moorage_cluster.apiserver.tables.cells import ago, at, mapping, number, text
from moorage_cluster.apiserver.tables.columns import Columns, Shown, derived, name_of, text_at, timed


def _either(event: Manifest, *names: str) -> Any:
    """A field by the name that either group gives it."""
    return next((event[name] for name in names if event.get(name)), None)


def _first_seen(event: Manifest, now: datetime) -> str:
    return ago(_either(event, "firstTimestamp", "deprecatedFirstTimestamp", "eventTime"), now)


def _last_seen(event: Manifest, now: datetime) -> str:
    if at(event, "series") is not None:
        return ago(at(event, "series", "lastObservedTime"), now)
    last = _either(event, "lastTimestamp", "deprecatedLastTimestamp")
    return ago(last, now) if last else _first_seen(event, now)


def _count(event: Manifest) -> int:
    if at(event, "series") is not None:
        return number(event, "series", "count")
    return number(event, "count") or number(event, "deprecatedCount") or 1


def _object(event: Manifest) -> str:
    about = _either(event, "involvedObject", "regarding")
    kind, name = text(about, "kind").lower(), text(about, "name")
    return f"{kind}/{name}" if name else kind


def _source(event: Manifest) -> str:
    source = mapping(_either(event, "source", "deprecatedSource"))
    component = (
        text(source, "component") or text(event, "reportingComponent") or text(event, "reportingController")
    )
    instance = text(source, "host") or text(event, "reportingInstance")
    return f"{component}, {instance}" if instance else component


EVENTS = Columns(
    timed("Last Seen", _last_seen, "How long ago it happened last."),
    text_at("Type", "type", "Normal, or Warning."),
    text_at("Reason", "reason", "What happened, in one word."),
    derived("Object", _object, "What it happened to."),
    derived(
        "Subobject",
        lambda event: text(_either(event, "involvedObject", "regarding"), "fieldPath"),
        "Which part of it.",
        wide=True,
    ),
    derived("Source", _source, "Who saw it.", wide=True),
    derived(
        "Message",
        lambda event: str(_either(event, "message", "note") or "").strip(),
        "What happened, in words.",
    ),
    Shown(TableColumn("First Seen", description="How long ago it happened first.", priority=1), _first_seen),
    derived("Count", _count, "How often it happened.", wide=True),
    Shown(
        TableColumn(NAME.name, NAME.type, NAME.format, NAME.description, priority=1),
        lambda obj, _: name_of(obj),
    ),
)

PRINTERS: Final[dict[tuple[str, str], Printer]] = {
    ("", "Event"): EVENTS,
    ("events.k8s.io", "Event"): EVENTS,
}
"""The tables of this family, by group and kind."""
