"""From a study to tasks: what it names is read and checked, and everything is combined with everything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from moorage.api.decode import InputError
from moorage.config.load import default_config, load_config, parse_config, to_manifest
from moorage.config.problems import ConfigError
from moorage.emulation.feature_gates import GateError
from moorage.emulation.kubernetes_version import (
    DEFAULT_VERSION,
    KUBERNETES_VERSIONS,
    KubernetesVersion,
    VersionError,
    version_number,
)
from moorage.framework.loading.plugin_files import files_read, forget_folders
from moorage.framework.loading.registry import RegistryError
from moorage.simulation.generator import Generator
from moorage.simulation.scenario import ScenarioSource, read_scenario
from moorage.simulation.settings import load_settings
from moorage.simulation.shapes import parse_shape
from moorage.simulation.traces.registry import TraceOptions
from moorage.simulation.traces.units import parse_units
from moorage.sweep.parameters import Values, combinations, with_values
from moorage.sweep.study import GeneratedWorkload, Objective, Study, StudyConfiguration, StudyScenario
from moorage.sweep.study_file import MAX_TASKS, load_study
from moorage.sweep.task import Contents, SourceFile, Task, TaskScenario
from moorage.version import __version__


@dataclass(frozen=True, slots=True)
class PlannedRow:
    """A configuration with a scenario, in a version of Kubernetes: its results are means over seeds."""

    configuration: str
    values: Values
    """The values of parameters."""
    scenario: str
    kubernetes: str
    keys: Mapping[int, str]
    """The keys of tasks, by seed."""


@dataclass(frozen=True, slots=True)
class Plan:
    """All that a study asks for."""

    objectives: Sequence[Objective]
    rows: Sequence[PlannedRow]
    tasks: Mapping[str, Task]
    """The tasks by key, in the order of the rows."""
    contents: Contents


@dataclass(frozen=True, slots=True)
class _Configuration:
    """A configuration with values of its parameters, in a version of Kubernetes."""

    name: str
    values: Values
    version: KubernetesVersion
    manifest: dict[str, Any]
    plugins: tuple[SourceFile, ...]
    beside_plugins: tuple[SourceFile, ...]


def read_plan(path: Path) -> Plan:
    """The tasks of the study in a file; InputError if something that it names cannot be used."""
    return _Planner(path, load_study(path)).plan()


@contextmanager
def _at(where: str) -> Iterator[None]:
    """Within this, errors name a field of the study."""
    try:
        yield
    except (InputError, RegistryError, GateError, VersionError) as error:
        raise ConfigError(str(error).splitlines(), where) from None


class _Planner:
    def __init__(self, path: Path, study: Study) -> None:
        self._where = str(path)
        self._folder = path.parent
        self._study = study
        self._contents: dict[str, bytes] = {}

    def plan(self) -> Plan:
        """Everything with everything."""
        versions, seeds = self._versions(), self._study.seed_list()
        combined = self._combined(len(versions) * len(seeds) * len(self._study.scenarios))
        names = [each.name for each in self._study.scenarios]
        scenarios = [(name, self._scenario(at, versions)) for at, name in enumerate(names)]
        rows, tasks = [], {}
        for configuration in self._configurations(combined, versions):
            for name, scenario in scenarios:
                keys = {}
                for seed in seeds:
                    task = self._task(configuration, scenario, seed)
                    keys[seed] = key = task.key()
                    tasks[key] = task
                rows.append(_row(configuration, name, keys))
        return Plan(self._study.objectives, rows, tasks, self._contents)

    def _task(self, configuration: _Configuration, scenario: TaskScenario, seed: int) -> Task:
        return Task(
            __version__,
            configuration.version.minor,
            self._study.feature_gates,
            configuration.manifest,
            configuration.plugins,
            configuration.beside_plugins,
            scenario,
            seed,
        )

    def _versions(self) -> list[KubernetesVersion]:
        versions = []
        for at, text in enumerate(self._study.versions or [DEFAULT_VERSION.minor]):
            with _at(f"{self._where}: versions[{at}]"):
                version = KUBERNETES_VERSIONS[version_number(text, KUBERNETES_VERSIONS)]
            with _at(f"{self._where}: featureGates"):
                versions.append(version.with_gates(self._study.feature_gates))
        return versions

    # -- configurations

    def _combined(self, tasks_of_each: int) -> list[list[Values]]:
        """The values of parameters of each configuration; InputError if they are too many."""
        most = MAX_TASKS // tasks_of_each
        combined = [combinations(each, self._study.search, most + 1) for each in self._study.configurations]
        if sum(map(len, combined)) > most:
            raise InputError(self._where, f"more than {MAX_TASKS:,} simulations")
        return combined

    def _configurations(
        self, combined: Iterable[list[Values]], versions: Sequence[KubernetesVersion]
    ) -> Iterator[_Configuration]:
        """All configurations, with the values of their parameters, in all versions."""
        for at, (configuration, tried) in enumerate(zip(self._study.configurations, combined, strict=True)):
            with _at(f"{self._where}: configurations[{at}]"):
                for values in tried:
                    for version in versions:
                        yield self._configuration(configuration, values, version)

    def _configuration(
        self, wanted: StudyConfiguration, values: Values, version: KubernetesVersion
    ) -> _Configuration:
        file = self._folder / wanted.file
        base = load_config(file, version) if wanted.file else default_config(version)
        manifest = with_values(to_manifest(base), wanted.parameters, values)
        manifest = to_manifest(parse_config(manifest, "", version))
        paths = [self._folder / name for name in wanted.plugins]
        with TemporaryDirectory(prefix="moorage-") as folder:
            complete = Path(folder, "configuration.yaml")
            complete.write_bytes(msgspec.json.encode(manifest))
            load_settings(complete, paths, version)
        plugins, beside = self._plugins(paths)
        return _Configuration(wanted.name, values, version, manifest, plugins, beside)

    def _plugins(self, paths: Sequence[Path]) -> tuple[tuple[SourceFile, ...], tuple[SourceFile, ...]]:
        """Files with plugins that were loaded, and those that they imported; folders are numbered."""
        read = files_read(paths)
        folders = {
            folder: f"plugins-{at}" for at, folder in enumerate(dict.fromkeys(each.parent for each in read))
        }
        forget_folders(folders)
        files = tuple(self._file(each, f"{folders[each.parent]}/") for each in read)
        return files[: len(paths)], tuple(sorted(files[len(paths) :], key=lambda each: each.name))

    # -- scenarios

    def _scenario(self, at: int, versions: Iterable[KubernetesVersion]) -> TaskScenario:
        """A scenario that can be read in all versions."""
        wanted = self._study.scenarios[at]
        with _at(f"{self._where}: scenarios[{at}]"):
            source = self._source(wanted)
            for version in versions:
                read_scenario(source, version)
            return TaskScenario(
                tuple(map(self._file, source.cluster)),
                tuple(source.shapes),
                tuple(map(self._file, source.workload)),
                source.generated,
                None if source.script is None else self._file(source.script),
                wanted.workload.trace_format,
                wanted.workload.trace_unit,
                wanted.controllers,
                None if wanted.until is None else float(wanted.until),
                wanted.restarts,
            )

    def _source(self, wanted: StudyScenario) -> ScenarioSource:
        workload = wanted.workload
        return ScenarioSource(
            [self._folder / each for each in wanted.cluster.files],
            [parse_shape(each) for each in wanted.cluster.shapes],
            [self._folder / each for each in workload.files],
            None if workload.generate is None else _generator(workload.generate),
            self._folder / wanted.script if wanted.script else None,
            TraceOptions(workload.trace_format, parse_units(workload.trace_unit)),
            wanted.controllers,
        )

    def _file(self, path: Path, folder: str = "") -> SourceFile:
        """A file, whose contents are kept."""
        try:
            content = path.read_bytes()
        except OSError as error:
            raise InputError(str(path), error.strerror or str(error)) from None
        digest = sha256(content).hexdigest()
        self._contents[digest] = content
        return SourceFile(f"{folder}{path.name}", digest)


def _row(configuration: _Configuration, scenario: str, keys: Mapping[int, str]) -> PlannedRow:
    return PlannedRow(configuration.name, configuration.values, scenario, configuration.version.minor, keys)


def _generator(wanted: GeneratedWorkload) -> Generator:
    return Generator(
        wanted.pods,
        float(wanted.mean_interval),
        float(wanted.mean_duration),
        wanted.cpu,
        wanted.memory,
        wanted.priorities,
        wanted.arrivals,
        wanted.burst_size,
        wanted.durations,
        wanted.resources,
        wanted.gang_share,
        wanted.gang_size,
    )
