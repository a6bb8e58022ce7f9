"""A measurement of everything at one moment, and the curves that samples are of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from moorage_cluster.soak.usage import Usage

Curve = list[tuple[float, float]]
"""Values by the number of pods that had been created."""

RESIDENT: Final = "resident memory (MiB)"
BLOCKS: Final = "memory blocks"
DESCRIPTORS: Final = "descriptors"
TASKS: Final = "tasks"
PENDING: Final = "pods without a node"
OBJECTS: Final = "objects of "
"""What curves of objects begin with; the type follows."""


class Latencies(msgspec.Struct, frozen=True):
    """How long the pods of an interval waited for a node, in seconds."""

    p50: float
    p90: float
    p99: float


class Sample(msgspec.Struct, frozen=True):
    """One moment, and the interval before it."""

    seconds: float
    """Time of the cluster since the beginning."""
    created: int
    """Number of pods that had been created."""
    bound: int
    """Number of pods that had been bound."""
    pending: int
    """Number of pods without a node."""
    usage: Usage
    pods_per_second: float
    """Pods bound in the interval, for each second of it."""
    cpu_milli: float
    """CPU time of the interval for each pod that was bound in it, in milliseconds."""
    latencies: Latencies


def percentiles(values: Sequence[float]) -> Latencies:
    """The percentiles of sorted values; zeros where there is none."""
    if not values:
        return Latencies(0.0, 0.0, 0.0)
    return Latencies(*(values[min(int(len(values) * share), len(values) - 1)] for share in (0.5, 0.9, 0.99)))


def curves(samples: Sequence[Sample]) -> Iterator[tuple[str, Curve]]:
    """What may not grow, by name."""
    yield RESIDENT, [(each.created, each.usage.resident_mib) for each in samples]
    yield DESCRIPTORS, [(each.created, each.usage.descriptors) for each in samples]
    yield PENDING, [(each.created, each.pending) for each in samples]
    inside = [(each.created, each.usage.inside) for each in samples if each.usage.inside is not None]
    if inside:
        yield BLOCKS, [(at, each.blocks) for at, each in inside]
        yield TASKS, [(at, each.tasks) for at, each in inside]
        for name in sorted({name for _, each in inside for name in each.objects}):
            yield f"{OBJECTS}{name}", [(at, each.objects.get(name, 0)) for at, each in inside]
