"""The tables of bench/RESULTS.md are written from reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.cold import Times
from bench.publish import RESULTS, UNWANTED, WORKLOAD, Checkout, Run, runs, sections, updated
from moorage.bench.results import BenchmarkReport, NotRun, Parts, Rates, Round, WorkloadResult, write_report
from moorage.bench.runner import new_report
from moorage.bench.workload_files import FILE_NAME, read_workloads
from tests.bench.files import BENCH

DOCUMENT = """\
# Results

<!-- smallest ratio -->
old
lines

<!-- cold -->

| pod | cold: median | p90 | warm: median |
|---|---|---|---|
| plain | not measured | not measured | not measured |

<!-- workloads: $PERF/misc -->

| workload | engine | CPU | MB | HTTP | CPU | kube-scheduler | ratio |
|---|---|---|---|---|---|---|---|
| A/big | 1 | not measured | not measured | not measured | not measured | 20 | 2.5x (1.0 - 3.0) |
| B/big | 7 | 8 | 9 | 10 | 11 | not measured | not measured |

Words.

<!-- workloads: bench/large -->

| workload | engine | CPU | MB | HTTP | CPU | kube-scheduler | ratio |
|---|---|---|---|---|---|---|---|
| C/huge | not measured | not measured | not measured | - | - | - | - |

<!-- workloads: $NEXT/dra -->

| workload | engine | CPU | MB | HTTP | CPU | kube-scheduler | ratio |
|---|---|---|---|---|---|---|---|
| D/new | 1 | 2 | 3 | 4 | 5 | not measured | not measured |
"""


def result(name: str, *rounds: Round) -> WorkloadResult:
    rate = rounds[0].pods_per_second
    return WorkloadResult(
        name=name,
        pods=1,
        nodes=1,
        seconds=1.0,
        pods_per_second=Rates(average=rate, sampled_average=rate, p50=rate, p90=rate, p95=rate, p99=rate),
        latency_seconds=None,
        attempt_seconds=None,
        extension_points={},
        plugins={},
        cpu_seconds_per_pod=Parts(),
        peak_memory_bytes=Parts(scheduler=123.4e6),
        threshold=None,
        notes=[],
        rounds=list(rounds),
    )


def one(rate: float, cpu: float, reference: float | None = None, server: float | None = None) -> Round:
    return Round(
        pods_per_second=rate,
        sampled_pods_per_second=rate,
        cpu_seconds_per_pod=Parts(scheduler=cpu, server=server),
        reference_pods_per_second=reference,
    )


def report(*results: WorkloadResult, failed: str = "") -> BenchmarkReport:
    made = new_report("engine")
    made.workloads += results
    if failed:
        made.failed.append(NotRun(name=failed, reason="too slow"))
    return made


def rows(text: str) -> dict[str, list[str]]:
    return {row[WORKLOAD]: row[1:] for table in sections(text) for row in table.rows}


def test_figures_of_reports_replace_those_in_the_tables_and_others_stay() -> None:
    engine = report(result("A/big", one(2000, 3e-4, 100), one(1000, 2e-4, 200), one(3000, 4e-4, 100)))
    http = report(result("A/big", one(900, 3e-4, server=2e-4)))
    text = updated(DOCUMENT, [("engine", engine), ("http", http)])
    assert rows(text) == {
        "A/big": [
            "2,000 (1,000 - 3,000)",
            "200",
            "123",
            "900",
            "300 / 200 / not measured",
            "100 (100 - 200)",
            "20.0x (5.0 - 30.0)",
        ],
        "B/big": ["7", "8", "9", "10", "11", "not measured", "not measured"],
        "C/huge": ["not measured", "not measured", "not measured", "-", "-", "-", "-"],
        "D/new": ["1", "2", "3", "4", "5", "not measured", "not measured"],
    }
    assert "\nWords.\n" in text
    assert updated(text, []) == text


def test_the_smallest_ratio_is_named_at_the_top_and_so_is_what_failed() -> None:
    slower = report(result("B/big", one(30, 1e-3, 20)))
    text = updated(DOCUMENT, [("engine", slower), ("engine", report(failed="C/huge"))])
    assert text.splitlines()[2:5] == [
        "<!-- smallest ratio -->",
        "**Smallest ratio to kube-scheduler: 1.5x, B/big.** Failed: C/huge. 2 of 3 workloads have been"
        " measured beside kube-scheduler.",
        "",
    ]


def test_cold_decisions_have_a_table() -> None:
    text = updated(DOCUMENT, [], [Times("plain", 5000, 600, 390.6, 1500.0, 80.2)])
    assert "|---|---|---|---|\n| plain | 391 | 1,500 | 80 |\n\n" in text


def test_every_row_is_run_in_all_ways_that_are_wanted(tmp_path: Path) -> None:
    tables = sections(DOCUMENT)
    checkouts = {"$PERF": Checkout(Path("/perf"), "kube-scheduler=binary"), "$NEXT": Checkout(Path("/next"))}
    planned = list(runs(tables, checkouts, tmp_path))
    calls = [" ".join(each.arguments) for each in planned]
    assert [call.partition(" --output")[0] for call in calls] == [
        "/perf/misc --engine --only A/big --rounds 5 --compare-with kube-scheduler=binary",
        "/perf/misc --http --only A/big --rounds 5",
        "/perf/misc --engine --only B/big --rounds 5 --compare-with kube-scheduler=binary",
        "/perf/misc --http --only B/big --rounds 5",
        "bench/large --engine --only C/huge --rounds 5",
        "/next/dra --engine --only D/new --rounds 5",
        "/next/dra --http --only D/new --rounds 5",
    ]
    assert len({each.output for each in planned}) == len(planned)
    without = {"$PERF": Checkout(), "$NEXT": Checkout()}
    assert [each.mode for each in runs(tables, without, tmp_path)] == ["engine"]


def test_the_next_release_has_a_binary_of_its_own(tmp_path: Path) -> None:
    checkouts = {"$PERF": Checkout(), "$NEXT": Checkout(Path("/next"), "kube-scheduler=new")}
    planned = list(runs(sections(DOCUMENT), checkouts, tmp_path))
    assert [each.reference for each in planned] == ["", "kube-scheduler", ""]
    assert "kube-scheduler=new" in planned[1].arguments


@pytest.mark.parametrize(
    ("written", "is_complete"),
    [
        (None, False),
        (report(), False),
        (report(result("A/big", one(1, 1))), False),
        (report(result("A/big", one(1, 1), one(2, 1))), True),
        (report(failed="A/big"), True),
    ],
    ids=["no report", "nothing", "one round", "all rounds", "failed"],
)
def test_what_is_measured_is_not_measured_again(
    tmp_path: Path, written: BenchmarkReport | None, is_complete: bool
) -> None:
    output = tmp_path / "report.json"
    if written is not None:
        write_report(output, written)
    assert Run("engine", 2, output, []).is_complete() is is_complete


def test_what_is_measured_alone_is_measured_again_to_be_compared(tmp_path: Path) -> None:
    output = tmp_path / "report.json"
    write_report(output, report(result("A/big", one(1, 1))))
    assert not Run("engine", 1, output, [], "kube-scheduler").is_complete()
    compared = report(result("A/big", one(1, 1, 2)))
    compared.reference = "kube-scheduler"
    write_report(output, compared)
    assert Run("engine", 1, output, [], "kube-scheduler").is_complete()


def test_a_failure_of_the_other_scheduler_is_not_this_one_s() -> None:
    failing = report()
    failing.reference = "kube-scheduler"
    failing.failed.append(NotRun(name="B/big", reason="kube-scheduler: it has no such workload"))
    text = updated(DOCUMENT, [("engine", failing)])
    assert rows(text)["B/big"] == ["7", "8", "9", "10", "11", "failed", "not measured"]


def test_the_results_have_every_workload_of_this_repository_once() -> None:
    tables = {each.directory: each for each in sections(RESULTS.read_text())}
    names = [row[WORKLOAD] for table in tables.values() for row in table.rows]
    assert len(names) == len(set(names))
    for directory in ("bench/workloads", "bench/large"):
        planned = read_workloads(BENCH.parent / directory / FILE_NAME)
        wanted = {each.name for each in planned if "performance" in each.labels or "large" in each.labels}
        listed = {row[WORKLOAD] for row in tables[directory].rows}
        assert {each for each in wanted if not each.startswith("Latency")} == listed
    topics = ("misc", "affinity", "topology_spreading", "volumes", "event_handling", "nodedeclaredfeatures")
    assert {f"$PERF/{topic}" for topic in (*topics, "dra", "dra/extendedresource")} <= tables.keys()
    assert {f"$NEXT/{topic}" for topic in ("batching", "starvation", "dra")} <= tables.keys()
    assert UNWANTED in {cell for row in tables["bench/large"].rows for cell in row}


def test_the_published_summary_is_that_of_the_tables() -> None:
    text = RESULTS.read_text()
    assert updated(text, []) == text
