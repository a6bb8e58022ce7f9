"""A whole scheduling cycle over the oracles: filter, explain, score, choose."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from moorage.api.node import Node
from moorage.api.pod import Pod
from tests.oracle.cluster import BrokenPodError, Cluster, Judge, Refusal
from tests.oracle.image_locality import ImageLocality
from tests.oracle.node_affinity import NodeAffinity
from tests.oracle.pod_affinity import InterPodAffinity
from tests.oracle.resources import NodeResourcesBalancedAllocation, NodeResourcesFit
from tests.oracle.simple import (
    DynamicResources,
    NodeDeclaredFeatures,
    NodeName,
    NodePorts,
    NodeUnschedulable,
    TaintToleration,
)
from tests.oracle.topology_spread import PodTopologySpread

JUDGES: tuple[type[Judge], ...] = (
    NodeUnschedulable,
    NodeName,
    TaintToleration,
    NodeAffinity,
    NodePorts,
    NodeResourcesFit,
    PodTopologySpread,
    InterPodAffinity,
    DynamicResources,
    NodeResourcesBalancedAllocation,
    ImageLocality,
    NodeDeclaredFeatures,
)
"""The oracles in the order in which the default profile asks its plugins."""


def judge_of(name: str) -> type[Judge]:
    """The oracle for a plugin."""
    return next(judge for judge in JUDGES if judge.name == name)


@dataclass
class Outcome:
    """What should come of an attempt."""

    feasible: list[str] = field(default_factory=list)
    refusals: dict[str, tuple[str, Refusal]] = field(default_factory=dict)
    """By node: the plugin that refused it first, and why."""
    plugins: set[str] = field(default_factory=set)
    """All plugins that refused a node."""
    message: str = ""
    scores: dict[str, dict[str, int]] = field(default_factory=dict)
    """By node and plugin, weighted; empty where there is nothing to compare."""
    best: list[str] = field(default_factory=list)
    broken: str = ""
    """The plugin that failed."""


def decide(cluster: Cluster, pod: Pod, args: Mapping[str, Any]) -> Outcome:
    """What the default profile makes of a pod; `args` are the arguments of each plugin that takes some."""
    judges = [judge(cluster, pod, args.get(judge.name)) for judge in JUDGES]
    outcome = Outcome()
    if not cluster.nodes:
        outcome.message = "no nodes available to schedule pods"
        return outcome
    available = f"0/{len(cluster.nodes)} nodes are available:"
    candidates = cluster.nodes
    left_out = ""
    for judge in judges:
        names = judge.narrow()
        if isinstance(names, str):
            outcome.plugins = {judge.name}
            outcome.message = f"{available} {names}."
            return outcome
        if names is not None:
            outcome.plugins.add(judge.name)
            left_out = f"node(s) didn't satisfy plugin(s) [{judge.name}]"
            candidates = [node for node in candidates if node.name in names]
    feasible = _filter(judges, candidates, outcome)
    outcome.feasible = [node.name for node in feasible]
    if not feasible:
        outcome.message = f"{available} {_reasons(outcome, len(cluster.nodes), left_out)}."
    elif len(feasible) == 1:
        outcome.best = outcome.feasible
    else:
        _score(judges, feasible, outcome)
    return outcome


def _filter(judges: list[Judge], candidates: list[Node], outcome: Outcome) -> list[Node]:
    """Each node goes from filter to filter until one refuses it."""
    feasible = []
    for node in candidates:
        for judge in judges:
            why = judge.filter(node)
            if why is not None:
                outcome.refusals[node.name] = (judge.name, why)
                outcome.plugins.add(judge.name)
                break
        else:
            feasible.append(node)
    return feasible


def _reasons(outcome: Outcome, nodes: int, left_out: str) -> str:
    """Every reason with the number of nodes it was given for, in the order of these texts."""
    tally: Counter[str] = Counter()
    for _, (texts, _) in outcome.refusals.values():
        tally.update(texts)
    if left_out and len(outcome.refusals) < nodes:
        tally[left_out] += nodes - len(outcome.refusals)
    return ", ".join(sorted(f"{count} {text}" for text, count in tally.items()))


def _score(judges: list[Judge], feasible: list[Node], outcome: Outcome) -> None:
    """Every plugin that does not abstain scores every node; the highest sum is best."""
    outcome.scores = {node.name: {} for node in feasible}
    for judge in judges:
        if not judge.scores:
            continue
        try:
            if judge.skips_score(feasible):
                continue
            finals = judge.final_scores(feasible)
        except BrokenPodError:
            outcome.broken = judge.name
            return
        for node, score in zip(feasible, finals, strict=True):
            outcome.scores[node.name][judge.name] = score * judge.weight
    totals = {name: sum(scores.values()) for name, scores in outcome.scores.items()}
    outcome.best = [name for name, total in totals.items() if total == max(totals.values())]
