"""CPU time and memory of processes, as counted by the system."""

from __future__ import annotations

import os
import resource
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple


class ProcessUsage(NamedTuple):
    """A process's usage so far; None for values that the system does not provide."""

    cpu_seconds: float | None
    peak_bytes: int | None


def own_usage() -> ProcessUsage:
    """This process's usage."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    unit = 1 if sys.platform == "darwin" else 1024
    peak = _peak_bytes(os.getpid())
    return ProcessUsage(used.ru_utime + used.ru_stime, used.ru_maxrss * unit if peak is None else peak)


def forget_peak() -> None:
    """Reset the peak of this process's memory, if the system supports it."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def usage_of(pid: int) -> ProcessUsage:
    """Another process's usage; unknown on systems without /proc."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ProcessUsage(None, None)
    # Counted from after the name, the 12th and the 13th field are time in user mode and in the kernel.
    ticks = int(fields[11]) + int(fields[12])
    return ProcessUsage(ticks / os.sysconf("SC_CLK_TCK"), _peak_bytes(pid))


def _peak_bytes(pid: int) -> int | None:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        name, _, value = line.partition(":")
        if name == "VmHWM":
            return int(value.split()[0]) * 1024
    return None
