"""The page of a simulation, and its map of nodes."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.simulation.node_map import node_map, svg_of
from moorage.simulation.records import NodeRecord, PodRecord
from moorage.simulation.report import html_report
from moorage.simulation.results import result_of
from tests.simulation.simulating import arrivals, manifest, nodes, simulated

SECONDS = 1200.0
TIMES = st.floats(0, SECONDS)


def span(times: tuple[float, float | None]) -> tuple[float, float | None]:
    """A span that does not end before it begins."""
    begin, end = times
    return (begin, end) if end is None or end >= begin else (end, begin)


SPANS = st.tuples(TIMES, st.none() | TIMES).map(span)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4000), SPANS), max_size=8))
def test_the_map_has_the_means_of_each_column(
    pods: list[tuple[int, int, tuple[float, float | None]]],
) -> None:
    there = [NodeRecord(f"n{row}", 4000, 0.0) for row in range(3)]
    bound = [
        PodRecord("default", "p", 0.0, begin, end, f"n{row}", cpu_milli=cpu)
        for row, cpu, (begin, end) in pods
    ]
    drawn = node_map(there, bound, SECONDS)
    width = SECONDS / drawn.shares.shape[1]
    for row in range(3):
        for column in range(0, drawn.shares.shape[1], 7):
            begin, end = column * width, (column + 1) * width
            requested = sum(
                pod.cpu_milli * max(min(_end(pod), end) - max(pod.bound_at or 0.0, begin), 0.0)
                for pod in bound
                if pod.node == f"n{row}"
            )
            assert drawn.shares[row, column] == pytest.approx(requested / width / 4000, abs=1e-6)


def _end(pod: PodRecord) -> float:
    return SECONDS if pod.ended_at is None else pod.ended_at


def test_nodes_that_are_not_there_have_no_colour_and_many_share_rows() -> None:
    there = [NodeRecord(f"n{row}", 1000, 0.0, 600.0 if row < 3 else None) for row in range(250)]
    drawn = node_map(there, [], SECONDS)
    assert len(drawn.labels) == 84
    assert drawn.labels[0] == "n0 to n2"
    assert drawn.labels[-1] == "n249"
    assert (drawn.shares[0, 60:] < 0).all()
    assert np.count_nonzero(drawn.shares < 0) == 60
    assert svg_of(drawn).count("<rect") == 84


class _Page(HTMLParser):
    """What a page has, and what it would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.fetched: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.fetched += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_has_figures_plots_and_reasons_and_fetches_nothing() -> None:
    workload = arrivals(
        manifest("a", duration="10m"), manifest("b", "4", at="1m", duration="10m"), manifest("large", "9")
    )
    ended = simulated(nodes(1), workload)
    result = result_of(ended.records, 0, is_complete=False)
    page = _Page()
    page.feed(html_report(result, ended.records.nodes, [("pods created", "3"), ("<b>", "&")]))
    assert page.fetched == []
    assert page.tags.count("svg") == 4
    assert "Interrupted: the results are those up to then." in page.text
    assert "0/1 nodes are available: 1 Insufficient cpu." in page.text
    assert "<b>" in page.text
    assert "b" not in page.tags
