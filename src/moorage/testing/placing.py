"""A pod that has got a node, for reserve and what follows; and one that fits nowhere, for post-filters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from moorage.api.pod import Pod
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.diagnosis import Diagnosis
from moorage.testing.asking import begin, prepare_scoring
from moorage.testing.stage import Stage
from moorage.testing.trial import Trial


@dataclass(frozen=True, slots=True)
class Placed:
    """A pod that is assumed to be on a node, in a cluster of its own."""

    stage: Stage
    cycle: CycleState
    pod: Pod
    node_name: str

    def call(self, method: str) -> Any:
        """Call a method of the plugin that is about a pod and its node."""
        return self.stage.call(method, self.cycle, self.pod, self.node_name)


def place(trial: Trial) -> Placed | None:
    """Put a pod on the first node that the plugin lets it on, in a new cluster; None if there is none."""
    stage = trial.fresh()
    begun = begin(stage, trial.pod)
    feasible = begun.feasible
    if not len(feasible):
        return None
    prepare_scoring(stage, begun.cycle, trial.pod, feasible)
    node_name = feasible.name(0)
    return Placed(stage, begun.cycle, stage.cache.assume_pod(trial.pod, node_name), node_name)


@dataclass(frozen=True, slots=True)
class FitsNowhere:
    """A pod for which no node passed."""

    stage: Stage
    cycle: CycleState
    pod: Pod
    diagnosis: Diagnosis

    def post_filter(self) -> Any:
        """What the plugin does about it."""
        return self.stage.call("post_filter", self.cycle, self.pod, self.stage.nodes, self.diagnosis)


def fit_nowhere(trial: Trial) -> FitsNowhere | None:
    """The pod of a trial if all filters of the stage together refuse every node; None if one passes."""
    stage, cycle = trial.stage, CycleState()
    diagnosis = Diagnosis(len(stage.nodes))
    left = stage.framework.pre_filter(cycle, trial.pod, stage.nodes, diagnosis)
    if left is not None and len(stage.framework.filter(cycle, trial.pod, left, diagnosis)):
        return None
    return FitsNowhere(stage, cycle, trial.pod, diagnosis)
