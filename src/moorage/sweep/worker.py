"""What runs a task, in whatever process: files are written to a folder of its own, read, and simulated."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Final

import msgspec

from moorage.api.decode import InputError
from moorage.config.problems import one_line
from moorage.emulation.kubernetes_version import KUBERNETES_VERSIONS
from moorage.framework.loading.plugin_files import forget_folders
from moorage.framework.loading.registry import RegistryError
from moorage.simulation.run import run_simulation
from moorage.simulation.scenario import ScenarioSource, read_scenario
from moorage.simulation.settings import load_settings
from moorage.simulation.traces.registry import TraceOptions
from moorage.simulation.traces.units import parse_units
from moorage.sweep.figures import Figures, figures_of
from moorage.sweep.task import Contents, SourceFile, Task, TaskResult
from moorage.version import __version__

_ONE_AT_A_TIME: Final = Lock()
"""Simulations are Python code, which threads do not make faster, and share the modules of plugins."""


def run_task(task: Task, contents: Contents) -> TaskResult:
    """Run a simulation; what goes wrong is part of the result.

    contents: those of the files that the task names, and perhaps more.
    """
    if task.moorage != __version__:
        return TaskResult({}, f"the worker has moorage {__version__}, the study needs {task.moorage}")
    with _ONE_AT_A_TIME, TemporaryDirectory(prefix="moorage-") as folder:
        files = _Files(Path(folder), contents)
        try:
            return TaskResult(_simulated(task, files))
        except (InputError, RegistryError) as error:
            return TaskResult({}, files.named(str(error)))
        except Exception as error:  # A plugin may raise anything, and other tasks are to go on.
            return TaskResult({}, files.named(f"{type(error).__name__}: {error}"))
        finally:
            forget_folders(files.folders)


def _simulated(task: Task, files: _Files) -> Figures:
    wanted = task.scenario
    version = KUBERNETES_VERSIONS[task.kubernetes].with_gates(task.feature_gates)
    files.write(task.beside_plugins)
    settings = load_settings(
        files.write_text("configuration.yaml", msgspec.json.encode(task.configuration)),
        files.write(task.plugins),
        version,
        seed=task.seed,
        until_seconds=wanted.until_seconds,
        restarts_pods=wanted.restarts_pods,
    )
    source = ScenarioSource(
        cluster=files.write(wanted.cluster, "cluster"),
        shapes=wanted.shapes,
        workload=files.write(wanted.workload, "workload"),
        generated=wanted.generated,
        script=None if wanted.script is None else files.write([wanted.script], "script")[0],
        trace=TraceOptions(wanted.trace_format, parse_units(wanted.trace_unit)),
        controllers=wanted.controllers,
    )
    return figures_of(run_simulation(read_scenario(source, version), settings).result)


class _Files:
    """The files of a task in a folder."""

    def __init__(self, folder: Path, contents: Contents) -> None:
        self._folder = folder
        self._contents = contents
        self._names: dict[Path, str] = {}

    @property
    def folders(self) -> set[Path]:
        """The folders that have files."""
        return {path.parent for path in self._names}

    def write(self, files: Iterable[SourceFile], purpose: str = "") -> list[Path]:
        """Write files; where there is a purpose, each into a folder of its own: names may be equal."""
        return [
            self._write(
                Path(f"{purpose}-{number}" if purpose else "", file.name), self._contents[file.digest]
            )
            for number, file in enumerate(files)
        ]

    def write_text(self, name: str, content: bytes) -> Path:
        """Write a file that is no file of the study."""
        return self._write(Path(name), content)

    def named(self, message: str) -> str:
        """A message with names of files as the study has them, in one line."""
        for path, name in self._names.items():
            message = message.replace(str(path), name)
        return one_line(message)

    def _write(self, place: Path, content: bytes) -> Path:
        path = self._folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        self._names[path] = path.name
        return path
