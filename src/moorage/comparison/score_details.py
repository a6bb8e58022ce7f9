"""The scores of two nodes for a pod in full: as plugins return them, normalised and weighted."""

from __future__ import annotations

import msgspec

from moorage.engine.decision import Decision
from moorage.engine.engine import Engine
from moorage.engine.run_without_suspending import run_without_suspending
from moorage.explain.evaluation import score_parts
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.extension_points import Scores
from moorage.framework.interface.nodes import Nodes
from moorage.framework.runtime.framework import Framework

Pair = tuple[int, int]


class PluginPoints(msgspec.Struct, rename="camel"):
    """A plugin's scores of two nodes."""

    plugin: str
    weight: int
    raw: Pair
    normalised: Pair
    weighted: Pair


def points_of(framework: Framework, decision: Decision, nodes: tuple[str, str]) -> list[PluginPoints]:
    """The scores of two nodes by the plugins of a profile that prefer one, in the cluster of a decision.

    Empty if the profile does not compare the nodes.
    """
    snapshot, cycle = decision.feasible.snapshot, CycleState()
    engine = Engine(seed=0, remembers=False)
    again = run_without_suspending(
        engine.decide_async(framework, decision.pod, snapshot, cycle, placement=Nodes(snapshot))
    )
    names = again.feasible.names
    if again.scores is None or not set(nodes) <= set(names):
        return []
    first, second = map(names.index, nodes)

    def pair(scores: Scores) -> Pair:
        return int(scores[first]), int(scores[second])

    points = [
        PluginPoints(each.plugin, each.weight, pair(each.raw), pair(each.normalised), pair(each.weighted))
        for each in score_parts(framework, cycle, again)
    ]
    return [each for each in points if each.raw[0] != each.raw[1] or each.weighted[0] != each.weighted[1]]
