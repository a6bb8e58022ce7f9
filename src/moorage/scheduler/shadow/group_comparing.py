"""A group that another scheduler has bound, beside what we decide about it: one result for all members."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from moorage.engine.followed_nodes import Disagreement, FollowedDecision, TakenPlacement, assigned_nodes
from moorage.engine.group_result import GroupDecision
from moorage.framework.runtime.framework import Framework
from moorage.scheduler.shadow.comparing import Explanation, add_evidence, explained
from moorage.scheduler.shadow.report import ComparisonResult, GroupComparison, template_of
from moorage.scheduler.shadow.weights import WeightEvidence


def compare_group(
    own: GroupDecision,
    followed: FollowedDecision,
    nodes: Mapping[str, str],
    framework: Framework,
    evidence: WeightEvidence,
    time: datetime,
    *,
    reordered: bool = False,
) -> GroupComparison:
    """Compare decisions about a group with the nodes that another scheduler chose.

    own: what we decide. followed: what we decide of each member, the ones before it on the other's nodes.
    nodes: the other scheduler's nodes, by uid.
    """
    ours, pods = assigned_nodes(own), list(own.root.all_pods())
    group = own.root.group
    result: ComparisonResult = "tie" if followed.disagreement is None else "different"
    made = GroupComparison(
        time=time,
        group=group.key,
        uid=group.metadata.uid,
        profile=pods[0].spec.scheduler_name,
        template=template_of(group),
        result="same" if ours == nodes else result,
        nodes={pod.key: nodes[pod.uid] for pod in pods if pod.uid in nodes},
        ours={pod.key: ours.get(pod.uid, "") for pod in pods if ours.get(pod.uid) != nodes.get(pod.uid)},
        reordered=reordered,
    )
    found = followed.disagreement if made.result == "different" else None
    fields = _explained(followed, found, nodes, framework, evidence)
    return replace(made, **fields)


def _explained(
    followed: FollowedDecision,
    found: Disagreement | None,
    nodes: Mapping[str, str],
    framework: Framework,
    evidence: WeightEvidence,
) -> dict[str, Any]:
    """Fields that explain a difference; the choices up to it are added to the evidence."""
    for each in followed.taken:
        for uid, member in each.trial.members.items():
            decision, node = member.decision, nodes.get(uid)
            is_different = found is not None and found.member is member
            if node is None and is_different:
                reason = f"it is not bound there, and fits on {member.node} here"
                return {"member": decision.pod.key, "reason": reason}
            if node is None:
                continue
            factors = add_evidence(decision, node, evidence, is_different=is_different)
            if is_different:
                explanation = explained(decision, node, factors, framework, evidence)
                return {"member": decision.pod.key, **explanation}
        if found is not None and found.placement is each:
            return _by_placement(each)._asdict()
    return {} if found is None else {"reason": found.message}


def _by_placement(taken: TakenPlacement) -> Explanation:
    """Another placement has a greater total: the plugin that prefers it most."""
    theirs, ours = taken.trial.scores or {}, taken.best.scores or {}
    plugin = max(ours, key=lambda name: ours[name] - theirs[name])
    names = f"{taken.best.placement.name} to {taken.trial.placement.name}"
    points = f"{ours[plugin]} to {theirs[plugin]} of {taken.best.total} to {taken.trial.total} points"
    return Explanation(plugin, f"prefers placement {names}: {points}")
