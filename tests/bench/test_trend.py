"""The trend of figures over commits, and its chart."""

from __future__ import annotations

from xml.etree import ElementTree

from bench.trend import CHART, TREND, Entry, added, chart, entries_of, read, write
from tests.bench.test_publish import one, report, result

SVG = "{http://www.w3.org/2000/svg}"


def entry(commit: str, workload: str, rate: int, cpu: int | None = 200) -> Entry:
    return Entry("0.1.0", commit, "2026-11-15", workload, rate, cpu, "2 cores, Python 3.11")


def test_a_report_makes_a_line_for_each_workload() -> None:
    made = report(result("A/big", one(2000.4, 3e-4), one(1000, 2e-4)))
    (line,) = entries_of(made, "abc", "2026-11-16", "a machine")
    assert line == Entry(made.version, "abc", "2026-11-16", "A/big", 2000, 200, "a machine")


def test_a_file_is_read_as_it_was_written() -> None:
    entries = [entry("abc", "A/big", 2000), entry("abc", "B/big", 7, None)]
    assert read(write(entries)) == entries


def test_figures_of_the_same_commit_are_replaced_and_others_kept() -> None:
    old = [entry("abc", "A/big", 1), entry("abc", "B/big", 2)]
    new = [entry("abc", "B/big", 3), entry("def", "A/big", 4)]
    assert added(old, new) == [old[0], new[0], new[1]]


def test_the_chart_has_a_line_for_each_workload_and_the_names_of_commits() -> None:
    entries = [entry("abc", "A/big", 1), entry("abc", "B/big", 2), entry("def", "A/big", 4)]
    drawn = ElementTree.fromstring(chart(entries))
    lines = [each.attrib["points"].split() for each in drawn.iter(f"{SVG}polyline")]
    assert [len(each) for each in lines] == [2, 1]
    texts = [each.text for each in drawn.iter(f"{SVG}text")]
    assert {"abc", "def", "A/big", "B/big"} <= set(texts)


def test_the_published_chart_is_that_of_the_published_figures() -> None:
    entries = read(TREND.read_text())
    assert write(entries) == TREND.read_text()
    assert chart(entries) == CHART.read_text()
