"""Google's ClusterData 2019 (trace v3): `instance_events` or `collection_events`, a pod for each attempt.

The tables are exports of BigQuery: JSON with an object a line, or CSV with a header
(github.com/google/cluster-data, clusterdata_trace_format_v3.proto). Read are time, type, collection_id,
instance_index, priority, collection_type, alloc_collection_id and resource_request.cpus and .memory; all
others are ignored. JSON has integers as numbers or as texts.

- time: microseconds; the trace begins at 600 s. 0 is before the trace, 2^63-1 after its end.
- type: 0 SUBMIT, 1 QUEUE, 2 ENABLE, 3 SCHEDULE, 4 EVICT, 5 FAIL, 6 FINISH, 7 KILL, 8 LOST, 9
  UPDATE_PENDING, 10 UPDATE_RUNNING. An instance that is submitted again after an end is another pod. It
  runs from SCHEDULE to its end; one that was never scheduled, for as long as it waited.
- resource_request: shares of the largest machine, when it is submitted or as it is updated before it
  runs.
- priority: 0 to 450, as the pod's.
- collection_type 1 are alloc sets: their instances reserve resources, so they are pods. Tasks with an
  alloc_collection_id run within such a reservation, and are left out.
- collection_events have neither requests nor instances: a collection is one pod without requests.

Events of an instance are scattered over a file, and over the shards of a table (`cat` puts those into one
file, also compressed ones): they are sorted by instance and time first, in a temporary folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any, Final

import msgspec

from moorage.simulation.traces import values
from moorage.simulation.traces.disk_sort import sorted_on_disk
from moorage.simulation.traces.pods import TracePod, requests_of
from moorage.simulation.traces.source import BadLineError, Row, TraceSource
from moorage.simulation.traces.units import TraceUnits

_TYPES: Final = (
    "SUBMIT",
    "QUEUE",
    "ENABLE",
    "SCHEDULE",
    "EVICT",
    "FAIL",
    "FINISH",
    "KILL",
    "LOST",
    "UPDATE_PENDING",
    "UPDATE_RUNNING",
)
_SCHEDULE: Final = _TYPES.index("SCHEDULE")
_ENDS: Final = range(_TYPES.index("EVICT"), _TYPES.index("LOST") + 1)
_NEEDED: Final = ("time", "type", "collection_id")
_START_SECONDS: Final = 600.0
"""When the trace begins."""
_AFTER_THE_END: Final = 2**63 - 1
_MICROSECONDS: Final = 1_000_000


class _Event(msgspec.Struct, frozen=True, array_like=True, gc=False):
    collection: int
    instance: int
    time: int
    line: int
    type: int
    priority: int
    cpus: float | None
    memory: float | None

    @property
    def seconds(self) -> float:
        return max(self.time / _MICROSECONDS - _START_SECONDS, 0.0)


def read_pods(source: TraceSource, added: Callable[[], None]) -> Iterator[TracePod]:
    """The pods of a table, in the order of instances; `added` is called for each event that is read."""
    is_table = source.path.name.removesuffix(".gz").endswith(".csv")
    rows = source.table(_NEEDED) if is_table else source.objects()
    events = sorted_on_disk(_events(source, rows), _Event, _by_instance, added)
    for _, of_instance in groupby(events, key=lambda event: (event.collection, event.instance)):
        yield from _attempts(of_instance, source.units)


def _by_instance(event: _Event) -> tuple[int, ...]:
    return event.collection, event.instance, event.time, event.line


def _events(source: TraceSource, rows: Iterable[tuple[int, Row]]) -> Iterator[_Event]:
    for line, row in rows:
        try:
            if not _integer(row, "alloc_collection_id"):
                yield _event(line, row)
        except BadLineError as error:
            source.bad(line, str(error))


def _event(line: int, row: Row) -> _Event:
    for name in _NEEDED:
        if row.get(name) is None:
            raise BadLineError(f"{name} is missing")
    requested = row.get("resource_request") or {}
    if not isinstance(requested, dict):
        raise BadLineError("resource_request: not an object with cpus and memory")
    time = values.integer(row["time"], "time")
    if time != _AFTER_THE_END:
        values.seconds(time / _MICROSECONDS, "time")
    return _Event(
        values.integer(row["collection_id"], "collection_id"),
        _integer(row, "instance_index"),
        time,
        line,
        _type(row["type"]),
        _integer(row, "priority"),
        _share(row, requested, "cpus"),
        _share(row, requested, "memory"),
    )


def _integer(row: Row, name: str) -> int:
    value = row.get(name)
    return 0 if value is None else values.integer(value, name)


def _type(value: Any) -> int:
    type = _TYPES.index(value) if value in _TYPES else values.integer(value, "type")
    if not 0 <= type < len(_TYPES):
        raise BadLineError(f"type: {type} is not a type of events")
    return type


def _share(row: Row, requested: dict[str, Any], name: str) -> float | None:
    field = f"resource_request.{name}"
    value = requested.get(name, row.get(field))
    return None if value is None else values.amount(value, field)


def _attempts(events: Iterable[_Event], units: TraceUnits) -> Iterator[TracePod]:
    """The pods of an instance, whose events are in the order of time."""
    attempt: _Attempt | None = None
    count = 0
    for event in events:
        if event.time == _AFTER_THE_END:
            continue
        if event.type not in _ENDS:
            attempt = attempt or _Attempt(event)
            attempt.add(event)
        elif attempt is not None:
            yield attempt.pod(units, count, event)
            attempt, count = None, count + 1
    if attempt is not None:
        yield attempt.pod(units, count, None)


class _Attempt:
    """An instance from its submission on."""

    def __init__(self, first: _Event) -> None:
        self._first = first
        self._ran_from: _Event | None = None
        self._cpus = self._memory = 0.0
        self._priority = first.priority

    def add(self, event: _Event) -> None:
        """What happened before its end."""
        if self._ran_from is None:
            self._cpus = self._cpus if event.cpus is None else event.cpus
            self._memory = self._memory if event.memory is None else event.memory
            self._priority = event.priority
        if event.type == _SCHEDULE:
            self._ran_from = self._ran_from or event

    def pod(self, units: TraceUnits, number: int, end: _Event | None) -> TracePod:
        """The pod; without an end, it runs on."""
        first = self._first
        began = self._ran_from or first
        name = f"{first.collection}-{first.instance}"
        return TracePod(
            first.seconds,
            first.line,
            f"{name}-{number}" if number else name,
            None if end is None else end.seconds - began.seconds,
            requests_of(units.cpu_milli(self._cpus), units.memory_bytes(self._memory)),
            priority=self._priority,
        )
