"""Eviction thresholds: what must be available on a node, in the kubelet's notation.

`memory.available<100Mi,nodefs.available<10%` are thresholds; soft ones have a grace period of their own
(`memory.available=1m30s`), and any may have a minimum reclaim beyond its value
(`memory.available=50Mi`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from moorage.api.quantity import NANO, parse_quantity
from moorage.api.resource_requests import EPHEMERAL_STORAGE, MEMORY
from moorage.config.duration import parse_duration
from moorage_cluster.nodes.usage import INODES, PIDS

MEMORY_AVAILABLE: Final = "memory.available"
ALLOCATABLE_MEMORY_AVAILABLE: Final = "allocatableMemory.available"
NODEFS_AVAILABLE: Final = "nodefs.available"
NODEFS_INODES_FREE: Final = "nodefs.inodesFree"
IMAGEFS_AVAILABLE: Final = "imagefs.available"
IMAGEFS_INODES_FREE: Final = "imagefs.inodesFree"
PID_AVAILABLE: Final = "pid.available"

MEMORY_PRESSURE: Final = "MemoryPressure"
DISK_PRESSURE: Final = "DiskPressure"
PID_PRESSURE: Final = "PIDPressure"

RESOURCES: Final[Mapping[str, str]] = {
    MEMORY_AVAILABLE: MEMORY,
    ALLOCATABLE_MEMORY_AVAILABLE: MEMORY,
    NODEFS_AVAILABLE: EPHEMERAL_STORAGE,
    IMAGEFS_AVAILABLE: EPHEMERAL_STORAGE,
    NODEFS_INODES_FREE: INODES,
    IMAGEFS_INODES_FREE: INODES,
    PID_AVAILABLE: PIDS,
}
"""Resources by signal."""

_CONDITIONS: Final = {
    MEMORY: MEMORY_PRESSURE,
    EPHEMERAL_STORAGE: DISK_PRESSURE,
    INODES: DISK_PRESSURE,
    PIDS: PID_PRESSURE,
}


@dataclass(frozen=True, slots=True)
class Share:
    """An amount, absolute or as a fraction of the capacity."""

    amount: int | None = None
    part: float = 0.0

    def of(self, whole: int) -> int:
        """The amount for a capacity."""
        return self.amount if self.amount is not None else int(whole * self.part)


@dataclass(frozen=True, slots=True)
class Threshold:
    """A signal and its minimum value; a soft threshold has a grace period."""

    signal: str
    value: Share
    grace_seconds: float = 0.0
    reclaim: Share | None = None
    """Minimum reclaim: the amount beyond the value at which the threshold is no longer met."""

    @property
    def resource(self) -> str:
        """The resource that is short."""
        return RESOURCES[self.signal]

    @property
    def condition(self) -> str:
        """The node condition while the threshold is met."""
        return _CONDITIONS[self.resource]


class ThresholdError(ValueError):
    """Invalid thresholds."""


def parse_thresholds(
    hard: str, soft: str = "", soft_grace_period: str = "", minimum_reclaim: str = ""
) -> tuple[Threshold, ...]:
    """All thresholds of a kubelet; those of memory also apply to allocatable memory."""
    thresholds = _parse(hard)
    graces = {signal: _seconds(text) for signal, text in _pairs(soft_grace_period, "=")}
    for threshold in _parse(soft):
        if threshold.signal not in graces:
            raise ThresholdError(
                f"grace period must be specified for the soft eviction threshold {threshold.signal}"
            )
        thresholds.append(replace(threshold, grace_seconds=graces[threshold.signal]))
    reclaims = {signal: _reclaim(signal, text) for signal, text in _pairs(minimum_reclaim, "=")}
    thresholds = [replace(each, reclaim=reclaims.get(each.signal)) for each in thresholds]
    # The same value applies to the pods' usage of allocatable memory as to the node's of its capacity.
    thresholds += [
        replace(each, signal=ALLOCATABLE_MEMORY_AVAILABLE)
        for each in thresholds
        if each.signal == MEMORY_AVAILABLE and not each.grace_seconds
    ]
    return tuple(thresholds)


def _pairs(text: str, sign: str) -> list[tuple[str, str]]:
    pairs = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        signal, found, value = part.partition(sign)
        if not found:
            raise ThresholdError(f"{part!r} is not of the form SIGNAL{sign}VALUE")
        if signal not in RESOURCES:
            raise ThresholdError(f"unsupported eviction signal {signal}")
        pairs.append((signal, value))
    return pairs


def _parse(text: str) -> list[Threshold]:
    thresholds = []
    for signal, value in _pairs(text, "<"):
        if value in ("0%", "100%"):
            continue  # These values disable the signal.
        if value.endswith("%"):
            part = _part(value)
            if part < 0:
                raise ThresholdError(f"eviction percentage threshold {signal} must be >= 0%: {value}")
            if part > 1:
                raise ThresholdError(f"eviction percentage threshold {signal} must be <= 100%: {value}")
            thresholds.append(Threshold(signal, Share(part=part)))
            continue
        amount = _amount(value)
        if amount <= 0:
            raise ThresholdError(f"eviction threshold {signal} must be positive: {value}")
        thresholds.append(Threshold(signal, Share(amount)))
    return thresholds


def _reclaim(signal: str, value: str) -> Share:
    if value.endswith("%"):
        part = _part(value)
        if part <= 0:
            raise ThresholdError(f"eviction percentage minimum reclaim {signal} must be positive: {value}")
        return Share(part=part)
    amount = _amount(value)
    if amount < 0:
        raise ThresholdError(f"negative eviction minimum reclaim specified for {signal}")
    return Share(amount)


def _part(text: str) -> float:
    """A percentage as a fraction, in single precision like the kubelet's."""
    try:
        return float(np.float32(text.rstrip("%")) / np.float32(100))
    except ValueError:
        raise ThresholdError(f"{text!r} is not a percentage") from None


def _amount(text: str) -> int:
    try:
        quantity = parse_quantity(text)
    except ValueError as error:
        raise ThresholdError(str(error)) from None
    return quantity.value if quantity >= 0 else -(-quantity // NANO)


def _seconds(text: str) -> float:
    try:
        seconds = float(parse_duration(text))
    except ValueError as error:
        raise ThresholdError(str(error)) from None
    if seconds < 0:
        raise ThresholdError(f"invalid eviction grace period specified: {text}, must be a positive value")
    return seconds
