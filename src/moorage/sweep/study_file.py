"""Reading of studies: strict, like that of configurations; all that is wrong is reported by its field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from moorage.api.files import load_documents, read_text
from moorage.api.quantity import parse_quantity
from moorage.config.problems import ConfigError, required, shown, unsupported
from moorage.config.strict import decode
from moorage.sweep.figures import FIGURE_NAMES
from moorage.sweep.study import (
    API_VERSION,
    GRID,
    KIND,
    MAXIMISE,
    MINIMISE,
    RANDOM,
    GeneratedWorkload,
    Parameter,
    Search,
    Study,
)

MAX_TASKS: Final = 100_000
"""Maximum number of simulations of a study."""


def load_study(path: Path) -> Study:
    """The study in a file; ConfigError with all that is wrong, InputError if it cannot be read."""
    documents = load_documents(read_text(path), str(path))
    if len(documents) != 1 or not isinstance(documents[0], Mapping):
        raise ConfigError([f"expected one object with apiVersion {API_VERSION} and kind {KIND}"], str(path))
    body = dict(documents[0])
    if (body.pop("apiVersion", None), body.pop("kind", None)) != (API_VERSION, KIND):
        raise ConfigError([f"expected apiVersion {API_VERSION} and kind {KIND}"], str(path))
    problems: list[str] = []
    study = decode(body, Study, "", problems)
    if not problems:
        problems.extend(_problems(study))
    if problems:
        raise ConfigError(problems, str(path))
    return study


def _problems(study: Study) -> Iterator[str]:
    """What is wrong with a study whose fields have the right types."""
    for name in ("configurations", "scenarios", "objectives"):
        if not getattr(study, name):
            yield required(name, "at least one is needed")
    yield from _repeated("configurations", "name", (each.name for each in study.configurations))
    yield from _repeated("scenarios", "name", (each.name for each in study.scenarios))
    yield from _repeated("objectives", "figure", (each.figure for each in study.objectives))
    yield from _search_problems(study.search)
    yield from _seed_problems(study.seeds)
    for at, configuration in enumerate(study.configurations):
        where = f"configurations[{at}].parameters"
        yield from _repeated(where, "name", (each.name for each in configuration.parameters))
        for number, parameter in enumerate(configuration.parameters):
            yield from _parameter_problems(parameter, f"{where}[{number}]", study.search.type)
    for at, scenario in enumerate(study.scenarios):
        if scenario.workload.generate is not None:
            where = f"scenarios[{at}].workload.generate"
            yield from _generated_problems(scenario.workload.generate, where)
    for at, objective in enumerate(study.objectives):
        if objective.figure not in FIGURE_NAMES:
            yield unsupported(f"objectives[{at}].figure", objective.figure, FIGURE_NAMES)
        if objective.goal not in (MINIMISE, MAXIMISE):
            yield unsupported(f"objectives[{at}].goal", objective.goal, (MINIMISE, MAXIMISE))


def _repeated(where: str, name: str, values: Iterable[str]) -> Iterator[str]:
    for value, count in Counter(values).items():
        if count > 1:
            yield f"{where}: {count} have the {name} {shown(value)}"


def _search_problems(search: Search) -> Iterator[str]:
    if search.type not in (GRID, RANDOM):
        yield unsupported("search.type", search.type, (GRID, RANDOM))
    if search.type == RANDOM and not 1 <= search.samples <= MAX_TASKS:
        yield f"search.samples: expected a whole number from 1 to {MAX_TASKS}, got {search.samples}"
    if search.type == GRID and search.samples:
        yield f"search.samples: a search of type {GRID} has none; use type {RANDOM}"


def _seed_problems(seeds: Any) -> Iterator[str]:
    given = seeds if isinstance(seeds, list) else [seeds]
    if not given or not all(isinstance(each, int) and not isinstance(each, bool) for each in given):
        yield f"seeds: expected a whole number or a list of them, got {shown(seeds)}"
    elif len(set(given)) < len(given):
        yield "seeds: one is given twice"
    elif not isinstance(seeds, list) and not 1 <= seeds <= MAX_TASKS:
        yield f"seeds: expected a number from 1 to {MAX_TASKS}, got {seeds}"


def _parameter_problems(parameter: Parameter, where: str, search: str) -> Iterator[str]:
    extent = parameter.range
    if bool(parameter.values) == (extent is not None):
        yield f"{where}: expected either values or a range"
    elif extent is not None:
        if search != RANDOM:
            yield f"{where}.range: a search of type {search} needs values; use type {RANDOM}"
        if extent.to < extent.start:
            yield f"{where}.range: to is less than from"
        if extent.logarithmic and extent.start <= 0:
            yield f"{where}.range.from: a logarithmic range begins above 0, got {shown(extent.start)}"
        if extent.whole and not (extent.start.is_integer() and extent.to.is_integer()):
            yield f"{where}.range: a range of whole numbers has whole ends"


def _generated_problems(generated: GeneratedWorkload, where: str) -> Iterator[str]:
    for name, number, least in (
        ("pods", generated.pods, 1),
        ("burstSize", generated.burst_size, 1),
        ("gangSize", generated.gang_size, 2),
    ):
        if number < least:
            yield f"{where}.{name}: expected a number of at least {least}, got {number}"
    if not 0 <= generated.gang_share <= 1:
        yield f"{where}.gangShare: expected a share from 0 to 1, got {shown(generated.gang_share)}"
    for name, duration in (
        ("meanInterval", generated.mean_interval),
        ("meanDuration", generated.mean_duration),
    ):
        if duration < 0:
            yield f"{where}.{name}: {duration} is negative"
    resources = {f"resources[{name}]": choices for name, choices in generated.resources.items()}
    for name, choices in {"cpu": generated.cpu, "memory": generated.memory, **resources}.items():
        for at, text in enumerate(choices):
            try:
                parse_quantity(text)
            except ValueError as error:
                yield f"{where}.{name}[{at}]: {error}"
    for name in ("cpu", "memory", "priorities"):
        if not getattr(generated, name):
            yield required(f"{where}.{name}", "at least one is needed")
