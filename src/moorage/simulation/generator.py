"""Random workloads: pods that arrive at random, with random requests, run times and priorities.

Arrivals are a Poisson process, run times have a log-normal distribution, requests and priorities are chosen
among given ones. The same seed gives the same pods.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from moorage.api.base import ObjectMeta
from moorage.api.decode import InputError
from moorage.api.pod import Container, Pod, PodSpec, ResourceRequirements
from moorage.api.quantity import parse_quantity
from moorage.simulation.workload import Arrival

NAMESPACE: Final = "default"
_SIGMA: Final = 1.0
"""Standard deviation of the logarithm of run times: nine in ten are between 0.1 and 3 times the mean."""


@dataclass(frozen=True, slots=True)
class Generator:
    """What is generated."""

    count: int
    interval_seconds: float = 1.0
    """Mean time between two arrivals; 0: all pods arrive at the start."""
    duration_seconds: float = 600.0
    """Mean run time; 0: pods run until they are deleted."""
    cpu: Sequence[str] = ("100m", "250m", "500m", "1", "2", "4")
    memory: Sequence[str] = ("128Mi", "256Mi", "512Mi", "1Gi", "2Gi", "4Gi")
    priorities: Sequence[int] = (0,)

    def arrivals(self, seed: int) -> Iterator[Arrival]:
        """The pods, in order."""
        random, now = Random(seed), 0.0
        specs = _Specs(self)
        for number in range(self.count):
            meta = ObjectMeta(name=f"pod-{number}", namespace=NAMESPACE, labels={"app": "generated"})
            pod = Pod(api_version="v1", kind="Pod", metadata=meta, spec=specs.choose(random))
            yield Arrival(now, pod, self._duration(random))
            if self.interval_seconds:
                now = round(now + random.expovariate(1 / self.interval_seconds), 3)

    def _duration(self, random: Random) -> float | None:
        if not self.duration_seconds:
            return None
        mu = math.log(self.duration_seconds) - _SIGMA**2 / 2
        return round(random.lognormvariate(mu, _SIGMA), 3)


class _Specs:
    """The specs of generated pods; equal ones are one object."""

    def __init__(self, generator: Generator) -> None:
        self._generator = generator
        self._known: dict[tuple[str, str, int], PodSpec] = {}

    def choose(self, random: Random) -> PodSpec:
        wanted = self._generator
        key = random.choice(wanted.cpu), random.choice(wanted.memory), random.choice(wanted.priorities)
        spec = self._known.get(key)
        if spec is None:
            spec = self._known[key] = _spec(*key)
        return spec


def _spec(cpu: str, memory: str, priority: int) -> PodSpec:
    try:
        requests = {"cpu": parse_quantity(cpu), "memory": parse_quantity(memory)}
    except ValueError as error:
        raise InputError("generated pods", str(error)) from None
    container = Container(name="main", image="generated", resources=ResourceRequirements(requests=requests))
    return PodSpec(containers=(container,), priority=priority)
