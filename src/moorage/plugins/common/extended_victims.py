"""Victims of preemption after extenders have had their say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.cluster.snapshot import Snapshot
from moorage.framework.extenders.extenders import Extenders, NodeVictims
from moorage.plugins.common.losses import Losses, Trial


@dataclass(frozen=True, slots=True, eq=False)
class Left:
    """The rows that extenders left over, and who has to go from each: by name, and in figures."""

    rows: NDArray[np.intp]
    victims: Mapping[int, tuple[Pod, ...]]
    losses: Losses


async def left_by_extenders(
    extenders: Extenders, pod: Pod, trial: Trial, candidates: NDArray[np.intp], snapshot: Snapshot
) -> Left:
    """Ask extenders which candidates can be had, and who has to go there; ExtenderError if one fails."""
    proposed = {
        snapshot.names[row]: NodeVictims(trial.victims_on(row), int(trial.losses.broken[row]))
        for row in candidates.tolist()
    }
    losses = Losses(len(snapshot))
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
        losses.put(
            row,
            [victim.priority for victim in victims[row]],
            [start for start, _ in ordered],
            chosen.broken_budgets,
        )
    return Left(np.array([*victims], np.intp), victims, losses)
