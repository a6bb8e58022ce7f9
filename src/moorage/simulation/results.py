"""The results of a simulation: figures, reasons of pending pods, and amounts over time.

Everything is derived from virtual time: the same input and seed give the same bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from moorage.api.resource_requests import CPU, MEMORY, PODS
from moorage.simulation.records import (
    NODES,
    PENDING_PODS,
    PRICE,
    RUNNING_PODS,
    NodeRecord,
    Outcome,
    PodRecord,
    Records,
    ResourceAmounts,
)
from moorage.simulation.time_series import Bucket, TimeSeries

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


class Fragmentation(msgspec.Struct, rename="camel"):
    """The share of what is free of a resource that is on nodes where a typical pod does not fit."""

    mean: float
    peak: float
    typical_pod: dict[str, str]
    """What the typical pod that requests the resource requested at the end; empty if there is none."""


class Sample(msgspec.Struct, rename="camel"):
    """Means over a span of time."""

    at_seconds: float
    running_pods: float
    pending_pods: float
    nodes: float
    cpu: float
    """The share of cpu that is requested."""
    memory: float
    extended: dict[str, float]
    """The share that is requested of each extended resource."""
    fragmentation: dict[str, float]
    """By resource, the share of what is free that is of no use for a typical pod."""


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
    """By resource: cpu, memory, and the extended resources of nodes."""
    fragmentation: dict[str, Fragmentation]
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
        utilisation={name: _utilisation(course, each) for name, each in records.resources.items()},
        fragmentation={
            name: _fragmentation(course, each, records.fragmentation.typical[name])
            for name, each in records.resources.items()
        },
        cost=round(course.means()[PRICE] * course.seconds / _SECONDS_PER_HOUR, _DIGITS),
        course=_samples(course, records.resources),
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


def _utilisation(course: TimeSeries, amounts: ResourceAmounts) -> Utilisation:
    peak = max((_requested(bucket.means, amounts) for bucket in course.buckets()), default=0.0)
    return Utilisation(_requested(course.means(), amounts), peak)


def _fragmentation(course: TimeSeries, amounts: ResourceAmounts, typical: Mapping[str, int]) -> Fragmentation:
    peak = max((_unusable(bucket.means, amounts) for bucket in course.buckets()), default=0.0)
    shown = {name: _quantity(name, amount) for name, amount in typical.items() if name != PODS}
    return Fragmentation(_unusable(course.means(), amounts), peak, shown)


def _quantity(name: str, amount: int) -> str:
    return f"{amount}m" if name == CPU else str(amount)


def _requested(means: Sequence[float], amounts: ResourceAmounts) -> float:
    return _share(means[amounts.requested], means[amounts.allocatable])


def _unusable(means: Sequence[float], amounts: ResourceAmounts) -> float:
    free = means[amounts.allocatable] - means[amounts.requested]
    # Pods that are still on a removed node request nothing of what is there.
    return min(_share(means[amounts.unusable], free), 1.0)


def _share(part: float, whole: float) -> float:
    return round(part / whole, _DIGITS) if whole > 0 else 0.0


def _samples(course: TimeSeries, resources: Mapping[str, ResourceAmounts]) -> list[Sample]:
    return [_sample(bucket, resources) for bucket in course.buckets()]


def _sample(bucket: Bucket, resources: Mapping[str, ResourceAmounts]) -> Sample:
    means = bucket.means
    requested = {name: _requested(means, amounts) for name, amounts in resources.items()}
    return Sample(
        round(bucket.start_seconds, _DIGITS),
        round(means[RUNNING_PODS], _DIGITS),
        round(means[PENDING_PODS], _DIGITS),
        round(means[NODES], _DIGITS),
        requested.pop(CPU),
        requested.pop(MEMORY),
        requested,
        {name: _unusable(means, amounts) for name, amounts in resources.items()},
    )
