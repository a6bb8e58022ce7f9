"""The usage of containers, as a function of their run time.

Specified in an annotation, by resource: `cpu=200m~100m/60s,memory=100Mi+1Mi/s` is a CPU usage that swings
by 100m around 200m once a minute, and memory that begins at 100Mi and grows by 1Mi a second.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from moorage.api.manifests import Manifest
from moorage.api.quantity import NANO, parse_quantity
from moorage.api.resource_requests import CPU, EPHEMERAL_STORAGE, MEMORY
from moorage.config.duration import parse_duration

INODES: Final = "inodes"
PIDS: Final = "pids"
_NAMES: Final = (CPU, MEMORY, EPHEMERAL_STORAGE, INODES, PIDS)
_CURVE: Final = re.compile(
    r"(?P<base>[^+~]+)(?:\+(?P<rate>[^/~]+)/(?P<per>[smh]))?(?:~(?P<swing>[^/]+)/(?P<period>.+))?"
)
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600}
_EXAMPLE: Final = "(like cpu=200m~100m/60s,memory=100Mi+1Mi/s)"
_IDLE_CPU: Final = 10 * NANO // 1000
_IDLE_MEMORY: Final = 20 << 20
_IDLE_DISK: Final = 64 << 10
_IDLE_INODES: Final = 10


class ContainerUsage(NamedTuple):
    """Amounts in use: billionths of a core, bytes, bytes, counts."""

    cpu_nano: int = 0
    memory: int = 0
    disk: int = 0
    inodes: int = 0
    pids: int = 0

    def plus(self, other: ContainerUsage) -> ContainerUsage:
        """The sum of both."""
        return ContainerUsage(*(mine + more for mine, more in zip(self, other, strict=True)))


NOTHING: Final = ContainerUsage()


@dataclass(frozen=True, slots=True)
class Curve:
    """An amount over time: initial value, growth, oscillation."""

    base: float
    per_second: float = 0.0
    swing: float = 0.0
    period_seconds: float = 1.0

    def at(self, seconds: float) -> int:
        """The amount after a number of seconds."""
        amount = self.base + self.per_second * seconds
        if self.swing:
            amount += self.swing * math.sin(2 * math.pi * seconds / self.period_seconds)
        return max(int(amount), 0)

    def exceeds(self, amount: int) -> float | None:
        """Seconds until it exceeds an amount, if ever; oscillation does not count."""
        if self.base > amount:
            return 0.0
        return (amount - self.base) / self.per_second if self.per_second > 0 else None

    @property
    def is_constant(self) -> bool:
        """Whether it is constant."""
        return not self.per_second and not self.swing


@dataclass(frozen=True, slots=True)
class UsageModel:
    """The usage of a container over time; CPU never exceeds its limit, since it is throttled."""

    cpu: Curve
    memory: Curve
    disk: Curve
    inodes: Curve
    pids: Curve
    cpu_limit: int | None = None
    memory_limit: int | None = None

    def at(self, seconds: float) -> ContainerUsage:
        """The usage after a number of seconds."""
        cpu = self.cpu.at(seconds)
        return ContainerUsage(
            cpu if self.cpu_limit is None else min(cpu, self.cpu_limit),
            self.memory.at(seconds),
            self.disk.at(seconds),
            self.inodes.at(seconds),
            self.pids.at(seconds),
        )

    @property
    def out_of_memory_seconds(self) -> float | None:
        """Seconds until it exceeds its memory limit, if ever."""
        return None if self.memory_limit is None else self.memory.exceeds(self.memory_limit)

    @property
    def is_constant(self) -> bool:
        """Whether it is constant."""
        return all(curve.is_constant for curve in (self.cpu, self.memory, self.disk, self.inodes, self.pids))


def usage_model(
    text: str, resources: Manifest, *, cpu_share: float = 0.5, memory_share: float = 0.8
) -> UsageModel:
    """The usage of a container with these requests and limits; ValueError if the text is invalid.

    The default usage of CPU and memory is a share of the requests.
    """
    annotated = _annotated_usage(text)
    requests: Mapping[str, str] = resources.get("requests") or {}
    limits: Mapping[str, str] = resources.get("limits") or {}
    cpu, memory = requests.get(CPU), requests.get(MEMORY)
    return UsageModel(
        annotated.get(CPU) or Curve(parse_quantity(cpu) * cpu_share if cpu else _IDLE_CPU),
        annotated.get(MEMORY) or _default_memory(memory, limits.get(MEMORY), memory_share),
        annotated.get(EPHEMERAL_STORAGE) or Curve(_IDLE_DISK),
        annotated.get(INODES) or Curve(_IDLE_INODES),
        annotated.get(PIDS) or Curve(1),
        int(parse_quantity(limits[CPU])) if CPU in limits else None,
        parse_quantity(limits[MEMORY]).value if MEMORY in limits else None,
    )


def _default_memory(request: str | None, limit: str | None, share: float) -> Curve:
    """Default memory usage, within the limit: containers are OOM-killed only for a specified usage."""
    amount = parse_quantity(request).value * share if request else _IDLE_MEMORY
    return Curve(min(amount, parse_quantity(limit).value) if limit else amount)


def _annotated_usage(text: str) -> dict[str, Curve]:
    curves = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, curve = part.partition("=")
        if name not in _NAMES:
            raise ValueError(f"{part!r} does not say the usage of one of {', '.join(_NAMES)} {_EXAMPLE}")
        curves[name] = _curve(curve, NANO if name == CPU else 1)
        if curves[name].swing and name != CPU:
            raise ValueError(f"{part!r}: only cpu swings {_EXAMPLE}")
    return curves


def _curve(text: str, scale: int) -> Curve:
    match = _CURVE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a usage {_EXAMPLE}")
    base, rate, per, swing, period = match.groups()
    return Curve(
        _amount(base, scale),
        _amount(rate, scale) / _SECONDS[per] if rate else 0.0,
        _amount(swing, scale) if swing else 0.0,
        float(parse_duration(period)) if period else 1.0,
    )


def _amount(text: str, scale: int) -> float:
    return parse_quantity(text) * scale / NANO
