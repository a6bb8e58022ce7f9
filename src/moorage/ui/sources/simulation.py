"""Results of simulations: when pods came, were bound and ended, in seconds of virtual time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec
from msgspec.structs import replace

from moorage.api.decode import InputError
from moorage.api.resource_requests import CPU, MEMORY
from moorage.simulation.records import NodeRecord, PodRecord
from moorage.simulation.results import SimulationResult
from moorage.ui.documents import NodeState, PodState
from moorage.ui.scheduler_link import UNSCHEDULABLE, queue_feature
from moorage.ui.sources.file_source import FileSource
from moorage.ui.timeline import Timeline

_Change = tuple[float, str, NodeState | PodState | None, bool]
"""When, the name or key, the state from then on, and whether it is a node's."""


def simulation_source(document: Mapping[str, Any], where: str) -> FileSource:
    """What `moorage simulate -o json` has written; InputError if it is not that."""
    try:
        result = msgspec.convert(document, SimulationResult)
    except msgspec.ValidationError as error:
        raise InputError(where, f"not a result of a simulation: {error}") from None
    source = FileSource("simulation", where)
    if not result.complete:
        source.note("The simulation was interrupted: everything is as it was then.")
    fill(source.timeline, result)
    source.add(queue_feature(source.timeline, None))
    return source


def fill(timeline: Timeline, result: SimulationResult) -> None:
    """Add all changes to a timeline, those of one moment as one batch."""
    # An object of a name is gone before another of that name comes, which sorting by time alone keeps so.
    changes = [
        *(change for each in result.nodes for change in _of_node(each)),
        *(change for each in result.placements for change in _of_pod(each, result.seconds)),
    ]
    for time, batch in groupby(sorted(changes, key=itemgetter(0)), key=itemgetter(0)):
        for _, name, state, is_node in batch:
            put: Any = timeline.put_node if is_node else timeline.put_pod
            put(name, state)
        timeline.close_batch(time)


def _of_node(record: NodeRecord) -> Iterator[_Change]:
    allocatable = {CPU: record.cpu_milli, MEMORY: record.memory_bytes}
    yield record.added_at, record.name, NodeState(allocatable=allocatable, created=record.added_at), True
    if record.removed_at is not None:
        yield record.removed_at, record.name, None, True


def _of_pod(record: PodRecord, end: float) -> Iterator[_Change]:
    key = f"{record.namespace}/{record.name}"
    pending = PodState(
        requests={CPU: record.cpu_milli, MEMORY: record.memory_bytes},
        phase="Pending",
        created=record.arrived_at,
    )
    yield record.arrived_at, key, pending, False
    if record.bound_at is not None:
        yield record.bound_at, key, replace(pending, node=record.node, phase="Running"), False
    if record.ended_at is not None:
        yield record.ended_at, key, None, False
    elif record.message:
        # What the last attempt has said is known, but not when it was made.
        refused = replace(pending, reason=UNSCHEDULABLE, message=record.message)
        yield max(end, record.arrived_at), key, refused, False
