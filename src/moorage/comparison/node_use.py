"""How full nodes were."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from moorage.comparison.results import NodeChange
from moorage.simulation.records import NodeRecord, PodRecord
from moorage.simulation.run import SimulationRun

_DIGITS = 6


def node_changes(former: SimulationRun, run: SimulationRun) -> list[NodeChange]:
    """The nodes that were fuller or emptier than in another run, the largest change first.

    Both are seen over the same time, that of the longer run: after its end a run is as it was then, and a pod
    that is on a node at the end stays there.
    """
    seconds = max(former.result.seconds, run.result.seconds)
    before, after = (mean_shares(each.nodes, each.result.placements, seconds) for each in (former, run))
    names = dict.fromkeys([*before, *after])
    changes = [_change(name, before.get(name, 0.0), after.get(name, 0.0)) for name in names]
    return sorted((each for each in changes if each.change), key=lambda each: (-abs(each.change), each.node))


def _change(node: str, former: float, share: float) -> NodeChange:
    return NodeChange(node, round(former, _DIGITS), round(share, _DIGITS), round(share - former, _DIGITS))


def mean_shares(
    nodes: Sequence[NodeRecord], pods: Sequence[PodRecord], seconds: float
) -> Mapping[str, float]:
    """By node, the share of its cpu that pods requested, over the time that it was there."""
    has: defaultdict[str, float] = defaultdict(float)
    used: defaultdict[str, float] = defaultdict(float)
    for node in nodes:
        has[node.name] += node.cpu_milli * _span(node.added_at, node.removed_at, seconds)
    for pod in pods:
        if pod.bound_at is not None:
            used[pod.node] += pod.cpu_milli * _span(pod.bound_at, pod.ended_at, seconds)
    return {name: used[name] / amount if amount else 0.0 for name, amount in has.items()}


def _span(begin: float, end: float | None, seconds: float) -> float:
    return (seconds if end is None else end) - begin
