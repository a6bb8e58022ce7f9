"""What arrives in a simulated cluster: pods, each at a time, most of them with a run time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from moorage.api.base import Object
from moorage.api.decode import InputError
from moorage.api.pod import Pod
from moorage.api.pod_groups import PodGroup
from moorage.config.duration import parse_duration

ARRIVAL: Final = "moorage.io/arrival"
"""Annotation of a pod: when it is created, such as `10m` after the start; without it, at the start."""
DURATION: Final = "moorage.io/duration"
"""Annotation of a pod: how long it runs once it is bound, such as `30s`; without it, until it is deleted."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A pod that is created at a time."""

    at_seconds: float
    pod: Pod
    duration_seconds: float | None = None
    """How long it runs once it is bound; None: until it is deleted."""
    group: PodGroup | None = None
    """A group that is created just before it; None: none is."""


def in_order(arrivals: Iterable[Arrival]) -> Iterator[Arrival]:
    """Arrivals as they come; InputError if one is earlier than the one before."""
    before = 0.0
    for arrival in arrivals:
        if arrival.at_seconds < before:
            raise InputError(
                f"pod {arrival.pod.key}",
                f"arrives at {arrival.at_seconds:g} s, but the pod before it at {before:g} s",
            )
        before = arrival.at_seconds
        yield arrival


def arrivals_of(objects: Iterable[Object]) -> list[Arrival]:
    """The pods among some objects, in the order in which they arrive."""
    pods = [each for each in objects if isinstance(each, Pod)]
    return sorted((_arrival_of(pod) for pod in pods), key=lambda each: each.at_seconds)


def _arrival_of(pod: Pod) -> Arrival:
    at_seconds = _seconds(pod, ARRIVAL)
    return Arrival(0.0 if at_seconds is None else at_seconds, pod, duration_of(pod))


def duration_of(pod: Pod) -> float | None:
    """How long a pod runs, by its annotation; None: until it is deleted."""
    return _seconds(pod, DURATION)


def _seconds(pod: Pod, annotation: str) -> float | None:
    return seconds_of(pod.metadata.annotations, annotation, f"pod {pod.key}")


def seconds_of(annotations: Mapping[str, str], annotation: str, where: str) -> float | None:
    """A time that an annotation says, in seconds; None without it; InputErrors name `where`."""
    text = annotations.get(annotation)
    if text is None:
        return None
    try:
        seconds = float(parse_duration(str(text)))
    except ValueError as error:
        raise InputError(where, f"annotation {annotation}: {error}") from None
    if seconds < 0:
        raise InputError(where, f"annotation {annotation}: {text} is negative")
    return seconds


def others_of(objects: Iterable[Object]) -> Sequence[Object]:
    """The objects that are no pods: they are in the cluster from the start."""
    return [each for each in objects if not isinstance(each, Pod)]
