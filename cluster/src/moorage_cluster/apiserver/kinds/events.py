"""Events: what happened to objects, in the two forms of the core and the events.k8s.io group.

Both forms are stored as one object, the core one; `to_events` and `to_core` convert between them. Events are
written often, so both only move top-level fields and share everything below.
"""

from __future__ import annotations

from typing import Final

from moorage.api.manifests import Manifest
from moorage.apimachinery.fields import FieldError, invalid, required
from moorage.apimachinery.validation.checks import check_unchanged
from moorage.apimachinery.validation.names import check_qualified_name, check_subdomain
from moorage_cluster.apiserver.strategy import Strategy

CORE_VERSION: Final = "v1"
EVENTS_VERSION: Final = "events.k8s.io/v1"
_CORE_NAMES: Final = {
    "regarding": "involvedObject",
    "note": "message",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
    "reportingController": "reportingComponent",
}
_EVENTS_NAMES: Final = {core: new for new, core in _CORE_NAMES.items()}
_SUBJECT_FIELDS: Final = tuple(
    (key, f"involvedObject.{key}", f"regarding.{key}")
    for key in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
)
_MAX_BYTES: Final = 128
_MAX_BYTES_OF_TEXT: Final = 1024
_OLD_FIELDS = ("deprecatedSource", "deprecatedFirstTimestamp", "deprecatedLastTimestamp", "deprecatedCount")
_NEW_FIELDS = ("action", "related", "reportingController", "reportingInstance")
_NOT_ITS_NAMESPACE = "does not match event.namespace"


def to_core(event: Manifest) -> Manifest:
    """Convert an event of events.k8s.io/v1 to v1."""
    core = {_CORE_NAMES.get(key, key): value for key, value in event.items()}
    core["apiVersion"] = CORE_VERSION
    return core


def to_events(event: Manifest) -> Manifest:
    """Convert an event of v1 to events.k8s.io/v1."""
    new = {_EVENTS_NAMES.get(key, key): value for key, value in event.items()}
    new["apiVersion"] = EVENTS_VERSION
    return new


class EventStrategy(Strategy):
    """An event of the core group."""

    allows_create_on_update = True

    def default(self, obj: Manifest) -> None:
        """Add the fields that are always present."""
        for key in ("involvedObject", "source"):
            if key not in obj:
                obj[key] = {}
        obj.setdefault("reportingComponent", "")
        obj.setdefault("reportingInstance", "")

    def validate(self, obj: Manifest) -> list[FieldError]:
        """The event is in its object's namespace; an event time requires a reporter, reason and action."""
        return _check_common(obj, "involvedObject", "reportingComponent", "message")

    def selectable(self, obj: Manifest) -> dict[str, str]:
        """Selectable by object, reason, type and source."""
        return selectable_fields(obj)


class EventsEventStrategy(Strategy):
    """An event of the events.k8s.io group, in that group's form."""

    allows_create_on_update = True

    def default(self, obj: Manifest) -> None:
        """Add the fields that are always present."""
        for key in ("regarding", "deprecatedSource"):
            if key not in obj:
                obj[key] = {}

    def validate(self, obj: Manifest) -> list[FieldError]:
        """A new event does not set the deprecated fields."""
        errors = _check_common(obj, "regarding", "reportingController", "note")
        errors += _check_series(obj)
        if not obj.get("eventTime"):
            errors.append(required("eventTime"))
        kind = obj.get("type", "")
        if kind not in ("Normal", "Warning"):
            errors.append(invalid("type", "", f"has invalid value: {kind}"))
        for key in (
            "deprecatedFirstTimestamp",
            "deprecatedLastTimestamp",
            "deprecatedCount",
            "deprecatedSource",
        ):
            if obj.get(key):
                errors.append(invalid(_CORE_NAMES[key], "", "needs to be unset"))
        return errors

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """Only the series may change."""
        errors = _check_common(obj, "regarding", "reportingController", "note")
        if obj.get("series") != old.get("series"):
            errors += _check_series(obj)
        for key in ("regarding", "reason", "note", *_OLD_FIELDS, "type", "eventTime", *_NEW_FIELDS):
            path = key if key == "reportingController" else _CORE_NAMES.get(key, key)
            errors += check_unchanged(obj.get(key), old.get(key), path)
        return errors

    def selectable(self, obj: Manifest) -> dict[str, str]:
        """Selectable by object, reason, type and source."""
        return selectable_fields(obj)


def selectable_fields(event: Manifest) -> dict[str, str]:
    """The selectable fields of an event of either form, under the names of both groups.

    Clients of both groups search for events regardless of the group an event was written in.
    """
    about: Manifest = event.get("involvedObject") or event.get("regarding") or {}
    source: Manifest = event.get("source") or event.get("deprecatedSource") or {}
    reporter = event.get("reportingComponent") or event.get("reportingController", "")
    fields = {
        "reason": event.get("reason", ""),
        "type": event.get("type", ""),
        "source": source.get("component") or reporter,
        "reportingComponent": reporter,
        "reportingController": reporter,
    }
    for key, core_name, new_name in _SUBJECT_FIELDS:
        fields[core_name] = fields[new_name] = about.get(key, "")
    return fields


def _check_common(event: Manifest, subject_key: str, reporter_key: str, text_key: str) -> list[FieldError]:
    """Validation errors of an event of either form; the keys are the names that differ."""
    namespace = event["metadata"].get("namespace", "")
    subject = (event.get(subject_key) or {}).get("namespace", "")
    path = "involvedObject.namespace"
    errors = []
    if not event.get("eventTime"):
        misplaced = namespace != subject if subject else namespace not in ("", "default")
        if misplaced:
            errors.append(invalid(path, subject, _NOT_ITS_NAMESPACE))
    else:
        if not subject and namespace not in ("default", "kube-system"):
            errors.append(invalid(path, subject, _NOT_ITS_NAMESPACE))
        reporter = event.get(reporter_key, "")
        if not reporter:
            errors.append(required(reporter_key))
        errors += check_qualified_name(reporter, reporter_key)
        for key in ("reportingInstance", "action", "reason"):
            text = event.get(key, "")
            if not text:
                errors.append(required(key))
            errors += _check_length(key, text, _MAX_BYTES)
        errors += _check_length("message", event.get(text_key, ""), _MAX_BYTES_OF_TEXT)
    return errors + check_subdomain(namespace, "namespace")


def _check_length(path: str, text: str, most_bytes: int) -> list[FieldError]:
    if len(text.encode()) <= most_bytes:
        return []
    return [invalid(path, "", f"can have at most {most_bytes} characters")]


def _check_series(event: Manifest) -> list[FieldError]:
    series = event.get("series")
    if series is None:
        return []
    errors = []
    if series.get("count", 0) < 2:
        errors.append(invalid("series.count", "", "should be at least 2"))
    if not series.get("lastObservedTime"):
        errors.append(required("series.lastObservedTime"))
    return errors
