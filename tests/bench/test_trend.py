"""Published figures over time: the file, the page and its drawing."""

from __future__ import annotations

from xml.etree import ElementTree

from bench.trend import entries_of
from bench.trend_entries import TREND, Entry, added, read, write
from bench.trend_page import DRAWING, PAGE, drawing, page
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


def test_the_drawing_has_a_chart_for_each_workload_that_was_measured_twice() -> None:
    entries = [
        entry("abc", "A/big", 1),
        entry("abc", "B/big", 2),
        entry("abc", "C", 9),
        entry("def", "A/big", 4),
    ]
    entries += [entry("ghi", "B/big", 3), entry("ghi", "A/big", 2)]
    drawn = ElementTree.fromstring(drawing(entries))
    charts = [
        ([text.text for text in chart.iter(f"{SVG}text")][:3], len(list(chart.iter(f"{SVG}circle"))))
        for chart in drawn.iter(f"{SVG}g")
    ]
    assert charts == [(["A", "big", "2"], 3), (["B", "big", "3"], 2)]


def test_the_page_compares_the_last_run_with_the_one_before() -> None:
    text = page([entry("abc", "A/big", 2000), entry("abc", "C", 9), entry("def", "A/big", 3000, None)])
    assert "| A/big | abc | def | 2,000 | 3,000 | 1.50 | 200 | unknown |" in text
    assert "| C | abc | 9 | 200 |" in text
    assert "| abc | 0.1.0 | 2026-11-15 | 2 | 2 cores, Python 3.11 |" in text


def test_the_published_page_is_that_of_the_published_figures() -> None:
    entries = read(TREND.read_text())
    assert write(entries) == TREND.read_text()
    assert page(entries) == PAGE.read_text()
    assert drawing(entries) == DRAWING.read_text()
