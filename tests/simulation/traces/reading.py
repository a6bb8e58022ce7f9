"""Small traces for tests, and what is read of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.api.decode import InputError
from moorage.simulation.traces.pods import TracePod
from moorage.simulation.traces.registry import TraceOptions, read_trace_pods
from moorage.simulation.traces.units import parse_units

GIB = 1 << 30
UNITS = "cpu=10,memory=100Gi"


def read(path: Path, unit: str = UNITS) -> list[TracePod]:
    return list(read_trace_pods(path, options=TraceOptions(units=parse_units(unit))))


def requests(pod: TracePod) -> dict[str, str]:
    return dict(pod.requests)


def assert_bad(path: Path, problem: str, *, remaining: int) -> None:
    """A trace has one bad line, which ends its reading, or is counted."""
    with pytest.raises(InputError) as error:
        read(path)
    assert str(error.value) == f"{path}: {problem}"
    skipped: list[str] = []
    assert len(list(read_trace_pods(path, skipped.append))) == remaining
    assert skipped == [f"{path}: {problem}"]


def assert_unreadable(path: Path, problem: str) -> None:
    """A file cannot be read at all, also not if bad lines are skipped."""
    with pytest.raises(InputError) as error:
        list(read_trace_pods(path, lambda line: None))
    assert str(error.value).startswith(f"{path}: {problem}"), error.value
    assert len(str(error.value).splitlines()) == 1
