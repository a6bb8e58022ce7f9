"""Plans as text: a sentence, and tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from moorage.api.quantity import NANO, format_quantity
from moorage.cli.aligned_table import aligned
from moorage.planning.consolidation import Consolidation
from moorage.planning.drain import Drain
from moorage.planning.failures import Failure, Failures
from moorage.planning.fit import Fit
from moorage.planning.node_set import NodeSet
from moorage.planning.results import Move, Usage, WaitingPod

_MAX_ROWS: Final = 20
"""Number of rows up to which tables of nodes and moves are shown whole; JSON has all."""


def fit_text(plan: Fit) -> str:
    """How many more pods fit."""
    what = "1 more pod fits" if plan.pods == 1 else f"{plan.pods:,} more pods fit"
    rounds = f" ({_count(plan.rounds, 'round')})" if plan.pods != plan.rounds else ""
    if not plan.complete:
        after = "; there may be room for more"
    else:
        verb = "fits nowhere" if not plan.rounds else "is the first that fits nowhere"
        after = f"; then {plan.failed_pod} {verb}: {plan.runs_out}"
    parts = [what + rounds + after + _pending_before(plan.pending_before)]
    if plan.nodes:
        rows = [(each.node, f"{each.pods:,}") for each in plan.nodes]
        parts.append(_table(("NODE", "PODS"), rows))
    reasons = [("ran out", each) for each in plan.ran_out]
    reasons += [("never fitted", each) for each in plan.never_fitted]
    if reasons:
        shown = [(f"{each.nodes:,}", when, each.plugin, ", ".join(each.reasons)) for when, each in reasons]
        parts.append(aligned(("NODES", "SINCE", "REJECTED BY", "WHY"), shown))
    elif plan.message:
        parts.append(plan.message)
    return "\n\n".join(parts)


def node_set_text(plan: NodeSet) -> str:
    """Which nodes fit a backlog."""
    state = "verified by simulation" if plan.verified else "NOT verified: pods stay pending"
    parts = []
    if plan.shapes:
        rows = [
            (
                each.shape,
                each.zone or "-",
                f"{each.count:,}",
                f"{each.price_per_hour:g}",
                f"{each.count * each.price_per_hour:g}",
                f"{each.pods:,}",
            )
            for each in plan.shapes
        ]
        parts.append(aligned(("SHAPE", "ZONE", "NODES", "PRICE", "COST", "PODS"), rows))
    figures = [
        (
            "pods",
            f"{plan.pods:,}" + (f", {plan.on_existing:,} on existing nodes" if plan.on_existing else ""),
        ),
        ("cost by hour", f"{plan.cost_per_hour:g}, {state}"),
        ("lower bound", f"{plan.bound_per_hour:g}"),
        ("gap", "-" if plan.gap is None else f"{plan.gap:.1%}"),
        ("simulations", f"{plan.simulations:,}"),
    ]
    parts.append(aligned(("FIGURE", "VALUE"), figures))
    if plan.why:
        parts.append("\n".join(("why", *(f"- {each}" for each in plan.why))))
    if plan.pending:
        reasons = [(f"{each.pods:,}", each.message) for each in plan.pending]
        parts.append(aligned(("PENDING", "REASON"), reasons))
    return "\n\n".join(parts)


def drain_text(plan: Drain) -> str:
    """What a drain would do."""
    if plan.succeeds:
        verdict = (
            f"{_count(len(plan.nodes), 'node')} can be drained: {_count(len(plan.moves), 'pod')} would move"
        )
    else:
        verdict = (
            f"draining {_count(len(plan.nodes), 'node')}: {_count(len(plan.moves), 'pod')} would move, "
            f"{len(plan.pending):,} would be pending, {len(plan.blocked):,} would stay"
        )
    ignored = f"; {plan.ignored:,} of DaemonSets and static pods stay" if plan.ignored else ""
    parts = [verdict + ignored + _pending_before(plan.pending_before)]
    if plan.moves:
        parts.append(_moves(plan.moves))
    if plan.pending:
        parts.append(_waiting(plan.pending))
    if plan.blocked:
        rows = [(f"{each.namespace}/{each.name}", each.node, each.reason) for each in plan.blocked]
        parts.append(_table(("STAYS", "ON", "WHY"), rows))
    parts.append(_usage(plan.usage))
    return "\n\n".join(parts)


def consolidation_text(plan: Consolidation) -> str:
    """Which nodes could be emptied."""
    saving = (
        f", saving {plan.saving_per_hour:g} of {plan.cost_per_hour:g} by hour" if plan.cost_per_hour else ""
    )
    count = len(plan.emptied)
    parts = [f"{_count(count, 'node')} can be emptied{saving}" + _pending_before(plan.pending_before)]
    if plan.emptied:
        rows = [
            (str(number), each.node, f"{each.price_per_hour:g}", f"{len(each.moves):,}")
            for number, each in enumerate(plan.emptied, 1)
        ]
        parts.append(_table(("ORDER", "NODE", "PRICE", "MOVES"), rows))
        if moves := [move for each in plan.emptied for move in each.moves]:
            parts.append(_moves(moves))
    if plan.kept:
        parts.append(_table(("KEPT", "WHY"), [(each.node, each.reason) for each in plan.kept]))
    parts.append(_usage(plan.usage))
    return "\n\n".join(parts)


def failures_text(plan: Failures) -> str:
    """What failures would leave pending."""
    header = ("FAILS", "NODES", "PODS", "PLACED", "PENDING", "LOST", "REQUESTED AFTER")
    rows = [
        (
            each.name,
            f"{each.nodes:,}",
            f"{each.displaced + len(each.lost):,}",
            f"{len(each.moves):,}",
            f"{len(each.pending):,}",
            f"{len(each.lost):,}",
            ", ".join(f"{used.resource} {used.share:.0%}" for used in each.usage if used.allocatable),
        )
        for each in sorted(plan.domains, key=lambda each: (-len(each.pending), -len(each.lost), each.name))
    ]
    parts = [_table(header, rows) + _pending_before(plan.pending_before)]
    reasons = [row for each in plan.domains for row in _reasons(each)]
    if reasons:
        parts.append(_table(("FAILS", "PENDING", "REASON"), reasons))
    return "\n\n".join(parts)


def _reasons(failure: Failure) -> Iterable[tuple[str, str, str]]:
    return ((failure.name, f"{each.pods:,}", each.message) for each in failure.reasons)


def _moves(moves: Sequence[Move]) -> str:
    rows = [(f"{each.namespace}/{each.name}", each.source, each.node) for each in moves]
    return _table(("MOVES", "FROM", "TO"), rows)


def _waiting(pods: Sequence[WaitingPod]) -> str:
    rows = []
    for each in pods:
        preempts = f" (it would preempt on {each.preempts_on})" if each.preempts_on else ""
        rows.append((f"{each.namespace}/{each.name}", each.source, each.message + preempts))
    return _table(("PENDING", "FROM", "REASON"), rows)


def _usage(usage: Sequence[Usage]) -> str:
    rows = [
        (each.resource, _amount(each, each.requested), _amount(each, each.allocatable), f"{each.share:.0%}")
        for each in usage
        if each.allocatable
    ]
    return aligned(("AFTER", "REQUESTED", "ALLOCATABLE", "SHARE"), rows)


def _amount(usage: Usage, amount: int) -> str:
    unit = NANO // 1000 if usage.resource == "cpu" else NANO
    return format_quantity(amount * unit)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; of a long one the first rows."""
    more = len(rows) - _MAX_ROWS
    text = aligned(header, rows[:_MAX_ROWS])
    return f"{text}\n... and {more:,} more (-o json has all)" if more > 0 else text


def _pending_before(count: int) -> str:
    return f"\n{_count(count, 'pod')} of the cluster pending before" if count else ""


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
