"""A group's attempt as recordings have it (docs/how-to/replaying.md): what was tried, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from moorage.api.manifests import Manifest
from moorage.api.pod import Pod
from moorage.engine.decision import Decision
from moorage.engine.group_result import GroupDecision, GroupResult, member_message
from moorage.engine.placement_trials import MemberTrial, PlacementTrial, Trials
from moorage.framework.interface.pod_groups import PodGroupInfo
from moorage.scheduler.recording_file import recorded_object


def group_attempt(decision: GroupDecision, trials: Trials) -> Manifest:
    """The cycle of a group, as a step."""
    cycle = {
        "group": str(decision.root.key),
        **_simulation(trials.first),
        "results": {str(result.info.key): _result(result) for result in decision.leaves()},
        "messages": {key: text for result in decision.leaves() for key, text in _messages(result)},
        "nominated": {
            pod.key: decision.nominated[pod.uid]
            for pod in decision.root.all_pods()
            if decision.nominated.get(pod.uid)
        },
    }
    if trials.without_lower is not None:
        cycle["preemption"] = _simulation(trials.without_lower)
    expect = {"cycles": [cycle], "victims": sorted(victim.key for victim in decision.victims)}
    return _step(decision.root.all_pods(), expect)


def refused_group(root: PodGroupInfo, problem: str) -> Manifest:
    """A group that was refused before its cycle, as a step."""
    return _step(root.all_pods(), {"pods": {pod.key: {"message": problem} for pod in root.all_pods()}})


def bound_group(root: PodGroupInfo, nodes: Mapping[str, str]) -> Manifest:
    """A group of which only the nodes of its members are known, by uid, as a step."""
    by_pod = {pod.key: nodes[pod.uid] for pod in root.all_pods() if pod.uid in nodes}
    return _step(root.all_pods(), {"cycles": [{"group": str(root.key), "nodes": by_pod}]})


def _step(pods: Iterable[Pod], expect: Manifest) -> Manifest:
    return {"group": {"pods": [recorded_object(pod) for pod in pods]}, "expect": expect}


def _simulation(trials: Sequence[PlacementTrial]) -> Manifest:
    """The placements that were tried at one level of a hierarchy, their scores, and those that were taken."""
    chosen: dict[str, str | None] = {trial.group.name: None for trial in trials}
    scores: dict[str, dict[str, dict[str, int]]] = {}
    for trial in trials:
        if trial.is_chosen:
            chosen[trial.group.name] = trial.placement.name
        if trial.scores is not None:
            scores.setdefault(trial.group.name, {})[trial.placement.name] = trial.scores
    return {
        "simulations": [_placement(trial) for trial in trials],
        "chosen": chosen,
        "placementScores": scores,
    }


def _placement(trial: PlacementTrial) -> Manifest:
    made: Manifest = {
        "of": trial.group.name,
        "placement": trial.placement.name,
        "nodes": len(trial.placement.nodes),
        "code": trial.code.value,
        "message": trial.message,
    }
    if not trial.group.is_composite:
        return {**made, "members": [_member(member) for member in trial.members.values()]}
    inner = _simulation(trial.inner)
    return {**made, "inner": inner.pop("simulations"), **inner}


def _member(member: MemberTrial) -> Manifest:
    decision = member.decision
    made: Manifest = {"pod": decision.pod.key, "node": member.node, "feasible": len(decision.feasible)}
    if decision.scores is not None:
        made["scores"] = scores_by_node(decision)
    if decision.message:
        made["message"] = decision.message
    return made


def scores_by_node(decision: Decision) -> dict[str, dict[str, int]]:
    """The scores of the plugins on each feasible node; empty where there was nothing to compare."""
    names = decision.feasible.names
    if decision.scores is None:
        return {name: {} for name in names}
    by_plugin = {plugin: values.tolist() for plugin, values in decision.scores.by_plugin.items()}
    return {
        name: {plugin: int(values[index]) for plugin, values in by_plugin.items()}
        for index, name in enumerate(names)
    }


def _result(result: GroupResult) -> Manifest:
    if not result.status.is_success:
        return {"outcome": result.outcome, "message": result.message}
    placed = len(result.assignments)
    return {
        "outcome": result.outcome,
        "scheduled": placed,
        "unschedulable": len(result.members) - placed,
    }


def _messages(result: GroupResult) -> Iterable[tuple[str, str]]:
    for member in result.members:
        if (message := member_message(result, member)) is not None:
            yield member.pod.key, message
