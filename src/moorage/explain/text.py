"""An explanation as text: aligned columns, as kubectl prints them; colours only on a terminal."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from moorage.explain.bound import BoundPod
from moorage.explain.evaluation import PluginScores, RefusedNodes
from moorage.explain.explanation import Explanation
from moorage.explain.queue_text import queue_line

_NAMED_NODES: Final = 3
"""Number of nodes of a group that are named."""
_SCORED_NODES: Final = 10
"""Number of feasible nodes that are shown, unless all are asked for."""

_EVALUATING_POINTS: Final = ("filter", "score")
"""Extension points whose left out plugins are shown, unless all are asked for."""


def print_explanation(
    explanation: Explanation, console: Console, node: str = "", *, everything: bool = False
) -> None:
    """Print an explanation.

    node: a node to show in full. everything: show every filter that rejects a node, and every feasible node.
    """
    console.print(explanation.verdict, style="bold", soft_wrap=True)
    decision = explanation.decision
    if decision is not None and decision.message:
        console.print(decision.message, soft_wrap=True)
    for note in explanation.notes:
        console.print(f"note: {note}", style="yellow", soft_wrap=True)
    if explanation.queue is not None:
        console.print(queue_line(explanation.queue, datetime.now(UTC)), soft_wrap=True)
    _print_group(explanation, console)
    if decision is None:
        return
    if explanation.bound is not None:
        _print_bound(explanation.bound, console)
    if node:
        _print_node(explanation, console, node)
        return
    if everything:
        _print_all_refusals(explanation, console)
    elif explanation.refused:
        _print_table(
            console, "", ("NODES", "REJECTED BY", "WHY", "WHICH"), _groups(explanation, explanation.refused)
        )
    _print_scores(explanation, console, None if everything else _SCORED_NODES)
    _print_help(explanation, console)
    _print_left_out(explanation, console, None if everything else _EVALUATING_POINTS)


def _print_table(
    console: Console, title: str, headings: Sequence[str], rows: Iterable[Sequence[object]]
) -> None:
    """Print rows under headings; numbers are aligned to the right."""
    rows = list(rows)
    table = Table(box=None, pad_edge=False, show_edge=False, header_style="dim")
    for place, heading in enumerate(headings):
        is_number = bool(rows) and all(isinstance(row[place], int) for row in rows)
        table.add_column(heading, justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(str(cell)) for cell in row))
    console.print()
    if title:
        console.print(title, style="bold")
    console.print(table)


def _groups(explanation: Explanation, groups: Iterable[RefusedNodes]) -> list[tuple[object, ...]]:
    return [
        (len(each.rows), each.plugin, ", ".join(each.reasons), _named(explanation, each)) for each in groups
    ]


def _named(explanation: Explanation, group: RefusedNodes) -> str:
    assert explanation.decision is not None
    names = explanation.decision.feasible.snapshot.names
    return _some(sorted(names[row] for row in group.rows.tolist()))


def _some(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are."""
    more = f" and {len(names) - _NAMED_NODES} more" if len(names) > _NAMED_NODES else ""
    return ", ".join(names[:_NAMED_NODES]) + more


def _print_all_refusals(explanation: Explanation, console: Console) -> None:
    every = explanation.all_refused
    rows: list[tuple[object, ...]] = [
        (explanation.node_count, status.plugin, status.message, "all nodes") for status in every.cluster_wide
    ]
    rows += _groups(explanation, every.by_filter)
    if rows:
        title = "every filter that rejects nodes (a node may be in several rows)"
        _print_table(console, title, ("NODES", "REJECTED BY", "WHY", "WHICH"), rows)


def _print_node(explanation: Explanation, console: Console, name: str) -> None:
    """Everything about one node."""
    decision, every = explanation.decision, explanation.all_refused
    assert decision is not None
    row = decision.feasible.snapshot.row_of[name]
    reasons = [(status.plugin, status.message) for status in every.cluster_wide]
    reasons += [(each.plugin, ", ".join(each.reasons)) for each in every.of(row)]
    if reasons:
        _print_table(console, f"{name} is rejected", ("REJECTED BY", "WHY"), reasons)
        return
    names = decision.feasible.names
    if decision.scores is None or name not in names:
        console.print(f"\n{name} passes all filters")
        return
    place = names.index(name)
    rows = [
        (
            each.plugin,
            int(each.raw[place]),
            int(each.normalised[place]),
            each.weight,
            int(each.weighted[place]),
        )
        for each in explanation.scores
    ]
    title = f"{name} passes all filters, and scores {int(decision.scores.totals[place])}"
    _print_table(console, title, ("PLUGIN", "RAW", "NORMALISED", "WEIGHT", "WEIGHTED"), rows)


def _print_scores(explanation: Explanation, console: Console, limit: int | None) -> None:
    decision = explanation.decision
    assert decision is not None
    if decision.scores is None:
        if decision.node is not None:
            console.print(f"\nonly {decision.node} passes all filters, so that nothing was scored")
        return
    names, totals = decision.feasible.names, decision.scores.totals
    order = sorted(range(len(names)), key=lambda place: (-int(totals[place]), names[place] != decision.node))
    parts = [each for each in explanation.scores if each.raw.any() or each.weighted.any()]
    rows = [(names[place], int(totals[place]), _parts(parts, place)) for place in order[:limit]]
    _print_lead(explanation, console)
    title = f"{len(names)} nodes pass all filters (scores: raw/normalised/weighted)"
    _print_table(console, title, ("NODE", "TOTAL", "SCORES"), rows)
    if limit is not None and len(names) > limit:
        console.print(f"... and {len(names) - limit} more; --all shows them")


def _parts(scores: Iterable[PluginScores], place: int) -> str:
    """The scores of one node."""
    texts = []
    for each in scores:
        raw, normalised, weighted = each.raw[place], each.normalised[place], each.weighted[place]
        texts.append(f"{each.plugin} {int(raw)}/{int(normalised)}/{int(weighted)}")
    return ", ".join(texts)


def _print_lead(explanation: Explanation, console: Console) -> None:
    """What made the chosen node win."""
    lead, decision = explanation.lead(), explanation.decision
    if lead is None or decision is None:
        return
    names = decision.feasible.names
    first, second = names.index(decision.node or ""), names.index(lead.second)
    rows = [
        (
            each.plugin,
            int(each.weighted[first]),
            int(each.weighted[second]),
            f"{lead.by_plugin[each.plugin]:+d}",
        )
        for each in sorted(explanation.scores, key=lambda each: -abs(lead.by_plugin[each.plugin]))
        if lead.by_plugin[each.plugin]
    ]
    title = f"why {decision.node}, and not {lead.second}: {lead.total:+d} in total"
    if not lead.total:
        console.print(f"\n{decision.node} and {lead.second} are equally good: chance decides")
        return
    _print_table(console, title, ("PLUGIN", decision.node or "", lead.second, "DIFFERENCE"), rows)


def _print_group(explanation: Explanation, console: Console) -> None:
    group = explanation.group
    if group is None:
        return
    state = f"group {group.name}: {group.needed} needed at once, {group.known} known, {group.placed} on nodes"
    console.print(f"{state}; {group.message}" if group.message else state, soft_wrap=True)
    if group.failing is not None:
        console.print(f"member {group.failing.pod} gets no node: {group.failing.message}", soft_wrap=True)
    if group.members:
        # Members with a node wait for the group, for the reason that was named.
        rows = [(each.pod, each.node or "", "" if each.node else each.message) for each in group.members]
        _print_table(console, "members without a node", ("POD", "WOULD GET", "WHY NOT"), rows)
    if explanation.decision is not None:
        console.print("\nthe pod alone, without its group:")


def _print_bound(bound: BoundPod, console: Console) -> None:
    """What has changed for a pod that would not be placed on its node again."""
    if bound.is_same:
        return
    rows = [(each.plugin, ", ".join(each.reasons)) for each in bound.rejected]
    if rows:
        _print_table(console, f"{bound.node} is rejected today", ("REJECTED BY", "WHY"), rows)
    if bound.behind:
        behind = [(plugin, f"{-difference:+d}") for plugin, difference in bound.behind.items()]
        _print_table(
            console, f"{bound.node} compared with the best node today", ("PLUGIN", "DIFFERENCE"), behind
        )
    if bound.new_nodes:
        console.print(f"\nnodes that are new since then: {_some(bound.new_nodes)}")
    if bound.new_pods:
        console.print(f"\npods on {bound.node} since then: {_some(bound.new_pods)}")


def _print_help(explanation: Explanation, console: Console) -> None:
    if explanation.help:
        rows = [(str(each), _some(each.nodes)) for each in explanation.help]
        _print_table(console, "what would help (any one of these)", ("CHANGE", "OPENS"), rows)


def _print_left_out(explanation: Explanation, console: Console, points: Collection[str] | None) -> None:
    rows = [
        (each.point, each.why, ", ".join(each.plugins))
        for each in explanation.left_out
        if points is None or each.point in points
    ]
    if rows:
        _print_table(console, "plugins that did not run", ("AT", "BECAUSE", "PLUGINS"), rows)
