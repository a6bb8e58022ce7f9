"""Decisions as tables on a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from moorage.explain.group_report import GroupReport, MemberReport, PlacementReport
from moorage.explain.report import NodeReport, Report

_CHOSEN: Final = "bold green"


def _console() -> Console:
    return Console(markup=False, highlight=False)


def print_pod(decided: Report, top: int) -> None:
    """Print the decision about a pod: its node, and why others were worse or refused."""
    console = _console()
    if decided.node is None:
        console.print(f"{decided.pod} fits nowhere: {decided.message}", soft_wrap=True)
        if decided.nominated:
            going = ", ".join(decided.victims) or "pods that are leaving already"
            console.print(f"evicting {going} would make room on {decided.nominated}", soft_wrap=True)
    else:
        tie = f" (one of {decided.tied} equally good)" if decided.tied > 1 else ""
        console.print(f"{decided.pod} goes to {decided.node}{tie}", soft_wrap=True, style="bold")
    feasible = [node for node in decided.nodes if not node.reasons]
    if len(feasible) == 1:
        console.print("no other node fits, so there was nothing to score")
    elif feasible:
        console.print(_score_table(feasible[:top]))
        if len(feasible) > top:
            console.print(f"... and {len(feasible) - top} more feasible nodes")
    _print_refusals(console, decided, "refused")


def _print_refusals(console: Console, decided: Report, title: str) -> None:
    refused = Counter((n.refused_by, ", ".join(n.reasons)) for n in decided.nodes if n.reasons)
    if refused:
        table = Table("refused by", "why", "nodes", title=title, title_justify="left")
        for (plugin, why), count in refused.most_common():
            table.add_row(Text(plugin), Text(why), str(count))
        console.print(table)


def _score_table(nodes: list[NodeReport]) -> Table:
    table = Table("node", "total", "scores (weighted)", title="feasible", title_justify="left")
    table.columns[0].no_wrap = True
    for node in nodes:
        row = (Text(node.node), _number(node.total), Text(_parts(node.scores)))
        table.add_row(*row, style=_CHOSEN if node.chosen else "")
    return table


def _parts(scores: Mapping[str, int] | None) -> str:
    """The scores that a total is made of, the largest first."""
    ordered = sorted((scores or {}).items(), key=lambda item: -item[1])
    return ", ".join(f"{plugin} {score}" for plugin, score in ordered if score)


def _number(value: int | None) -> str:
    return "" if value is None else str(value)


# Groups


def print_group(decided: GroupReport, parent: str = "") -> None:
    """Print the decision about a group: its placements, its members, and what kept it from running."""
    console = _console()
    part = f" (part of {parent})" if parent else ""
    left = "what is left of " if decided.cycle > 1 else ""
    console.print(f"{left}{decided.group}{part} {_verdict(decided)}", soft_wrap=True, style=_style(decided))
    failing = (
        None if decided.is_scheduled else next((each for each in decided.members if each.is_unfit), None)
    )
    if failing is not None:
        console.print(f"{failing.pod} does not fit: {failing.message}", soft_wrap=True)
    if decided.victims:
        console.print(f"evicting {', '.join(decided.victims)} would make room", soft_wrap=True)
    if any(placement.name for placement in decided.placements):
        console.print(_placement_table(decided.placements))
    if decided.members:
        console.print(_member_table(decided.members))
    if failing is not None:
        _print_refusals(console, failing, f"refused for {failing.pod}")
    for child in decided.children:
        print_group(child, decided.group)


def _verdict(decided: GroupReport) -> str:
    if decided.outcome == "Incomplete":
        return f"waits, incomplete: {decided.message}"
    if decided.outcome == "Gated":
        return f"waits: {decided.message}"
    if not decided.is_scheduled:
        return f"is not scheduled: {decided.message}"
    placed = sum(each.node is not None for each in decided.all_members())
    total = sum(1 for _ in decided.all_members())
    where = f" in placement {decided.chosen.name}" if decided.chosen and decided.chosen.name else ""
    return f"is scheduled{where}: {placed} of {total} pods get nodes"


def _style(decided: GroupReport) -> str:
    return "bold" if decided.is_scheduled else ""


def _placement_table(placements: Sequence[PlacementReport]) -> Table:
    table = Table(
        "placement", "nodes", "total", "scores, or why not", title="placements", title_justify="left"
    )
    table.columns[0].no_wrap = True
    for each in placements:
        row = (Text(each.name), str(each.nodes), _number(each.total), Text(_about(each)))
        table.add_row(*row, style=_CHOSEN if each.chosen else "")
    return table


def _about(placement: PlacementReport) -> str:
    if not placement.feasible:
        return placement.message
    return _parts(placement.scores) if placement.scores else "no other is feasible, so it was not scored"


def _member_table(members: Sequence[MemberReport]) -> Table:
    table = Table("pod", "node", "why it has none", title="members", title_justify="left")
    table.columns[0].no_wrap = True
    for member in members:
        table.add_row(Text(member.pod), Text(member.node or ""), Text(_why_waiting(member)))
    return table


def _why_waiting(member: MemberReport) -> str:
    """Why a member has no node: what is said of the whole group is not repeated."""
    if member.node is not None:
        return ""
    if member.is_unfit:
        why = member.message
    elif member.found:
        why = f"fits on {member.found}, but the group is not scheduled"
    else:
        why = "not tried"
    return f"nominated to {member.nominated}; {why}" if member.nominated else why
