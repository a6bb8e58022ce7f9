"""A scenario as the options of a command describe it, before it is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Final

import typer
import uvloop

from moorage.api.decode import InputError
from moorage.api.quantity import parse_quantity
from moorage.cli.generator_flags import DEFAULT_BURST_SIZE, DEFAULT_GANG_SIZE
from moorage.client.credentials import find_access
from moorage.http.errors import KubeconfigError
from moorage.simulation.generator import Generator
from moorage.simulation.live import NO_LIVE, LiveCluster, read_live
from moorage.simulation.random_times import Arrivals, Durations
from moorage.simulation.scenario import ScenarioSource
from moorage.simulation.settings import Settings
from moorage.simulation.shapes import NodeShape, parse_shape
from moorage.simulation.traces.format_names import DEFAULT_TRACE_UNIT, TraceFormat
from moorage.simulation.traces.registry import TraceOptions
from moorage.simulation.traces.units import parse_units
from moorage.simulation.weighted import Choices, parse_choices

_LOG_SECONDS: Final = 10.0
"""Interval between lines about the sorting of a trace, in seconds."""
_LINES_PER_LOOK: Final = 10_000
"""Number of lines after which the time is looked at."""


@dataclass(frozen=True, slots=True)
class GeneratedPods:
    """The options of generated pods, before they are read; lists are separated by commas."""

    count: int
    interval_seconds: float
    duration_seconds: float
    cpu: str
    memory: str
    priorities: str
    arrival_process: Arrivals = Arrivals.POISSON
    burst_size: int = DEFAULT_BURST_SIZE
    durations: Durations = Durations.LOGNORMAL
    resources: Sequence[str] = ()
    gang_share: float = 0.0
    gang_size: int = DEFAULT_GANG_SIZE

    def generator(self) -> Generator | None:
        """What is generated; None if nothing is; InputError if an option cannot be read."""
        if not self.count:
            return None
        return Generator(
            self.count,
            self.interval_seconds,
            self.duration_seconds,
            parse_choices(self.cpu, "--pod-cpu", _amount),
            parse_choices(self.memory, "--pod-memory", _amount),
            parse_choices(self.priorities, "--priorities", _priority),
            self.arrival_process,
            self.burst_size,
            self.durations,
            dict(map(_resource, self.resources)),
            self.gang_share,
            self.gang_size,
        )


def _amount(text: str) -> str:
    if parse_quantity(text) < 0:
        raise ValueError(f"{text} is negative")
    return text


def _priority(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text}: expected integers") from None


def _resource(text: str) -> tuple[str, Choices[str]]:
    name, equals, amounts = text.partition("=")
    if not equals or "/" not in name:
        raise InputError("--pod-resource", f"{text}: expected NAME=AMOUNTS, as nvidia.com/gpu=0:6,1:3")
    return name, parse_choices(amounts, f"--pod-resource {name}", _amount)


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """The options that describe a cluster."""

    files: list[Path]
    uniform: NodeShape
    """Nodes that are alike."""
    shapes: list[str]
    kubeconfig: Path | None = None
    """The kubeconfig of a live cluster; None: it is not named."""
    context: str = ""

    def all_shapes(self) -> list[NodeShape]:
        """The shapes of nodes; InputError if one cannot be read."""
        uniform = [self.uniform] if self.uniform.count else []
        return [*uniform, *map(parse_shape, self.shapes)]

    def live(self, settings: Settings, *, has_new_pods: bool) -> LiveCluster:
        """What scheduling needs of the live cluster, if one is named; InputError if it cannot be read."""
        if self.kubeconfig is None and not self.context:
            return NO_LIVE
        if self.files:
            raise InputError("--from", "give a dump or a live cluster (--kubeconfig, --context), not both")
        try:
            access = find_access(self.kubeconfig, context=self.context)
        except KubeconfigError as error:
            raise InputError("", str(error)) from None
        return uvloop.run(read_live(access, settings, has_new_pods=has_new_pods))


@dataclass(frozen=True, slots=True)
class ScenarioOptions:
    """The options that describe a scenario, which several commands have."""

    cluster: ClusterOptions
    workload: list[Path]
    skips_bad: bool
    generated: GeneratedPods
    script: Path | None
    trace_format: TraceFormat | None = None
    trace_unit: str = DEFAULT_TRACE_UNIT
    controllers: bool = False

    def source(self, settings: Settings) -> ScenarioSource:
        """What is to be read; InputError if an option cannot be, or the live cluster."""
        return ScenarioSource(
            self.cluster.files,
            self.cluster.all_shapes(),
            self.workload,
            self.generated.generator(),
            self.script,
            TraceOptions(self.trace_format, parse_units(self.trace_unit), SortedLines().add),
            self.controllers,
            self.cluster.live(settings, has_new_pods=bool(self.workload)),
        )


class SortedLines:
    """Shows now and then how much of a trace has been sorted."""

    def __init__(self) -> None:
        self._count = 0
        self._shown_at = monotonic()

    def add(self) -> None:
        """A line is sorted."""
        self._count += 1
        if self._count % _LINES_PER_LOOK == 0 and monotonic() - self._shown_at >= _LOG_SECONDS:
            self._shown_at = monotonic()
            typer.echo(f"sorting the trace: {self._count:,} lines", err=True)


class SkippedLines:
    """Shows and counts the lines of a trace that are skipped."""

    def __init__(self, command: str) -> None:
        self._command = command
        self._count = 0

    def add(self, message: str) -> None:
        """A line is skipped."""
        self._count += 1
        typer.echo(f"{self._command}: skipped: {message}", err=True)

    def show_count(self) -> None:
        """Show how many lines were skipped, if any."""
        if self._count:
            lines = "1 line was" if self._count == 1 else f"{self._count:,} lines were"
            typer.echo(f"{self._command}: {lines} skipped", err=True)
