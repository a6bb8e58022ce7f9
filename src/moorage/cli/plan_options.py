"""What the options of `moorage plan` say, before it is read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from moorage.cli.version_options import emulated
from moorage.simulation.scenario import ScenarioSource
from moorage.simulation.settings import Settings, load_settings
from moorage.simulation.shapes import NodeShape, parse_shape


@dataclass(frozen=True, slots=True)
class PlannedOptions:
    """The options that describe a cluster, and new pods."""

    cluster: list[Path]
    uniform: NodeShape
    """Nodes that are alike."""
    shapes: list[str]
    workload: list[Path]

    def source(self) -> ScenarioSource:
        """What is to be read; InputError if an option cannot be."""
        uniform = [self.uniform] if self.uniform.count else []
        return ScenarioSource(self.cluster, [*uniform, *map(parse_shape, self.shapes)], self.workload)


@dataclass(frozen=True, slots=True)
class SchedulerChoice:
    """The options that say which scheduler decides."""

    config: Path | None
    plugins: list[Path] | None
    emulated_version: str | None
    feature_gates: list[str] | None
    seed: int

    def settings(self) -> Settings:
        """The scheduler; InputError or RegistryError if there is no such one."""
        version = emulated(self.emulated_version, self.feature_gates)
        return load_settings(self.config, self.plugins or (), version, seed=self.seed)
