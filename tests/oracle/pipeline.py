"""A whole scheduling cycle over the oracles: filter, explain, score, choose."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from moorage.api.node import Node
from moorage.api.pod import Pod
from tests.oracle.cluster import BrokenPodError, Cluster, OraclePlugin, Refusal
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
    VolumeBinding,
)
from tests.oracle.topology_spread import PodTopologySpread

ORACLE_PLUGINS: tuple[type[OraclePlugin], ...] = (
    NodeName,
    NodeUnschedulable,
    TaintToleration,
    NodeAffinity,
    NodePorts,
    NodeResourcesFit,
    VolumeBinding,
    PodTopologySpread,
    InterPodAffinity,
    DynamicResources,
    NodeResourcesBalancedAllocation,
    ImageLocality,
    NodeDeclaredFeatures,
)
"""The oracles in the order in which the default profile asks its plugins."""


def oracle_plugin_of(name: str) -> type[OraclePlugin]:
    """The oracle for a plugin."""
    return next(oracle_plugin for oracle_plugin in ORACLE_PLUGINS if oracle_plugin.name == name)


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
    oracle_plugins = [
        oracle_plugin(cluster, pod, args.get(oracle_plugin.name)) for oracle_plugin in ORACLE_PLUGINS
    ]
    outcome = Outcome()
    if not cluster.nodes:
        outcome.message = "no nodes available to schedule pods"
        return outcome
    available = f"0/{len(cluster.nodes)} nodes are available:"
    candidates = cluster.nodes
    left_out = ""
    for oracle_plugin in oracle_plugins:
        names = oracle_plugin.narrow()
        if isinstance(names, str):
            outcome.plugins = {oracle_plugin.name}
            outcome.message = f"{available} {names}."
            return outcome
        if names is not None:
            outcome.plugins.add(oracle_plugin.name)
            left_out = f"node(s) didn't satisfy plugin(s) [{oracle_plugin.name}]"
            candidates = [node for node in candidates if node.name in names]
    feasible = _filter(oracle_plugins, candidates, outcome)
    outcome.feasible = [node.name for node in feasible]
    if not feasible:
        outcome.message = f"{available} {_reasons(outcome, len(cluster.nodes), left_out)}."
    elif len(feasible) == 1:
        outcome.best = outcome.feasible
    else:
        _score(oracle_plugins, feasible, outcome)
    return outcome


def _filter(oracle_plugins: list[OraclePlugin], candidates: list[Node], outcome: Outcome) -> list[Node]:
    """Each node goes from filter to filter until one refuses it."""
    feasible = []
    for node in candidates:
        for oracle_plugin in oracle_plugins:
            why = oracle_plugin.filter(node)
            if why is not None:
                outcome.refusals[node.name] = (oracle_plugin.name, why)
                outcome.plugins.add(oracle_plugin.name)
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


def _score(oracle_plugins: list[OraclePlugin], feasible: list[Node], outcome: Outcome) -> None:
    """Every plugin that does not abstain scores every node; the highest sum is best."""
    outcome.scores = {node.name: {} for node in feasible}
    for oracle_plugin in oracle_plugins:
        if not oracle_plugin.scores:
            continue
        try:
            if oracle_plugin.skips_score(feasible):
                continue
            finals = oracle_plugin.final_scores(feasible)
        except BrokenPodError:
            outcome.broken = oracle_plugin.name
            return
        for node, score in zip(feasible, finals, strict=True):
            outcome.scores[node.name][oracle_plugin.name] = score * oracle_plugin.weight
    totals = {name: sum(scores.values()) for name, scores in outcome.scores.items()}
    outcome.best = [name for name, total in totals.items() if total == max(totals.values())]
