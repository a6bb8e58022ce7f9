"""The scheduler that decides in `moorage plan`, as options say it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from moorage.cli.version_options import emulated
from moorage.simulation.settings import Settings, load_settings


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
