"""The results of a simulation: figures, reasons of pending pods, and amounts over time.

Everything is derived from virtual time: the same input and seed give the same bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec

from moorage.simulation.records import (
    CPU,
    CPU_TOTAL,
    CPU_USED,
    MEMORY,
    MEMORY_TOTAL,
    MEMORY_USED,
    NODES,
    PENDING_PODS,
    PRICE,
    RUNNING_PODS,
    NodeRecord,
    Outcome,
    PodRecord,
    Records,
)
from moorage.simulation.time_series import TimeSeries

FORMAT: Final = "moorage.io/v1alpha1"
KIND: Final = "Simulation"
_SECONDS_PER_HOUR: Final = 3600.0
_DIGITS: Final = 6
"""Number of decimals in results."""


class WaitingTimes(msgspec.Struct, rename="camel"):
    """How long pods waited from their creation to their binding, in seconds."""

    mean: float
    p50: float
    p90: float
    p99: float
    max: float


class PendingReason(msgspec.Struct, rename="camel"):
    """Why pods are pending at the end."""

    message: str
    """What the scheduler says of the last attempt; empty for pods that were not tried."""
    pods: int


class Utilisation(msgspec.Struct, rename="camel"):
    """Requests of pods on nodes, as a share of what nodes have."""

    mean: float
    peak: float


class Sample(msgspec.Struct, rename="camel"):
    """Means over a span of time."""

    at_seconds: float
    running_pods: float
    pending_pods: float
    nodes: float
    cpu: float
    """The share of cpu that is requested."""
    memory: float


class SimulationResult(msgspec.Struct, rename="camel", kw_only=True):
    """All results; times are seconds since the start."""

    api_version: str = FORMAT
    kind: str = KIND
    complete: bool
    """False if it was interrupted: everything is as it was then."""
    seed: int
    seconds: float
    pods: dict[str, int]
    """Number of pods, by what has become of them; `Created` are all."""
    failed_attempts: int
    waiting_seconds: WaitingTimes | None
    """None if no pod was bound."""
    pending: list[PendingReason]
    utilisation: dict[str, Utilisation]
    cost: float
    """The price of all nodes over the whole time."""
    course: list[Sample]
    placements: list[PodRecord]
    nodes: list[NodeRecord]
    """All nodes, each as often as it was added, in the order of that."""


def result_of(records: Records, seed: int, *, is_complete: bool) -> SimulationResult:
    """The results of what was recorded."""
    course = records.course
    counts = Counter(each.outcome for each in records.pods)
    return SimulationResult(
        complete=is_complete,
        seed=seed,
        seconds=round(course.seconds, _DIGITS),
        pods={"Created": len(records.pods), **{str(each): counts[each] for each in Outcome}},
        failed_attempts=records.failed_attempts,
        waiting_seconds=_waiting_times(records.pods),
        pending=_pending(records.pods),
        utilisation={
            CPU: _utilisation(course, CPU_USED, CPU_TOTAL),
            MEMORY: _utilisation(course, MEMORY_USED, MEMORY_TOTAL),
        },
        cost=round(course.mean(PRICE) * course.seconds / _SECONDS_PER_HOUR, _DIGITS),
        course=_samples(course),
        placements=records.pods,
        nodes=records.nodes,
    )


def _waiting_times(pods: Sequence[PodRecord]) -> WaitingTimes | None:
    waited = sorted(seconds for each in pods if (seconds := each.waiting_seconds) is not None)
    if not waited:
        return None
    ranks = (waited[min(int(len(waited) * share), len(waited) - 1)] for share in (0.5, 0.9, 0.99, 1.0))
    return WaitingTimes(*(round(each, _DIGITS) for each in (sum(waited) / len(waited), *ranks)))


def _pending(pods: Sequence[PodRecord]) -> list[PendingReason]:
    counts = Counter(each.message for each in pods if each.outcome is Outcome.PENDING)
    return [PendingReason(*each) for each in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]


def _utilisation(course: TimeSeries, used: int, total: int) -> Utilisation:
    shares = [_share(bucket.means[used], bucket.means[total]) for bucket in course.buckets()]
    return Utilisation(
        round(_share(course.mean(used), course.mean(total)), _DIGITS),
        round(max(shares, default=0.0), _DIGITS),
    )


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _samples(course: TimeSeries) -> list[Sample]:
    return [
        Sample(
            *(
                round(each, _DIGITS)
                for each in (
                    bucket.start_seconds,
                    bucket.means[RUNNING_PODS],
                    bucket.means[PENDING_PODS],
                    bucket.means[NODES],
                    _share(bucket.means[CPU_USED], bucket.means[CPU_TOTAL]),
                    _share(bucket.means[MEMORY_USED], bucket.means[MEMORY_TOTAL]),
                )
            )
        )
        for bucket in course.buckets()
    ]
