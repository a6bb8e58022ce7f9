"""What processes use: memory, descriptors and CPU of any; blocks, objects and tasks of this one."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Final

import msgspec

_MIB: Final = 1 << 20
_MIN_OBJECTS: Final = 100
"""Types with fewer objects are not counted."""
_TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")


class Inside(msgspec.Struct, frozen=True):
    """What is known of the process that measures only."""

    blocks: int
    """Number of memory blocks that Python has allocated."""
    tasks: int
    objects: dict[str, int]
    """Number of objects that the garbage collector tracks, by type."""


class Usage(msgspec.Struct, frozen=True):
    """What a process and its children use."""

    resident_mib: float
    descriptors: int
    cpu_seconds: float
    inside: Inside | None = None


def usage_of(process: int) -> Usage:
    """The usage of a process and its children."""
    processes = _with_children(process)
    return Usage(
        sum(map(_resident_bytes, processes)) / _MIB,
        sum(len(os.listdir(f"/proc/{each}/fd")) for each in processes),
        sum(map(_cpu_seconds, processes)),
    )


def usage_here() -> Usage:
    """The usage of this process, with what only it can tell."""
    return msgspec.structs.replace(usage_of(os.getpid()), inside=_inside())


def _inside() -> Inside:
    blocks = sys.getallocatedblocks()
    by_type = Counter(map(type, gc.get_objects()))
    objects: Counter[str] = Counter()
    for each, count in by_type.items():
        if count >= _MIN_OBJECTS:
            # All samples share the names: otherwise they would be part of what grows.
            objects[sys.intern(f"{each.__module__}.{each.__qualname__}")] += count
    return Inside(blocks, len(asyncio.all_tasks()), dict(objects))


def _with_children(process: int) -> list[int]:
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [process, *(each for child in children for each in _with_children(int(child)))]


def _resident_bytes(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS:"))


def _cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND
