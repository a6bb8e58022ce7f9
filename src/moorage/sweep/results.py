"""The results of a sweep: means over seeds, and what is best.

They are put together in the order of the study from results by key: when and where tasks ran shows nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from moorage.sweep.estimates import Estimate, estimate
from moorage.sweep.figures import Figures
from moorage.sweep.parameters import label
from moorage.sweep.pareto import pareto_front
from moorage.sweep.plan import Plan, PlannedRow
from moorage.sweep.study import API_VERSION, MAXIMISE, Objective

RESULT_KIND: Final = "Sweep"
_FRONT_OBJECTIVES: Final = 2
"""Number of objectives, the first ones of a study, that the front is about."""


class SeedResult(msgspec.Struct, rename="camel"):
    """The figures of one simulation."""

    seed: int
    figures: Figures


class FailedTask(msgspec.Struct, rename="camel"):
    """A simulation that has no results."""

    configuration: str
    """With the values of its parameters."""
    scenario: str
    kubernetes: str
    seed: int
    reason: str


class SweepRow(msgspec.Struct, rename="camel"):
    """A configuration with a scenario, in a version of Kubernetes."""

    configuration: str
    parameters: dict[str, Any]
    scenario: str
    kubernetes: str
    seeds: int
    """The number of seeds that were asked for."""
    estimates: dict[str, Estimate | None]
    """Means over seeds, by objective; None if a simulation is missing the figure, or all simulations are."""
    best: bool
    """Whether it is on the Pareto front of the first two objectives, among the rows of its scenario."""
    results: list[SeedResult]

    @property
    def label(self) -> str:
        """The configuration with the values of its parameters."""
        return " ".join(filter(None, (self.configuration, label(self.parameters))))

    @property
    def is_complete(self) -> bool:
        """Whether there are results of all seeds."""
        return len(self.results) == self.seeds


class SweepResult(msgspec.Struct, rename="camel", kw_only=True):
    """All results."""

    api_version: str = API_VERSION
    kind: str = RESULT_KIND
    complete: bool
    """Whether all simulations have ended, well or badly."""
    objectives: dict[str, str]
    """Figures, and whether they are minimised or maximised."""
    rows: list[SweepRow]
    failures: list[FailedTask]


def sweep_result(plan: Plan, figures: Mapping[str, Figures], failures: Mapping[str, str]) -> SweepResult:
    """The results as far as there are any. figures, failures: results and reasons by key."""
    rows = [_row(each, plan.objectives, figures) for each in plan.rows]
    for scenario in dict.fromkeys(row.scenario for row in rows):
        _mark_best([row for row in rows if row.scenario == scenario], plan.objectives[:_FRONT_OBJECTIVES])
    return SweepResult(
        complete=all(key in figures or key in failures for key in plan.tasks),
        objectives={each.figure: each.goal for each in plan.objectives},
        rows=rows,
        failures=[
            FailedTask(row.label, row.scenario, row.kubernetes, seed, failures[key])
            for planned, row in zip(plan.rows, rows, strict=True)
            for seed, key in planned.keys.items()
            if key in failures
        ],
    )


def _row(planned: PlannedRow, objectives: Sequence[Objective], figures: Mapping[str, Figures]) -> SweepRow:
    results = [SeedResult(seed, figures[key]) for seed, key in planned.keys.items() if key in figures]
    return SweepRow(
        planned.configuration,
        planned.values,
        planned.scenario,
        planned.kubernetes,
        len(planned.keys),
        {each.figure: _estimate(each.figure, results) for each in objectives},
        False,
        results,
    )


def _estimate(figure: str, results: Sequence[SeedResult]) -> Estimate | None:
    values = [each.figures[figure] for each in results if figure in each.figures]
    return estimate(values) if values and len(values) == len(results) else None


def _mark_best(rows: Sequence[SweepRow], objectives: Sequence[Objective]) -> None:
    """Mark the front among rows that can be compared: those with all results."""
    compared = [
        row for row in rows if row.is_complete and all(row.estimates[each.figure] for each in objectives)
    ]
    points = [_point(row, objectives) for row in compared]
    for index in pareto_front(points):
        compared[index].best = True


def _point(row: SweepRow, objectives: Sequence[Objective]) -> tuple[float, float]:
    """The means of a row, less being better; with one objective, the other is the same everywhere."""
    values = [0.0] * _FRONT_OBJECTIVES
    for index, each in enumerate(objectives):
        found = row.estimates[each.figure]
        assert found is not None
        values[index] = -found.mean if each.goal == MAXIMISE else found.mean
    return values[0], values[1]
