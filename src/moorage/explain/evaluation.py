"""The evaluation of a pod by a profile: the decision, and everything that it rests on.

A scheduling cycle stops at the first filter that rejects a node. An explanation needs more: every filter that
rejects it, and each score as the plugin returned it, normalised and weighted. Both come from the plugins
themselves, called for all nodes at once; nothing is computed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.engine.decision import Decision
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.diagnosis import Diagnosis
from moorage.framework.interface.extension_points import Scores
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import Status
from moorage.framework.runtime.filtering import run_filters
from moorage.framework.runtime.framework import Framework
from moorage.framework.runtime.plan import CallDecision
from moorage.framework.runtime.pre_filtering import run_pre_filters

Rows = NDArray[np.intp]
_SEPARATOR: Final = ", "
"""Between the names of plugins that together reject a pod."""


class RefusedNodes(NamedTuple):
    """The nodes, by row of the snapshot, that one plugin rejects for the same reasons."""

    plugin: str
    reasons: tuple[str, ...]
    rows: Rows


@dataclass(frozen=True, slots=True, eq=False)
class AllRefusals:
    """The rejections by every filter, each evaluated for every node.

    cluster_wide: rejections by pre-filters, which hold for all nodes.
    by_filter: the rejections of each filter that rejects a node, in the order in which filters run.
    """

    cluster_wide: tuple[Status, ...]
    by_filter: tuple[RefusedNodes, ...]

    @property
    def cluster_wide_plugins(self) -> set[str]:
        """The plugins that reject the pod for all nodes; a status may be that of several."""
        return {plugin for status in self.cluster_wide for plugin in status.plugin.split(_SEPARATOR)}

    def of(self, row: int) -> list[RefusedNodes]:
        """The rejections of one node by filters."""
        return [each for each in self.by_filter if row in each.rows]


@dataclass(frozen=True, slots=True, eq=False)
class PluginScores:
    """A score plugin's scores of the feasible nodes. Arrays have shape (feasible nodes,)."""

    plugin: str
    weight: int
    raw: Scores
    normalised: Scores
    weighted: Scores


def first_refusals(decision: Decision) -> list[RefusedNodes]:
    """The rejected nodes of a decision by plugin and reasons, the largest group first."""
    diagnosis, snapshot = decision.diagnosis, decision.feasible.snapshot
    groups = list(_by_reason(diagnosis))
    status = diagnosis.pre_filter or diagnosis.left_out
    if status is not None:
        is_open = diagnosis.codes < 0
        is_open[decision.feasible.row_numbers()] = False
        if is_open.any() and len(snapshot):
            groups.append(RefusedNodes(status.plugin, status.reasons, np.flatnonzero(is_open)))
    return sorted(groups, key=lambda group: (-len(group.rows), group.plugin, group.reasons))


def _by_reason(diagnosis: Diagnosis) -> Iterator[RefusedNodes]:
    """The nodes that filters rejected; equal reasons of a plugin are one."""
    codes: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for code, refusal in enumerate(diagnosis.refusals):
        codes.setdefault((refusal.plugin, refusal.reason.texts), []).append(code)
    for (plugin, reasons), equal in codes.items():
        rows = np.flatnonzero(np.isin(diagnosis.codes, equal))
        if len(rows):
            yield RefusedNodes(plugin, reasons, rows)


def all_refusals(framework: Framework, pod: Pod, nodes: Nodes) -> AllRefusals:
    """Every filter's rejections of some nodes, without ending at the first.

    A pre-filter that rejects the pod is left out, and the others are asked without it. PluginError if a
    plugin fails.
    """
    plan, cluster_wide = framework.plan(CycleState()), []
    while True:
        cycle, diagnosis = CycleState(), Diagnosis(len(nodes.snapshot))
        left = run_pre_filters(plan, cycle, pod, nodes, diagnosis)
        if left is not None or diagnosis.pre_filter is None:
            break
        plugins = diagnosis.plugins | diagnosis.pending_plugins
        cluster_wide.append(diagnosis.pre_filter.by(_SEPARATOR.join(sorted(plugins))))
        plan = plan.leaving_out(CallDecision.SKIPS_POD, plugins)
    groups: list[RefusedNodes] = []
    for call in framework.plan(cycle).filters.active:
        diagnosis = Diagnosis(len(nodes.snapshot))
        run_filters((call,), framework.plugins, cycle, pod, nodes, diagnosis)
        groups += _by_reason(diagnosis)
    return AllRefusals(tuple(cluster_wide), tuple(groups))


def score_parts(framework: Framework, cycle: CycleState, decision: Decision) -> list[PluginScores]:
    """The scores of a decision's feasible nodes by plugin, as returned, normalised and weighted.

    cycle: the state of the cycle in which the decision was made. What extenders scored has no parts.
    """
    if decision.scores is None:
        return []
    nodes, pod = decision.feasible, decision.pod
    weighted, parts = dict(decision.scores.by_plugin), []
    for call in framework.plan(cycle).scores.active:
        raw = call.score(cycle, pod, nodes)
        normalised = call.normalised(framework.plugins[call.plugin], cycle, pod, nodes, raw)
        parts.append(PluginScores(call.plugin, call.weight, raw, normalised, weighted.pop(call.plugin)))
    parts += [PluginScores(name, 1, scores, scores, scores) for name, scores in weighted.items()]
    return parts
