"""An assumed pod, for reserve and later extension points; and an unschedulable one, for post-filters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from moorage.api.pod import Pod
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.diagnosis import Diagnosis
from moorage.testing.plugin_answers import begin, prepare_scoring
from moorage.testing.stage import Stage
from moorage.testing.trial import Trial


@dataclass(frozen=True, slots=True)
class AssumedPod:
    """A pod assumed on a node, in its own cluster."""

    stage: Stage
    cycle: CycleState
    pod: Pod
    node_name: str

    def call(self, method: str) -> Any:
        """Call a method of the plugin that takes a pod and its node."""
        return self.stage.call(method, self.cycle, self.pod, self.node_name)


def place(trial: Trial) -> AssumedPod | None:
    """Assume a pod on the first feasible node of a new cluster; None if there is none."""
    stage = trial.fresh()
    begun = begin(stage, trial.pod)
    feasible = begun.feasible
    if not len(feasible):
        return None
    prepare_scoring(stage, begun.cycle, trial.pod, feasible)
    node_name = feasible.name(0)
    return AssumedPod(stage, begun.cycle, stage.cache.assume_pod(trial.pod, node_name), node_name)


@dataclass(frozen=True, slots=True)
class UnschedulablePod:
    """A pod without a feasible node."""

    stage: Stage
    cycle: CycleState
    pod: Pod
    diagnosis: Diagnosis

    def post_filter(self) -> Any:
        """The plugin's post-filter result."""
        return self.stage.call("post_filter", self.cycle, self.pod, self.stage.nodes, self.diagnosis)


def make_unschedulable(trial: Trial) -> UnschedulablePod | None:
    """The pod of a trial if the stage's filters together reject every node; None if one is feasible."""
    stage, cycle = trial.stage, CycleState()
    diagnosis = Diagnosis(len(stage.nodes))
    left = stage.framework.pre_filter(cycle, trial.pod, stage.nodes, diagnosis)
    if left is not None and len(stage.framework.filter(cycle, trial.pod, left, diagnosis)):
        return None
    return UnschedulablePod(stage, cycle, trial.pod, diagnosis)
