"""`moorage simulate`: what would happen to this workload on that cluster?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import typer

from moorage.api.decode import InputError
from moorage.cli.aligned_table import aligned
from moorage.cli.garbage_collection import long_running
from moorage.cli.output_files import replaced, write_file
from moorage.cli.scenario_options import ScenarioOptions, SkippedLines
from moorage.cli.simulation_progress import SimulationProgress
from moorage.cli.version_options import emulated
from moorage.config.duration import Duration
from moorage.framework.loading.registry import RegistryError
from moorage.simulation.placement_files import placement_form, write_placements
from moorage.simulation.records import Outcome
from moorage.simulation.report import html_report
from moorage.simulation.results import SimulationResult
from moorage.simulation.run import run_simulation
from moorage.simulation.scenario import read_scenario
from moorage.simulation.settings import Settings, load_settings

_COMMAND: Final = "moorage simulate"
_UNREADABLE: Final = 2
"""Exit status: the input could not be used."""
_SIGNALLED: Final = 128
"""Exit status, to which the number of a signal is added: it was interrupted."""


@dataclass(frozen=True, slots=True)
class SimulateOptions:
    """What is to be simulated, and how."""

    scenario: ScenarioOptions
    until_seconds: float | None
    restarts: bool
    seed: int
    config: Path | None
    plugins: list[Path] | None
    emulated_version: str | None
    feature_gates: list[str] | None

    def settings(self) -> Settings:
        """How it is run; InputError if that is not possible."""
        return load_settings(
            self.config,
            self.plugins or (),
            emulated(self.emulated_version, self.feature_gates),
            seed=self.seed,
            until_seconds=self.until_seconds,
            restarts_pods=self.restarts,
        )


def show_simulation(
    options: SimulateOptions, *, as_json: bool, placements: Path | None, report: Path | None
) -> None:
    """Simulate, and print the results; exits with status 2 for bad input, 130 or 143 if interrupted."""
    long_running("simulate")
    skipped = SkippedLines(_COMMAND)
    try:
        form = "" if placements is None else placement_form(placements)
        settings = options.settings()
        bad_line = skipped.add if options.scenario.skips_bad else None
        scenario = read_scenario(options.scenario.source(settings), settings.version, bad_line)
        with SimulationProgress(_COMMAND, scenario.pod_count, settings.until_seconds) as progress:
            run = run_simulation(scenario, settings, progress.update, interruptible=True)
        result = run.result
        if placements is not None:
            with replaced(placements) as part:
                write_placements(part, form, result)
        if report is not None:
            write_file(report, html_report(result, run.nodes, _figures(result)))
    except (InputError, RegistryError) as error:
        typer.echo(f"{_COMMAND}: {error}", err=True)
        raise typer.Exit(_UNREADABLE) from None
    skipped.show_count()
    for note in run.notes:
        typer.echo(f"{_COMMAND}: {note}", err=True)
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(result)))
    else:
        typer.echo(_shown(result))
    if run.interrupted_by is not None:
        typer.echo(f"{_COMMAND}: interrupted; the results are those up to then", err=True)
        raise typer.Exit(_SIGNALLED + run.interrupted_by)


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
        *(() if result.complete else [("interrupted", "the results are those up to then")]),
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
    for resource, part in result.fragmentation.items():
        rows.append((f"{resource} fragmented", f"{part.mean:.1%} of what is free, at most {part.peak:.1%}"))
    if result.cost:
        rows.append(("cost", f"{result.cost:,.2f}"))
    return rows
