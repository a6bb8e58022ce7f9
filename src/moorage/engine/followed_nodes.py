"""A group's cycle in which the nodes of its members are known: they are followed, and each choice is judged.

What another scheduler leaves to chance is known by its result only. Its nodes are followed member by member,
so that each member is decided for in the state that it was decided for there; then the first choice that is
not among the best is where the two disagree. The order of child groups is not known: it is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, permutations
from math import factorial
from typing import Final, NamedTuple

from moorage.engine.decision import Decision
from moorage.engine.group_result import GroupDecision, GroupResult, member_message
from moorage.engine.placement_trials import MemberTrial, NotedChoices, PlacementTrial
from moorage.framework.interface.pod_groups import Placement, PlacementAssignments, PodGroupInfo
from moorage.framework.runtime.scores import ScoreTable

_MAX_ORDERS: Final = 24
"""Number of orders of child groups that are tried."""


class FollowedNodes:
    """Chooses the known node of each member where it passes the filters, and the placement with these nodes.

    nodes: the nodes of members, by uid. order: which of the orders of child groups is followed.
    """

    reads_decisions = True

    def __init__(self, nodes: Mapping[str, str], order: int = 0) -> None:
        self._nodes = nodes
        self._order = order

    def placements(self, group: PodGroupInfo, placements: Sequence[Placement]) -> Sequence[Placement]:
        """As generated: which one is first decides nothing but whose status is shown."""
        return placements

    def children(self, group: PodGroupInfo) -> Sequence[PodGroupInfo]:
        """In the order to follow."""
        number = self._order % factorial(len(group.children))
        return next(islice(permutations(group.children), number, None))

    def node(self, decision: Decision) -> str | None:
        """The known node, if it is feasible."""
        known = self._nodes.get(decision.pod.uid)
        has_choice = decision.node is not None and known in decision.feasible.names
        return known if has_choice else decision.node

    def trying(self, group: PodGroupInfo, placement: Placement) -> None:
        """Nothing to do."""

    def tried(self, placement: Placement, result: GroupResult) -> None:
        """Nothing to do."""

    def best(
        self, group: PodGroupInfo, feasible: Sequence[PlacementAssignments], scores: ScoreTable | None
    ) -> int:
        """The placement in which most members are on their known nodes."""

        def rank(index: int) -> tuple[int, int]:
            assigned = feasible[index].assignments
            followed = sum(self._nodes.get(each.pod.uid) == each.node_name for each in assigned)
            return followed, 0 if scores is None else int(scores.totals[index])

        return max(range(len(feasible)), key=rank)


class TakenPlacement(NamedTuple):
    """The trial of a group in the placement that was taken, and the one with the best total."""

    trial: PlacementTrial
    best: PlacementTrial


class Disagreement(NamedTuple):
    """The first choice that is not among the best.

    member: the member whose node it is. placement: the placement that is not the best. Neither: the group
    as a whole differs, as the message says. agreed: the number of members before it.
    """

    agreed: int
    member: MemberTrial | None = None
    placement: TakenPlacement | None = None
    message: str = ""


class FollowedDecision(NamedTuple):
    """A decision that follows known nodes, and where it disagrees with them; None: nowhere."""

    decision: GroupDecision
    taken: Sequence[TakenPlacement]
    disagreement: Disagreement | None


def follow(
    root: PodGroupInfo, nodes: Mapping[str, str], decide: Callable[[NotedChoices], GroupDecision]
) -> FollowedDecision:
    """Follow the nodes of a group's members, with any order of child groups.

    nodes: by uid; members without a node are not in it. decide: the group's cycle with certain choices.
    """
    found: list[tuple[Disagreement, FollowedDecision]] = []
    for order in range(min(_MAX_ORDERS, _orders(root))):
        choices = NotedChoices(FollowedNodes(nodes, order))
        decision = decide(choices)
        taken = list(_taken(choices.trials(decision).first, set(nodes.values())))
        made = FollowedDecision(decision, taken, _disagreement(decision, taken, nodes))
        if made.disagreement is None:
            return made
        found.append((made.disagreement, made))
    # The order in which most members agree is most likely to be the one that was followed there.
    return max(found, key=lambda each: each[0].agreed)[1]


def assigned_nodes(decision: GroupDecision) -> dict[str, str]:
    """The nodes of the members that go on to binding, by uid."""
    return {
        member.pod.uid: member.node_name
        for result in decision.leaves()
        for member in result.members
        if member.node_name is not None and member_message(result, member) is None
    }


def _orders(group: PodGroupInfo) -> int:
    """How many orders of child groups there are, at the level with the most."""
    return max([factorial(len(group.children)), *map(_orders, group.children)])


def _taken(trials: Sequence[PlacementTrial], known: set[str]) -> Iterator[TakenPlacement]:
    """Each group in the placement that was taken; if none is feasible, in the one with most of the nodes."""
    for key in dict.fromkeys(trial.group for trial in trials):
        own = [trial for trial in trials if trial.group == key]
        chosen = next((trial for trial in own if trial.is_chosen), None)
        trial = chosen or max(own, key=lambda each: len(known.intersection(each.placement.nodes.names)))
        yield from _taken(trial.inner, known)
        scored = (each for each in own if each.total is not None)
        yield TakenPlacement(trial, max(scored, key=lambda each: each.total or 0, default=trial))


def _disagreement(
    decision: GroupDecision, taken: Sequence[TakenPlacement], nodes: Mapping[str, str]
) -> Disagreement | None:
    agreed = 0
    for each in taken:
        for uid, member in each.trial.members.items():
            if not _is_among_best(each.trial, member, nodes.get(uid)):
                return Disagreement(agreed, member=member)
            agreed += 1
        if each.trial.total != each.best.total:
            return Disagreement(agreed, placement=each)
    if assigned_nodes(decision) == nodes:
        return None
    return Disagreement(agreed, message=decision.result.message or "other members have nodes")


def _is_among_best(trial: PlacementTrial, member: MemberTrial, known: str | None) -> bool:
    if known is None:
        return member.node is None or not trial.is_feasible
    return member.decision.node is not None and known in member.decision.best()
