"""Adapters that call per-node plugins for all nodes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from moorage.api.pod import Pod
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.extension_points import (
    FilterNodePlugin,
    FilterPlugin,
    Plugin,
    ScoreNodePlugin,
    ScorePlugin,
    Scores,
)
from moorage.framework.interface.filter_result import ALL, FilterResult, Reason, reason_of
from moorage.framework.interface.nodes import Nodes


def filter_method(plugin: Plugin) -> Callable[..., FilterResult]:
    """A plugin's `filter`, or a loop over its `filter_node`."""
    if isinstance(plugin, FilterPlugin):
        return plugin.filter
    assert isinstance(plugin, FilterNodePlugin)
    method = plugin.filter_node

    def loop(cycle: CycleState, pod: Pod, nodes: Nodes) -> FilterResult:
        codes = np.zeros(len(nodes), np.int32)
        reasons: dict[Reason, int] = {}
        for index, node in enumerate(nodes):
            reason = reason_of(method(cycle, pod, node))
            if reason is not None:
                codes[index] = reasons.setdefault(reason, len(reasons) + 1)
        return FilterResult(codes, tuple(reasons)) if reasons else ALL

    return loop


def score_method(plugin: Plugin) -> Callable[..., Scores]:
    """A plugin's `score`, or a loop over its `score_node`."""
    if isinstance(plugin, ScorePlugin):
        return plugin.score
    assert isinstance(plugin, ScoreNodePlugin)
    method = plugin.score_node

    def loop(cycle: CycleState, pod: Pod, nodes: Nodes) -> Scores:
        return np.array([method(cycle, pod, node) for node in nodes])

    return loop
