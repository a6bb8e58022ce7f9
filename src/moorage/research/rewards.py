"""What a step of the environment was, and what it is worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from moorage.api.pod import Pod
from moorage.research.stepping import SteppedSimulation

_INFEASIBLE_PENALTY: Final = 1.0


@dataclass(frozen=True, slots=True)
class Transition:
    """What happened in one step."""

    simulation: SteppedSimulation
    pod: Pod
    node: str | None
    """The node that the pod was placed on; None: nowhere."""
    is_feasible: bool
    """Whether the action was possible: the filters let that node pass, or the pod was to wait."""
    seconds: float
    """How much time passed until the next decision."""
    waiting_pod_seconds: float
    """How long all pods waited meanwhile, added up, in seconds."""


def waiting_time(transition: Transition) -> float:
    """The default reward: the time that pods waited, in seconds, negative; 1 less if it was not possible.

    Over an episode it adds up to the waiting time of all pods.
    """
    penalty = 0.0 if transition.is_feasible else _INFEASIBLE_PENALTY
    return -transition.waiting_pod_seconds - penalty
