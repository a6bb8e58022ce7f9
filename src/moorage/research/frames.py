"""Results as tables: plain rows, frames of pandas or polars, and HTML in notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

Row = dict[str, Any]
_SHOWN_ROWS: Final = 10
"""Number of rows that are shown in a notebook."""


class Tabular:
    """A result with tables."""

    __slots__ = ()

    def tables(self) -> Mapping[str, Sequence[Row]]:
        """All tables by name, the most important first; rows are plain values by column."""
        raise NotImplementedError

    def to_pandas(self, table: str = "") -> pd.DataFrame:
        """A table as a pandas data frame; by default the first."""
        return _imported("pandas").DataFrame(self._rows(table))

    def to_polars(self, table: str = "") -> pl.DataFrame:
        """A table as a polars data frame; by default the first."""
        frame: pl.DataFrame = _imported("polars").DataFrame(self._rows(table), infer_schema_length=None)
        return frame

    def _rows(self, table: str) -> list[Row]:
        tables = self.tables()
        if table and table not in tables:
            raise KeyError(f"there is no table {table}; there is {', '.join(tables)}")
        return list(tables[table] if table else next(iter(tables.values())))

    def _repr_html_(self) -> str:
        """What a notebook shows: the summary and the first table."""
        rows = self._rows("")
        more = f"<p>and {len(rows) - _SHOWN_ROWS:,} more rows</p>" if len(rows) > _SHOWN_ROWS else ""
        return f"<p>{escape(repr(self))}</p>{_html(rows[:_SHOWN_ROWS])}{more}"


def _imported(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise ImportError(f"{name} is not installed: pip install {name}", name=name) from None


def _html(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    head = "".join(f"<th>{escape(column)}</th>" for column in rows[0])
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(_cell(value))}</td>' for value in row.values())}</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:,.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
