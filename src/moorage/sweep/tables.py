"""The results of a sweep as rows of text."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from moorage.sweep.estimates import Estimate
from moorage.sweep.results import SweepResult, SweepRow

_SIGNIFICANT_DIGITS: Final = 4
_MAX_DECIMALS: Final = 6
BEST: Final = "*"
"""The mark of rows on the Pareto front."""


def header(result: SweepResult) -> list[str]:
    """The names of columns."""
    return ["BEST", "CONFIGURATION", "SCENARIO", "VERSION", "SEEDS", *result.objectives]


def table_rows(result: SweepResult) -> Iterator[list[str]]:
    """The rows, with means and 95 % confidence intervals."""
    for row in result.rows:
        mark = BEST if row.best else ""
        estimates = (shown(row.estimates[each]) for each in result.objectives)
        yield [mark, row.label, row.scenario, row.kubernetes, seeds_of(row), *estimates]


def csv_header(result: SweepResult) -> list[str]:
    """The names of columns: three for each objective."""
    columns = ("mean", "low", "high")
    objectives = (f"{each}.{column}" for each in result.objectives for column in columns)
    parameters = dict.fromkeys(name for row in result.rows for name in row.parameters)
    return ["configuration", *parameters, "scenario", "version", "seeds", "best", *objectives]


def csv_rows(result: SweepResult) -> Iterator[dict[str, object]]:
    """The rows by column, with all digits."""
    for row in result.rows:
        cells: dict[str, object] = {
            "configuration": row.configuration,
            **row.parameters,
            "scenario": row.scenario,
            "version": row.kubernetes,
            "seeds": len(row.results),
            "best": row.best,
        }
        for figure, each in row.estimates.items():
            if each is not None:
                cells |= {f"{figure}.mean": each.mean, f"{figure}.low": each.low, f"{figure}.high": each.high}
        yield cells


def seeds_of(row: SweepRow) -> str:
    """The number of seeds with results, and of those that were asked for if they are more."""
    return str(row.seeds) if row.is_complete else f"{len(row.results)} of {row.seeds}"


def shown(value: Estimate | None) -> str:
    """A mean with its interval: `12.30 ± 0.45`."""
    if value is None:
        return "-"
    decimals = decimals_of(max(abs(value.mean), value.half_width or 0.0))
    mean = f"{value.mean:,.{decimals}f}"
    return mean if value.half_width is None else f"{mean} ± {value.half_width:,.{decimals}f}"


def decimals_of(size: float) -> int:
    """The number of decimals with which numbers of a size have four digits."""
    if not size:
        return 0
    return min(max(_SIGNIFICANT_DIGITS - 1 - math.floor(math.log10(size)), 0), _MAX_DECIMALS)
