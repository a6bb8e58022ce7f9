"""A scenario as the options of a command describe it, before it is read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer

from moorage.api.decode import InputError
from moorage.simulation.generator import Generator
from moorage.simulation.scenario import ScenarioSource
from moorage.simulation.shapes import NodeShape, parse_shape


@dataclass(frozen=True, slots=True)
class GeneratedPods:
    """The options of generated pods, before they are read; lists are separated by commas."""

    count: int
    interval_seconds: float
    duration_seconds: float
    cpu: str
    memory: str
    priorities: str

    def generator(self) -> Generator | None:
        """What is generated; None if nothing is; InputError if an option cannot be read."""
        if not self.count:
            return None
        try:
            priorities = [int(each) for each in self.priorities.split(",")]
        except ValueError:
            raise InputError("--priorities", f"{self.priorities}: expected integers") from None
        return Generator(
            self.count,
            self.interval_seconds,
            self.duration_seconds,
            self.cpu.split(","),
            self.memory.split(","),
            priorities,
        )


@dataclass(frozen=True, slots=True)
class ScenarioOptions:
    """The options that describe a scenario, which several commands have."""

    cluster: list[Path]
    uniform: NodeShape
    """Nodes that are alike."""
    shapes: list[str]
    workload: list[Path]
    skips_bad: bool
    generated: GeneratedPods
    script: Path | None
    controllers: bool = False

    def source(self) -> ScenarioSource:
        """What is to be read; InputError if an option cannot be."""
        uniform = [self.uniform] if self.uniform.count else []
        return ScenarioSource(
            self.cluster,
            [*uniform, *map(parse_shape, self.shapes)],
            self.workload,
            self.generated.generator(),
            self.script,
            self.controllers,
        )


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
