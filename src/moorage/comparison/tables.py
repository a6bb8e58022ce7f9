"""The results of a comparison as tables of text, for terminals and for a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from moorage.comparison.results import BoundOnce, ComparedRun, Comparison, RunDifference
from moorage.config.duration import Duration
from moorage.simulation.records import Outcome
from moorage.simulation.results import WaitingTimes

_NO_VALUE: Final = "-"
_WAITING: Final = ("mean", "p50", "p90", "p99", "max")


class Table(NamedTuple):
    """A table of text; the title may be empty."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    left_out: int = 0
    """The number of further rows, which are not in the table."""


def figures_of(comparison: Comparison) -> Table:
    """The figures of all runs, a column for each."""
    return Table("", ("FIGURE", *_names(comparison)), list(_figures(comparison.runs)))


def pending_of(comparison: Comparison) -> Table:
    """Why pods were pending at the end, with a column of numbers of pods for each run."""
    runs = comparison.runs
    counts = [{each.message: each.pods for each in run.pending} for run in runs]
    rows = [
        (*(f"{each.get(message, 0):,}" for each in counts), message or "not tried")
        for message in dict.fromkeys(message for each in counts for message in each)
    ]
    return Table("pods pending at the end", (*_names(comparison), "REASON"), rows)


def _names(comparison: Comparison) -> list[str]:
    return [each.name if each.complete else f"{each.name} (interrupted)" for each in comparison.runs]


def _figures(runs: Sequence[ComparedRun]) -> Iterator[tuple[str, ...]]:
    if len({each.kubernetes_version for each in runs}) > 1:
        yield "Kubernetes", *(f"v{each.kubernetes_version}" for each in runs)
    yield "simulated time", *(str(Duration(each.seconds)) for each in runs)
    for outcome in ("Created", *map(str, Outcome)):
        if any(each.pods[outcome] for each in runs):
            yield f"pods {outcome.lower()}", *(f"{each.pods[outcome]:,}" for each in runs)
    yield "failed attempts", *(f"{each.failed_attempts:,}" for each in runs)
    for name in _WAITING:
        yield f"waiting time, {name}", *(_waiting(each.waiting_seconds, name) for each in runs)
    for resource in runs[0].utilisation:
        shares = [each.utilisation[resource] for each in runs]
        yield f"{resource} requested, mean", *(f"{each.mean:.1%}" for each in shares)
        yield f"{resource} requested, at most", *(f"{each.peak:.1%}" for each in shares)
    if any(each.cost for each in runs):
        yield "cost", *(f"{each.cost:,.2f}" for each in runs)


def _waiting(times: WaitingTimes | None, name: str) -> str:
    return _NO_VALUE if times is None else _seconds(getattr(times, name))


def _seconds(seconds: float) -> str:
    return f"{seconds:,.1f} s"


def summary_of(difference: RunDifference) -> list[str]:
    """What differs, in sentences."""
    waiting, first = difference.waiting_seconds, difference.first_difference
    title = f"{difference.name} beside {difference.former}: "
    if difference.is_empty:
        return [f"{title}no differences; all pods are on the same nodes, and waited as long"]
    lines = [f"{title}{_pods(difference.moved)} on other nodes, {difference.unmoved:,} on the same"]
    if first is not None:
        where = f"on {first.node} instead of {first.former_node}" if first.node and first.former_node else ""
        where = where or (f"on {first.node} instead of none" if first.node else first.message)
        by = f": {first.plugin} {first.reason}".rstrip() if first.plugin or first.reason else ""
        lines.append(f"first difference: {first.pod} after {_seconds(first.at_seconds)} is {where}{by}")
    if waiting is not None:
        lines.append(
            f"waiting time: {_pods(waiting.longer)} longer, {waiting.shorter:,} shorter; "
            f"change: mean {_change(waiting.mean)}, p50 {_change(waiting.p50)}, p90 {_change(waiting.p90)}, "
            f"p99 {_change(waiting.p99)}"
        )
    return lines


def _pods(count: int) -> str:
    return f"{count:,} pod" if count == 1 else f"{count:,} pods"


def _change(seconds: float) -> str:
    return f"{seconds:+,.1f} s"


def tables_of(difference: RunDifference, top: int) -> Iterator[Table]:
    """What differs, as tables of at most `top` rows; tables without rows are left out."""
    former, name = difference.former, difference.name
    nodes = difference.nodes
    tables = (
        _first_of(
            "what moved pods",
            ("PODS", "CAUSE", "PLUGIN", "HOW"),
            [(f"{each.pods:,}", each.cause, each.plugin, each.reason) for each in difference.movers],
            top,
        ),
        _first_of(
            "pods that moved",
            ("POD", "FROM", "TO", "CAUSE", "PLUGIN"),
            [
                (each.pod, each.former_node, each.node, each.by.cause, each.by.plugin)
                for each in difference.moves
            ],
            top,
        ),
        Table(
            "pods whose waiting time changed most", ("POD", former, name, "CHANGE"), list(_waits(difference))
        ),
        _first_of(
            "nodes that are fuller or emptier: cpu that pods of the workload request, mean",
            ("NODE", former, name, "CHANGE"),
            [
                (each.node, f"{each.former:.1%}", f"{each.share:.1%}", f"{100 * each.change:+.1f} points")
                for each in nodes
            ],
            top,
        ),
        _bound_once(f"pods that got a node with {former} only", difference.bound_only_before, top),
        _bound_once(f"pods that got a node with {name} only", difference.bound_only_here, top),
    )
    return (each for each in tables if each.rows)


def _first_of(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], top: int) -> Table:
    return Table(title, header, rows[:top], max(len(rows) - top, 0))


def _waits(difference: RunDifference) -> Iterator[tuple[str, ...]]:
    waiting = difference.waiting_seconds
    if waiting is not None:
        for each in (*waiting.most_longer, *waiting.most_shorter):
            yield each.pod, _seconds(each.former_seconds), _seconds(each.seconds), _change(each.change)


def _bound_once(title: str, pods: Sequence[BoundOnce], top: int) -> Table:
    rows = [(each.pod, each.node, each.message or "not tried") for each in pods]
    return _first_of(title, ("POD", "NODE", "WHY NOT WITH THE OTHER"), rows, top)
