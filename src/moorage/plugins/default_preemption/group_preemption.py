"""Room for a group: less important pods and groups are evicted, anywhere in the cluster.

Everything of lower priority is removed; if the group can be scheduled then, what was removed is put back unit
by unit, the most important first, as long as every member still fits on its node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from moorage.api.pod import Pod
from moorage.api.pod_groups import PREEMPT_NEVER
from moorage.cluster.pod_groups import PodGroups
from moorage.framework.interface.effects import EvictPods
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.pod_groups import (
    Assignment,
    GroupDryRun,
    PodGroupInfo,
    PodGroupPostFilterResult,
)
from moorage.framework.interface.status import Code, Status, unresolvable, unschedulable
from moorage.plugins.default_preemption.budgets import Budgets
from moorage.plugins.default_preemption.units import PreemptionUnit, in_reprieve_order, units_of
from moorage.plugins.default_preemption.victims import PotentialVictims

NEVER = "not eligible due to preemptionPolicy=Never."
NO_VICTIMS = "No preemption victims found for incoming preemptor"
ONGOING = "ongoing preemption on nominated nodes"
FOUND = "found a placement for podgroup, preempting {} victims"
WHOLE_CLUSTER = "cluster"
"""Where a group's victims are, in events."""

IsPreempted = Callable[[Pod], bool]


async def preempt_for_group(
    group: PodGroupInfo,
    dry_run: GroupDryRun,
    budgets: Budgets,
    is_preempted: IsPreempted,
    plugin: str,
    choices: Sequence[PotentialVictims],
) -> PodGroupPostFilterResult:
    """The victims of a group, or why there are none.

    choices: the pods that may be evicted, the preferred ones first; each adds to those before.
    """
    pods, nodes = list(group.all_pods()), dry_run.nodes()
    if _policy(group, dry_run.groups) == PREEMPT_NEVER:
        return PodGroupPostFilterResult(unschedulable(NEVER))
    if _is_ongoing(group, pods, nodes, dry_run.groups, is_preempted):
        nominated = {pod.uid: pod.status.nominated_node_name for pod in pods}
        return PodGroupPostFilterResult(Status(Code.SUCCESS, (ONGOING,)), nominated)
    units: list[PreemptionUnit] = []
    found = None
    for more in _units_of_choices(choices, nodes, dry_run.groups):
        for unit in more:
            dry_run.remove(unit.pods)
        units += more
        found = await dry_run.schedule()
        if found.status.code is Code.SUCCESS:
            break
    if found is None:
        return PodGroupPostFilterResult(unresolvable(NO_VICTIMS), is_evaluated=True)
    if found.status.code is not Code.SUCCESS:
        return PodGroupPostFilterResult(found.status, is_evaluated=True)
    victims = _not_reprieved(units, found.assignments, dry_run, budgets)
    units = sorted((unit for unit, _ in victims), key=lambda each: each.importance)
    evicted = [pod for unit in units for pod in unit.pods]
    leaving = tuple(pod for pod in evicted if not pod.terminating)
    eviction = EvictPods(
        leaving,
        pods[0],
        WHOLE_CLUSTER,
        plugin,
        len(evicted) - len(leaving),
        group.group,
        pdb_violations=sum(violations for _, violations in victims),
        disrupted_units=sum(unit.is_of_group for unit in units),
    )
    return PodGroupPostFilterResult(
        Status(Code.SUCCESS, (FOUND.format(len(evicted)),)),
        {each.pod.uid: each.node_name for each in found.assignments},
        (eviction,) if leaving else (),
        is_evaluated=True,
    )


def _policy(group: PodGroupInfo, groups: PodGroups) -> str:
    if groups.has_preemption_policy:
        return group.group.preemption_policy
    never = any(pod.spec.preemption_policy == PREEMPT_NEVER for pod in group.all_pods())
    return PREEMPT_NEVER if never else ""


def _is_ongoing(
    group: PodGroupInfo, pods: Sequence[Pod], nodes: Nodes, groups: PodGroups, is_preempted: IsPreempted
) -> bool:
    """Whether a pod of lower priority is still leaving a node that a member is nominated to."""
    snapshot = nodes.snapshot
    names = {pod.status.nominated_node_name for pod in pods} & snapshot.row_of.keys()
    return any(
        is_preempted(info.pod) and groups.priority_of(info.pod) < group.priority
        for name in names
        for info in snapshot.pods_of(snapshot.row_of[name]).infos
    )


def _units_of_choices(
    choices: Sequence[PotentialVictims], nodes: Nodes, groups: PodGroups
) -> list[list[PreemptionUnit]]:
    """All units in the cluster that may be evicted: for each choice, those that are in none before it."""
    snapshot = nodes.snapshot
    infos = {info.pod.uid: info for row in range(len(snapshot)) for info in snapshot.pods_of(row).infos}
    units = list(units_of(infos.values(), groups, infos.get))
    steps: list[list[PreemptionUnit]] = []
    for potential in choices:
        is_in = [potential.include_unit(unit.priority, unit.infos) for unit in units]
        steps.append([unit for unit, included in zip(units, is_in, strict=True) if included])
        units = [unit for unit, included in zip(units, is_in, strict=True) if not included]
    return [step for step in steps if step]


def _not_reprieved(
    units: Sequence[PreemptionUnit],
    assignments: Sequence[Assignment],
    dry_run: GroupDryRun,
    budgets: Budgets,
) -> list[tuple[PreemptionUnit, int]]:
    """The units that cannot be put back, with the number of their pods that violate a budget."""
    in_turn = in_reprieve_order(units, budgets)
    is_back = dry_run.reprieve([unit.pods for unit, _ in in_turn], assignments)
    return [each for each, back in zip(in_turn, is_back, strict=True) if not back]
