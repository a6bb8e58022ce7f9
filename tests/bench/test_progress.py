"""Progress of a run: bars on a terminal, lines in a log."""

from __future__ import annotations

from io import StringIO
from types import SimpleNamespace
from typing import Any, cast

from rich.console import Console

from moorage.bench.progress import LogProgress, TerminalProgress
from moorage.bench.target import Target
from moorage.bench.workload_files import PlannedWorkload, read_workloads
from moorage.clock import VirtualClock
from tests.bench.files import MEASURED, NODES, Files


def two_workloads(files: Files) -> list[PlannedWorkload]:
    many = MEASURED | {"count": 2000}
    return read_workloads(files.case(NODES, many, workloads=[{"name": "a"}, {"name": "b"}]))


def target_with(pods: Any) -> Target:
    return cast("Target", SimpleNamespace(pods=pods))


def test_a_log_has_a_line_for_each_workload_and_one_every_ten_seconds(files: Files) -> None:
    first, second = two_workloads(files)
    lines: list[str] = []
    clock, pods = VirtualClock(), SimpleNamespace(bound=0)
    with LogProgress([first, second], 1, clock, lines.append) as progress:
        progress.begins(first, target_with(pods))
        pods.bound = 500
        clock.advance(10)
        pods.bound = 1800
        clock.advance(10)
        progress.ends(first)
        clock.advance(100)
        progress.begins(second, target_with(SimpleNamespace(bound=0)))
        progress.ends(second)
    assert lines == [
        "workload 1 of 2: Case/a",
        "workload 1 of 2: Case/a: 10 s: 500 of 2,000 pods are scheduled, 50 pods/s",
        "workload 1 of 2: Case/a: 20 s: 1,800 of 2,000 pods are scheduled, 130 pods/s",
        "workload 2 of 2: Case/b",
    ]


def test_a_log_has_rounds_and_the_other_scheduler(files: Files) -> None:
    workload, _ = two_workloads(files)
    lines: list[str] = []
    clock = VirtualClock()
    progress = LogProgress([workload], 2, clock, lines.append)
    for _ in range(2):
        progress.begins_elsewhere(workload, "kube-scheduler")
        clock.advance(10)
        progress.ends(workload)
    assert lines == [
        "workload 1 of 1, round 1 of 2: Case/a (kube-scheduler)",
        "workload 1 of 1, round 1 of 2: Case/a (kube-scheduler): 10 s",
        "workload 1 of 1, round 2 of 2: Case/a (kube-scheduler)",
        "workload 1 of 1, round 2 of 2: Case/a (kube-scheduler): 10 s",
    ]


def test_a_terminal_has_a_bar_with_pods_and_their_rate(files: Files) -> None:
    first, second = two_workloads(files)
    clock, pods, screen = VirtualClock(), SimpleNamespace(bound=0), StringIO()
    console = Console(file=screen, force_terminal=True, width=120)
    with TerminalProgress([first, second], 1, clock, console) as progress:
        progress.begins(second, target_with(pods))
        pods.bound = 600
        clock.advance(0.5)
        progress.ends(second)
    shown = screen.getvalue()
    for text in ("workload 2 of 2: Case/b", "600/2000", "1,200 pods/s"):
        assert text in shown
