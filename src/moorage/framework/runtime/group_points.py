"""The extension points of a group's cycle: placements generated, judged and scored, and room made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.effects import Effect
from moorage.framework.interface.extension_points import Plugin, Scores
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.pod_groups import (
    GroupDryRun,
    Placement,
    PlacementAssignments,
    PlacementProgress,
    PodGroupInfo,
    PodGroupPostFilterResult,
)
from moorage.framework.interface.status import SUCCESS, Code, PluginError, Status, unschedulable
from moorage.framework.runtime.plugin_call import PluginCall
from moorage.framework.runtime.scores import ScoreTable

NO_PLACEMENTS = "no feasible placements found"

_Calls = Sequence[PluginCall]


def generate_placements(
    calls: _Calls, cycle: CycleState, group: PodGroupInfo, nodes: Nodes
) -> list[Placement] | Status:
    """The placements of a group within some nodes, or why there is none."""
    if not calls:
        return [Placement("", nodes)]
    answer = calls[0](cycle, group, nodes)
    if isinstance(answer, Status):
        return calls[0].signed(answer)
    try:
        placements = list(answer)
    except TypeError:
        raise calls[0].failed(f"returned {answer!r}; return placements, or a status") from None
    return placements or calls[0].signed(unschedulable(NO_PLACEMENTS))


def judge_placement(
    calls: _Calls, cycle: CycleState, group: PodGroupInfo, progress: PlacementProgress
) -> Status:
    """Success, WAIT where some plugin asks to go on, the first refusal, or an error."""
    verdict = SUCCESS
    for call in calls:
        try:
            status = call.status(cycle, group, progress, also=Code.WAIT)
        except PluginError as error:
            return Status(Code.ERROR, (str(error),), call.plugin)
        if status is None:
            continue
        if status.code is not Code.WAIT:
            return status
        verdict = status
    return verdict


def score_placements(
    calls: _Calls,
    plugins: Mapping[str, Plugin],
    cycle: CycleState,
    group: PodGroupInfo,
    placements: Sequence[PlacementAssignments],
) -> ScoreTable:
    """The scores of placements, with each plugin's share."""
    totals = np.zeros(len(placements), np.int64)
    by_plugin: dict[str, Scores] = {}
    for call in calls:
        scores = call.integers(call(cycle, group, placements), len(placements))
        normalize = getattr(plugins[call.plugin], "normalize_placement_score", None)
        if normalize is not None:
            normalizing = PluginCall(call.plugin, "normalize_placement_score", normalize)
            scores = normalizing.integers(normalizing(cycle, group, scores), len(placements))
        weighted = call.within_bounds(scores) * call.weight
        by_plugin[call.plugin] = weighted
        totals += weighted
    return ScoreTable(totals, lambda: by_plugin)


async def make_room_for_group(
    calls: _Calls, cycle: CycleState, group: PodGroupInfo, dry_run: GroupDryRun
) -> PodGroupPostFilterResult:
    """The first success at making room, or the messages of all plugins; with all effects so far."""
    reasons: list[str] = []
    effects: list[Effect] = []
    first = ""
    for call in calls:
        answer = await call.waited(cycle, group, dry_run)
        if isinstance(answer, Status):
            answer = PodGroupPostFilterResult(answer)
        if not isinstance(answer, PodGroupPostFilterResult):
            raise call.failed(f"returned {answer!r}; return a PodGroupPostFilterResult or a status")
        effects += answer.effects
        if answer.status.code in (Code.SUCCESS, Code.UNRESOLVABLE):
            return replace(answer, status=call.signed(answer.status), effects=tuple(effects))
        if answer.status.code is not Code.UNSCHEDULABLE:
            text = f'error in "{call.plugin}" PodGroupPostFilter plugins: {answer.status.message}'
            return replace(answer, status=Status(Code.ERROR, (text,), call.plugin))
        reasons += answer.status.reasons
        first = first or call.plugin
    return PodGroupPostFilterResult(unschedulable(*reasons).by(first), effects=tuple(effects))
