"""Extenders that support preemption: which candidates remain, and with which victims."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.cluster.snapshot import Snapshot
from moorage.framework.extenders.extenders import Extenders, NodeVictims
from moorage.plugins.default_preemption.dry_run import DryRun
from moorage.plugins.default_preemption.victims import VictimStats


@dataclass(frozen=True, slots=True, eq=False)
class RemainingCandidates:
    """The rows that extenders accept, with the victims on each and their statistics."""

    rows: NDArray[np.intp]
    victims: Mapping[int, tuple[Pod, ...]]
    stats: VictimStats


async def remaining_candidates(
    extenders: Extenders, pod: Pod, dry_run: DryRun, candidates: NDArray[np.intp], snapshot: Snapshot
) -> RemainingCandidates:
    """Ask extenders which candidates remain, with which victims; ExtenderError if one fails."""
    proposed = {
        snapshot.names[row]: NodeVictims(dry_run.victims_on(row), int(dry_run.stats.pdb_violations[row]))
        for row in candidates.tolist()
    }
    stats = VictimStats(len(snapshot))
    victims: dict[int, tuple[Pod, ...]] = {}
    for name, chosen in (await extenders.preempt(pod, proposed, snapshot)).items():
        row = snapshot.row_of[name]
        started = snapshot.pods.started.values[
            snapshot.pods.rows_of([victim.uid for victim in chosen.pods])
        ].tolist()
        ordered = sorted(
            zip(started, chosen.pods, strict=True), key=lambda each: (-each[1].priority, each[0])
        )
        victims[row] = tuple(victim for _, victim in ordered)
        stats.put(
            row,
            [victim.priority for victim in victims[row]],
            [start for start, _ in ordered],
            chosen.broken_budgets,
        )
    return RemainingCandidates(np.array([*victims], np.intp), victims, stats)
