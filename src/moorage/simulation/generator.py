"""Random workloads: pods that arrive at random, with random requests, run times and priorities.

By default, arrivals are a Poisson process, run times have a log-normal distribution, and requests and
priorities are chosen among given ones. Some pods may be in gangs, which arrive and run together, with equal
requests and run times. The same seed gives the same pods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from random import Random
from typing import Final

from msgspec.structs import replace

from moorage.api.base import ObjectMeta
from moorage.api.decode import InputError
from moorage.api.pod import Container, Pod, PodSchedulingGroup, PodSpec, ResourceRequirements
from moorage.api.pod_groups import GangPolicy, GroupSpec, PodGroup, SchedulingPolicy
from moorage.api.quantity import parse_quantity
from moorage.simulation.random_times import Arrivals, Durations, arrival_times, run_time
from moorage.simulation.weighted import Choices, choose
from moorage.simulation.workload import Arrival

NAMESPACE: Final = "default"
_LABELS: Final = {"app": "generated"}


@dataclass(frozen=True, slots=True)
class Generator:
    """What is generated."""

    count: int
    interval_seconds: float = 1.0
    """Mean time between two arrivals; 0: all pods arrive at the start."""
    duration_seconds: float = 600.0
    """Mean run time; 0: pods run until they are deleted."""
    cpu: Choices[str] = ("100m", "250m", "500m", "1", "2", "4")
    memory: Choices[str] = ("128Mi", "256Mi", "512Mi", "1Gi", "2Gi", "4Gi")
    priorities: Choices[int] = (0,)
    arrival_process: Arrivals = Arrivals.POISSON
    burst_size: int = 10
    """Number of pods in a burst, if they arrive in bursts."""
    durations: Durations = Durations.LOGNORMAL
    resources: Mapping[str, Choices[str]] = field(default_factory=dict)
    """Amounts of extended resources to choose among, by name; of `0`, nothing is requested."""
    gang_share: float = 0.0
    """The share of pods that are in gangs: all of a gang get nodes at once, or none."""
    gang_size: int = 8

    def arrivals(self, seed: int) -> Iterator[Arrival]:
        """The pods, in order."""
        random, number, gangs = Random(seed), 0, 0
        times = arrival_times(self.arrival_process, self.interval_seconds, self.burst_size, random)
        specs = _Specs(self)
        while number < self.count:
            now = next(times)
            is_gang = self.gang_share > 0 and self._is_gang(self.count - number, random)
            spec, seconds = specs.choose(random), run_time(self.durations, self.duration_seconds, random)
            if not is_gang:
                yield Arrival(now, _pod(number, spec), seconds)
                number += 1
                continue
            group = _group(gangs, self.gang_size, spec)
            spec = _in_group(spec, group.name)
            for member in range(self.gang_size):
                yield Arrival(now, _pod(number + member, spec), seconds, group if member == 0 else None)
            # Its pods arrive together, at the time of the first; those of the others pass.
            for _ in islice(times, self.gang_size - 1):
                pass
            number, gangs = number + self.gang_size, gangs + 1

    def _is_gang(self, left: int, random: Random) -> bool:
        """Whether the next pods are a gang: as often as gives gangs their share of the pods."""
        share, size = self.gang_share, self.gang_size
        return random.random() < share / (size * (1 - share) + share) and left >= size


class _Specs:
    """The specs of generated pods; equal ones are one object."""

    def __init__(self, generator: Generator) -> None:
        self._generator = generator
        self._known: dict[tuple[str | int, ...], PodSpec] = {}

    def choose(self, random: Random) -> PodSpec:
        wanted = self._generator
        cpu, memory = choose(wanted.cpu, random), choose(wanted.memory, random)
        priority = choose(wanted.priorities, random)
        extended = {name: choose(amounts, random) for name, amounts in wanted.resources.items()}
        key: tuple[str | int, ...] = (cpu, memory, priority, *extended.values())
        spec = self._known.get(key)
        if spec is None:
            spec = self._known[key] = _spec({"cpu": cpu, "memory": memory}, extended, priority)
        return spec


def _spec(amounts: Mapping[str, str], extended: Mapping[str, str], priority: int) -> PodSpec:
    try:
        requests = {name: parse_quantity(amount) for name, amount in {**amounts, **extended}.items()}
    except ValueError as error:
        raise InputError("generated pods", str(error)) from None
    for name in extended:
        if not requests[name]:
            del requests[name]
    container = Container(name="main", image="generated", resources=ResourceRequirements(requests=requests))
    return PodSpec(containers=(container,), priority=priority)


def _pod(number: int, spec: PodSpec) -> Pod:
    meta = ObjectMeta(name=f"pod-{number}", namespace=NAMESPACE, labels=_LABELS)
    return Pod(api_version="v1", kind="Pod", metadata=meta, spec=spec)


def _group(number: int, size: int, spec: PodSpec) -> PodGroup:
    policy = SchedulingPolicy(gang=GangPolicy(min_count=size))
    return PodGroup(
        metadata=ObjectMeta(name=f"gang-{number}", namespace=NAMESPACE),
        spec=GroupSpec(scheduling_policy=policy, priority=spec.priority),
    )


def _in_group(spec: PodSpec, name: str) -> PodSpec:
    return replace(spec, scheduling_group=PodSchedulingGroup(pod_group_name=name))
