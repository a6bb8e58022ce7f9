"""All formats of traces: which one a file has, and its pods in the order of arrival."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from moorage.api.decode import InputError
from moorage.simulation.traces import (
    alibaba_2018,
    alibaba_gpu_2023,
    azure_2019,
    azure_2020,
    google_2019,
    moorage_schema,
)
from moorage.simulation.traces.disk_sort import sorted_on_disk
from moorage.simulation.traces.format_names import TraceFormat
from moorage.simulation.traces.pods import PodMaker, TracePod, earliest
from moorage.simulation.traces.source import BadLine, TraceSource
from moorage.simulation.traces.units import DEFAULT_UNITS, TraceUnits
from moorage.simulation.workload import Arrival

Added = Callable[[], None]
"""Called for each line that is sorted."""


def _not_shown() -> None:
    """Shows no progress."""


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """How a trace is read."""

    format: TraceFormat | None = None
    """None: by the name of the file."""
    units: TraceUnits = DEFAULT_UNITS
    added: Added = _not_shown

    def is_trace(self, path: Path) -> bool:
        """Whether a file is a trace; InputError for an archive."""
        if path.name.endswith((".tar.gz", ".tgz", ".zip")):
            raise InputError(str(path), "an archive; extract the trace from it first")
        return self.format is not None or _format_by_name(path) is not None


DEFAULT_OPTIONS: Final = TraceOptions()


class _Format(NamedTuple):
    name: str
    """A pattern of the names of files, without `.gz`."""
    pods: Callable[[TraceSource, Added], Iterator[TracePod]]
    is_sorted: bool
    """Whether pods are in the order of arrival."""


_FORMATS: Final = {
    TraceFormat.ALIBABA_2018: _Format(
        r"(batch_task|batch_instance|container_meta).*\.csv",
        lambda source, added: alibaba_2018.read_pods(source),
        is_sorted=False,
    ),
    TraceFormat.ALIBABA_GPU_2023: _Format(
        r"openb_pod_list.*\.csv", lambda source, added: alibaba_gpu_2023.read_pods(source), is_sorted=False
    ),
    TraceFormat.GOOGLE_2019: _Format(
        r"(instance|collection)_events.*\.(json|jsonl|csv)", google_2019.read_pods, is_sorted=False
    ),
    TraceFormat.AZURE_2019: _Format(
        r"vmtable.*\.csv", lambda source, added: azure_2019.read_pods(source), is_sorted=False
    ),
    TraceFormat.AZURE_2020: _Format(
        r".*\.sqlite", lambda source, added: azure_2020.read_pods(source), is_sorted=True
    ),
    TraceFormat.MOORAGE: _Format(
        r".*\.(jsonl|csv|parquet)", lambda source, added: moorage_schema.read_pods(source), is_sorted=True
    ),
}


def _format_by_name(path: Path) -> TraceFormat | None:
    name = path.name.removesuffix(".gz")
    return next((each for each, format in _FORMATS.items() if re.fullmatch(format.name, name)), None)


def read_trace_pods(
    path: Path, skipped: BadLine | None = None, options: TraceOptions = DEFAULT_OPTIONS
) -> Iterator[TracePod]:
    """The pods of a trace in the order of arrival; InputError for a line that is no pod, or without any pod.

    What is not in that order is read and sorted at once, the rest as it is needed.

    skipped: called with the message about such a line instead.
    """
    format = _FORMATS[options.format or _format_by_name(path) or TraceFormat.MOORAGE]
    pods = format.pods(TraceSource(path, options.units, skipped), options.added)
    if not format.is_sorted:
        pods = sorted_on_disk(pods, TracePod, earliest, options.added)
    return _not_empty(pods, path)


def _not_empty(pods: Iterator[TracePod], path: Path) -> Iterator[TracePod]:
    pod = None
    for pod in pods:
        yield pod
    if pod is None:
        raise InputError(str(path), "there are no pods in it")


def read_trace(
    path: Path, skipped: BadLine | None = None, options: TraceOptions = DEFAULT_OPTIONS
) -> Iterator[Arrival]:
    """The same as arrivals."""
    return map(PodMaker().arrival, read_trace_pods(path, skipped, options))
