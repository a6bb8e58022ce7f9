"""A task of a sweep: one simulation, with all that it depends on, so that it can run anywhere.

Tasks that are equal have the same key: results are known by what was simulated, not by names in a study.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import msgspec

from moorage.simulation.generator import Generator
from moorage.simulation.shapes import NodeShape
from moorage.simulation.traces.format_names import TraceFormat
from moorage.sweep.figures import Figures


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file that a study names: its contents are known by their digest."""

    name: str
    """Its name, without folders but for plugins: they may import files beside them."""
    digest: str


Contents = Mapping[str, bytes]
"""The contents of files, by digest."""


@dataclass(frozen=True, slots=True)
class TaskScenario:
    """A scenario whose files are known by their contents."""

    cluster: tuple[SourceFile, ...]
    shapes: tuple[NodeShape, ...]
    workload: tuple[SourceFile, ...]
    generated: Generator | None
    script: SourceFile | None
    trace_format: TraceFormat | None
    trace_unit: str
    controllers: bool
    until_seconds: float | None
    restarts_pods: bool


@dataclass(frozen=True, slots=True)
class Task:
    """One simulation."""

    moorage: str
    """The version of moorage that it is for."""
    kubernetes: str
    feature_gates: dict[str, bool]
    configuration: dict[str, Any]
    """A KubeSchedulerConfiguration with all defaults."""
    plugins: tuple[SourceFile, ...]
    """Files with plugins."""
    beside_plugins: tuple[SourceFile, ...]
    """Files that those import."""
    scenario: TaskScenario
    seed: int

    def key(self) -> str:
        """What the task is known by: the digest of all that it consists of."""
        return sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()

    def digests(self) -> list[str]:
        """The digests of the files that it needs."""
        scenario = self.scenario
        scripts = () if scenario.script is None else (scenario.script,)
        files = (*self.plugins, *self.beside_plugins, *scenario.cluster, *scenario.workload, *scripts)
        return list(dict.fromkeys(each.digest for each in files))


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What a simulation had as results: figures, or a reason why it failed."""

    figures: Figures
    failure: str = ""
