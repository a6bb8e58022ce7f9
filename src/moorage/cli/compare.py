"""`moorage compare`: several configurations on the same workload, side by side."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import typer

from moorage.api.decode import InputError
from moorage.cli.aligned_table import aligned
from moorage.cli.garbage_collection import long_running
from moorage.cli.output_files import write_file
from moorage.cli.scenario_options import ScenarioOptions, SkippedLines
from moorage.cli.simulation_progress import SimulationProgress
from moorage.cli.version_options import emulated
from moorage.comparison.report import comparison_report
from moorage.comparison.results import Comparison
from moorage.comparison.run import Variant, compare_runs
from moorage.comparison.tables import Table, figures_of, pending_of, summary_of, tables_of
from moorage.framework.loading.registry import RegistryError
from moorage.simulation.scenario import Scenario, read_scenario
from moorage.simulation.settings import load_settings
from moorage.simulation.traces.source import BadLine

_COMMAND: Final = "moorage compare"
_DEFAULT: Final = "default"
"""The argument that stands for the default configuration."""
_VERSION: Final = re.compile(r"(?P<file>.+)@(?P<version>v?\d+\.\d+)")
_UNREADABLE: Final = 2
"""Exit status: the input could not be used."""
_SIGNALLED: Final = 128
"""Exit status, to which the number of a signal is added: it was interrupted."""


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """What is to be compared, and how."""

    configurations: list[str]
    scenario: ScenarioOptions
    until_seconds: float | None
    restarts: bool
    seed: int
    plugins: list[Path] | None
    emulated_version: str | None
    feature_gates: list[str] | None
    top: int

    def variants(self, skipped: BadLine | None) -> list[Variant]:
        """What is simulated; InputError if something cannot be used."""
        if len(self.configurations) < 2:
            raise InputError("", f"give at least two configurations; `{_DEFAULT}` stands for the default one")
        scenarios: dict[str, Scenario] = {}
        return [
            self._variant(name, text, scenarios, skipped)
            for name, text in zip(_names(self.configurations), self.configurations, strict=True)
        ]

    def _variant(
        self, name: str, text: str, scenarios: dict[str, Scenario], skipped: BadLine | None
    ) -> Variant:
        """scenarios: those that were read already, by version of Kubernetes."""
        found = _VERSION.fullmatch(text)
        file, number = (text, self.emulated_version) if found is None else found.group("file", "version")
        try:
            version = emulated(number, self.feature_gates)
        except InputError as error:
            raise InputError(text, error.reason) if found is not None else error from None
        settings = load_settings(
            None if file == _DEFAULT else Path(file),
            self.plugins or (),
            version,
            seed=self.seed,
            until_seconds=self.until_seconds,
            restarts_pods=self.restarts,
        )
        if version.minor not in scenarios:
            scenarios[version.minor] = read_scenario(self.scenario.source(settings), version, skipped)
        return Variant(name, settings, scenarios[version.minor])


def _names(texts: list[str]) -> Iterator[str]:
    """Names of configurations, without folders if that tells them apart; the same again gets a number."""
    files = {text: Path(text).name for text in texts}
    is_enough = len(set(files.values())) == len(files)
    given: Counter[str] = Counter()
    for text in texts:
        given[text] += 1
        name = files[text] if is_enough else text
        yield name if given[text] == 1 else f"{name} ({given[text]})"


def show_comparison(options: CompareOptions, *, as_json: bool, report: Path | None) -> None:
    """Compare, and print the results; exits with status 2 for bad input, 130 if it was interrupted."""
    long_running("compare")
    skipped = SkippedLines(_COMMAND)
    try:
        variants = options.variants(_once(skipped.add) if options.scenario.skips_bad else None)
        count = sum(each.scenario.pod_count for each in variants)
        with SimulationProgress(_COMMAND, count, options.until_seconds, len(variants)) as progress:
            compared = compare_runs(variants, progress.update, interruptible=True, top=options.top)
        if report is not None:
            write_file(report, comparison_report(compared))
    except (InputError, RegistryError) as error:
        typer.echo(f"{_COMMAND}: {error}", err=True)
        raise typer.Exit(_UNREADABLE) from None
    skipped.show_count()
    comparison = compared.comparison
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(comparison)).decode())
    else:
        typer.echo("\n\n".join(_shown(comparison, options.top)))
    if compared.interrupted_by is not None:
        typer.echo(f"{_COMMAND}: interrupted; only runs that have ended are compared", err=True)
        raise typer.Exit(_SIGNALLED + compared.interrupted_by)


def _once(add: Callable[[str], None]) -> BadLine:
    """What adds each message once: a trace is read again by each run."""
    added: set[str] = set()

    def add_once(message: str) -> None:
        if message not in added:
            added.add(message)
            add(message)

    return add_once


def _shown(comparison: Comparison, top: int) -> Iterator[str]:
    """The parts of the results as text."""
    yield from _table(figures_of(comparison))
    yield from _table(pending_of(comparison))
    for difference in comparison.differences:
        yield "\n".join(summary_of(difference))
        for each in tables_of(difference, top):
            yield from _table(each)


def _table(table: Table) -> Iterator[str]:
    """A table as text; none if it has no rows."""
    if table.rows:
        title = f"{table.title}\n" if table.title else ""
        more = f"\n... and {table.left_out:,} more" if table.left_out else ""
        yield f"{title}{aligned(table.header, table.rows)}{more}"
