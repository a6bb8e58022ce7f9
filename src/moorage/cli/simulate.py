"""`moorage simulate`: what would happen to this workload on that cluster?"""

from __future__ import annotations

import asyncio
import csv
import io
import signal
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from time import monotonic
from typing import Final, Self

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from moorage.api.base import Object
from moorage.api.decode import InputError
from moorage.api.files import Located, load_manifests
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.cli.aligned_table import aligned
from moorage.cli.garbage_collection import long_running
from moorage.cli.plugin_loading import with_plugins
from moorage.cli.version_options import emulated
from moorage.config.duration import Duration
from moorage.config.load import default_config, load_config
from moorage.emulation.kubernetes_version import KubernetesVersion
from moorage.framework.loading.registry import RegistryError
from moorage.sim.admission import Admission
from moorage.simulation.generator import Generator
from moorage.simulation.records import NodeRecord, Outcome, PodRecord
from moorage.simulation.report import html_report
from moorage.simulation.results import SimulationResult, result_of
from moorage.simulation.script import ScriptEvent, read_script
from moorage.simulation.shapes import NodeShape, nodes_of, parse_shape
from moorage.simulation.simulator import Settings, Simulation
from moorage.simulation.trace import read_trace
from moorage.simulation.virtual_loop import run_in_virtual_time
from moorage.simulation.workload import Arrival, arrivals_of, others_of

_UNREADABLE: Final = 2
"""Exit status: the input could not be used."""
_INTERRUPTED: Final = 128 + signal.SIGINT
_BAR_SECONDS: Final = 0.5
"""Update interval of the progress, in seconds."""
_LOG_SECONDS: Final = 10.0
"""Interval between lines about the progress where there is no terminal, in seconds."""
_TRACE_SUFFIXES: Final = (".jsonl", ".csv", ".jsonl.gz", ".csv.gz")
_OWNERS: Final = (
    "Deployment",
    "ReplicaSet",
    "ReplicationController",
    "StatefulSet",
    "DaemonSet",
    "Job",
    "CronJob",
)
_PLACEMENT_FIELDS: Final = PodRecord.__struct_encode_fields__


@dataclass(frozen=True, slots=True)
class GeneratedPods:
    """The options of generated pods, before they are read; lists are separated by commas."""

    count: int
    interval_seconds: float
    duration_seconds: float
    cpu: str
    memory: str
    priorities: str


@dataclass(frozen=True, slots=True)
class SimulateOptions:
    """What is to be simulated."""

    cluster: list[Path]
    uniform: NodeShape
    """Nodes that are alike."""
    shapes: list[str]
    workload: list[Path]
    skips_bad: bool
    generated: GeneratedPods
    script: Path | None
    until_seconds: float | None
    restarts: bool
    seed: int
    config: Path | None
    plugins: list[Path] | None
    emulated_version: str | None
    feature_gates: list[str] | None


def show_simulation(
    options: SimulateOptions, *, as_json: bool, placements: Path | None, report: Path | None
) -> None:
    """Simulate, and print the results; exits with status 2 for bad input, 130 if it was interrupted."""
    long_running("simulate")
    try:
        prepared = _Prepared(options)
        result = prepared.run()
        if placements is not None:
            _write(placements, _placements(result.placements))
        if report is not None:
            _write(report, html_report(result, prepared.nodes, _figures(result)))
    except (InputError, RegistryError) as error:
        typer.echo(f"moorage simulate: {error}", err=True)
        raise typer.Exit(_UNREADABLE) from None
    if prepared.skipped:
        lines = "1 line was" if prepared.skipped == 1 else f"{prepared.skipped:,} lines were"
        typer.echo(f"moorage simulate: {lines} skipped", err=True)
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(result)).decode())
    else:
        typer.echo(_shown(result))
    if not result.complete:
        typer.echo("moorage simulate: interrupted; the results are those up to then", err=True)
        raise typer.Exit(_INTERRUPTED)


class _Prepared:
    """A simulation, read from files and options, before it runs."""

    def __init__(self, options: SimulateOptions) -> None:
        self._options = options
        self.skipped = 0
        self.nodes: Sequence[NodeRecord] = ()
        """The nodes of the simulation, once it has run."""
        version = emulated(options.emulated_version, options.feature_gates)
        config = default_config(version) if options.config is None else load_config(options.config, version)
        if config.extenders:
            raise InputError(str(options.config), "extenders are not called in a simulation; remove them")
        discovered = with_plugins(config, options.plugins)
        self._settings = Settings(
            discovered.config,
            discovered.registry,
            version,
            options.seed,
            options.until_seconds,
            options.restarts,
        )
        self._script: list[ScriptEvent] = [] if options.script is None else read_script(options.script)
        self._cluster, self._arrivals, self._total = self._read(version)

    def _read(self, version: KubernetesVersion) -> tuple[list[Object], Iterable[Arrival], int]:
        """The cluster, the workload, and the number of pods in it; 0 if that is not known."""
        options = self._options
        manifests = [located for path in options.cluster for located in load_manifests(path)]
        traces = [path for path in options.workload if path.name.endswith(_TRACE_SUFFIXES)]
        others = [path for path in options.workload if path not in traces]
        wanted = [located for path in others for located in load_manifests(path)]
        for located in wanted:
            _refuse_owner(located)
        admission = Admission([*manifests, *wanted], version.features)
        cluster, asked = admission.objects(manifests), admission.objects(wanted)
        nodes = self._nodes()
        cluster = [*nodes, *cluster, *others_of(asked)]
        if not any(isinstance(each, Node) for each in cluster):
            raise InputError("", "there are no nodes; give --nodes, --shape or --from")
        arrivals, generated = arrivals_of(asked), self._generator()
        sources = [bool(arrivals), bool(traces), generated.count > 0]
        is_pending = any(isinstance(each, Pod) and not each.spec.node_name for each in cluster)
        if sum(sources) > 1 or len(traces) > 1:
            raise InputError("", "give one workload: manifests, one trace, or --generate")
        if not any(sources) and not is_pending:
            raise InputError("", "there are no pods to schedule; give --workload or --generate")
        if traces:
            return cluster, read_trace(traces[0], self._skip if options.skips_bad else None), 0
        if arrivals:
            return cluster, arrivals, len(arrivals)
        return cluster, generated.arrivals(options.seed), generated.count

    def _skip(self, message: str) -> None:
        self.skipped += 1
        typer.echo(f"moorage simulate: skipped: {message}", err=True)

    def _nodes(self) -> list[Node]:
        shapes = map(parse_shape, self._options.shapes)
        return nodes_of(chain([self._options.uniform] if self._options.uniform.count else [], shapes))

    def _generator(self) -> Generator:
        given = self._options.generated
        try:
            priorities = [int(each) for each in given.priorities.split(",")]
        except ValueError:
            raise InputError("--priorities", f"{given.priorities}: expected integers") from None
        return Generator(
            given.count,
            given.interval_seconds,
            given.duration_seconds,
            given.cpu.split(","),
            given.memory.split(","),
            priorities,
        )

    def run(self) -> SimulationResult:
        """Run it; an interrupted one has results, too."""
        return run_in_virtual_time(self._run())

    async def _run(self) -> SimulationResult:
        with _Progress(self._total) as progress:
            simulation = Simulation(
                self._cluster,
                self._arrivals,
                self._settings,
                self._script,
                lambda: progress.update(simulation),
            )
            running = asyncio.create_task(simulation.run())
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGINT, running.cancel)
            with suppress(asyncio.CancelledError):
                await running
            loop.remove_signal_handler(signal.SIGINT)
        self.nodes = simulation.records.nodes
        return result_of(simulation.records, self._settings.seed, is_complete=simulation.is_complete)


def _refuse_owner(located: Located) -> None:
    """InputError for an object that is made into pods by a controller: there is none in a simulation."""
    manifest, where = located
    kind = manifest.get("kind") if isinstance(manifest, dict) else None
    if kind in _OWNERS:
        raise InputError(where, f"{kind}: there are no controllers in a simulation; give its pods")


class _Progress:
    """Shows how far a simulation is, on standard error: a bar on a terminal, lines otherwise."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._arrived = 0
        self._shown_at = monotonic()
        console = Console(stderr=True)
        self._bars: Bars | None = None
        if console.is_terminal:
            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
            )
            self._bars = Bars(*columns, console=console, transient=True)
            self._task = self._bars.add_task("pods", total=total or None)

    def __enter__(self) -> Self:
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bars is not None:
            self._bars.stop()

    def update(self, simulation: Simulation) -> None:
        """One more pod has arrived."""
        self._arrived += 1
        now = monotonic()
        if now - self._shown_at < (_LOG_SECONDS if self._bars is None else _BAR_SECONDS):
            return
        self._shown_at = now
        passed = Duration(round(simulation.seconds))
        if self._bars is not None:
            self._bars.update(self._task, completed=self._arrived, description=f"simulated {passed}")
        else:
            total = f" of {self._total:,}" if self._total else ""
            typer.echo(f"moorage simulate: {self._arrived:,}{total} pods, simulated {passed}", err=True)


def _placements(pods: Iterable[PodRecord]) -> str:
    """All pods as CSV."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, _PLACEMENT_FIELDS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(map(msgspec.to_builtins, pods))
    return text.getvalue()


def _write(path: Path, text: str) -> None:
    """Write a file, which appears when it is complete; InputError if that is not possible."""
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise InputError(str(path), f"cannot be written: {error.strerror}") from None


def _shown(result: SimulationResult) -> str:
    """The results as text."""
    parts = [aligned(("FIGURE", "VALUE"), _figures(result))]
    if result.pending:
        rows = [(f"{each.pods:,}", each.message or "not tried") for each in result.pending]
        parts.append(aligned(("PENDING", "REASON"), rows))
    return "\n\n".join(parts)


def _figures(result: SimulationResult) -> list[tuple[str, str]]:
    """Names and values of the figures that people look at."""
    pods, waited = result.pods, result.waiting_seconds
    rows = [
        ("simulated time", str(Duration(result.seconds))),
        ("pods created", f"{pods['Created']:,}"),
        *((name.lower(), f"{pods[name]:,}") for name in map(str, Outcome) if pods[name]),
        ("failed attempts", f"{result.failed_attempts:,}"),
    ]
    if waited is not None:
        times = (waited.mean, waited.p50, waited.p90, waited.p99, waited.max)
        names = ("mean", "p50", "p90", "p99", "max")
        shown = ", ".join(f"{name} {each:,.1f} s" for name, each in zip(names, times, strict=True))
        rows.append(("waiting time", shown))
    for resource, share in result.utilisation.items():
        rows.append((f"{resource} requested", f"{share.mean:.1%} of all nodes, at most {share.peak:.1%}"))
    if result.cost:
        rows.append(("cost", f"{result.cost:,.2f}"))
    return rows
