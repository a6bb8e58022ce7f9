"""The results of a comparison: the figures of each run, and how each differs from the first.

Everything is derived from virtual time: the same input and seed give the same bytes.
"""

from __future__ import annotations

from typing import Final

import msgspec

from moorage.comparison.attribution import Attribution, Cause
from moorage.comparison.score_details import PluginPoints
from moorage.simulation.results import FORMAT, PendingReason, Utilisation, WaitingTimes

KIND: Final = "Comparison"


class ComparedRun(msgspec.Struct, rename="camel", kw_only=True):
    """The figures of a run, as in the results of a simulation."""

    name: str
    """The configuration, as it was given."""
    kubernetes_version: str
    complete: bool
    """False if it was interrupted: the figures are as they were then."""
    seconds: float
    pods: dict[str, int]
    failed_attempts: int
    waiting_seconds: WaitingTimes | None
    pending: list[PendingReason]
    utilisation: dict[str, Utilisation]
    cost: float


class Mover(msgspec.Struct, rename="camel"):
    """What moved a number of pods."""

    cause: Cause
    plugin: str
    reason: str
    pods: int


class Move(msgspec.Struct, rename="camel"):
    """A pod that is on another node than in the first run."""

    pod: str
    former_node: str
    node: str
    bound_at: float
    by: Attribution


class FirstDifference(msgspec.Struct, rename="camel"):
    """The first decision that differs: until then, the cluster was the same in both runs."""

    pod: str
    at_seconds: float
    former_node: str
    node: str
    """Empty where no node was found."""
    message: str = ""
    """Why no node was found."""
    plugin: str = ""
    reason: str = ""
    scores: list[PluginPoints] = []
    """The scores of the two nodes; empty if one of them was rejected."""
    former_scores: list[PluginPoints] = []
    """The same with the first configuration."""


class BoundOnce(msgspec.Struct, rename="camel"):
    """A pod that got a node in one of the two runs only."""

    pod: str
    node: str
    message: str
    """Why it was not bound in the other one; empty if it was not created, or not tried."""


class WaitingChange(msgspec.Struct, rename="camel"):
    """How much longer a pod waited than in the first run, in seconds; negative if shorter."""

    pod: str
    former_seconds: float
    seconds: float
    change: float


class WaitingChanges(msgspec.Struct, rename="camel"):
    """How much longer pods waited that were bound in both runs, in seconds."""

    pods: int
    longer: int
    shorter: int
    mean: float
    p50: float
    p90: float
    p99: float
    """Nine in ten, or 99 in 100, waited at most so much longer."""
    most_longer: list[WaitingChange]
    most_shorter: list[WaitingChange]


class NodeChange(msgspec.Struct, rename="camel"):
    """The mean share of a node's cpu that pods of the workload requested, over the time of both runs."""

    node: str
    former: float
    share: float
    change: float


class RunDifference(msgspec.Struct, rename="camel", kw_only=True):
    """How a run differs from the first one."""

    name: str
    former: str
    """The name of the first run."""
    unmoved: int
    """Number of pods that are on the same node in both."""
    moved: int
    movers: list[Mover]
    first_difference: FirstDifference | None
    """None if there is none, or if the runs begin to differ by something else than a pod's node."""
    waiting_seconds: WaitingChanges | None
    """None if no pod was bound in both."""
    nodes: list[NodeChange]
    """The nodes that differ most come first; those that do not are left out."""
    bound_only_before: list[BoundOnce]
    bound_only_here: list[BoundOnce]
    moves: list[Move]

    @property
    def is_empty(self) -> bool:
        """Whether all pods are on the same nodes and waited as long."""
        waiting = self.waiting_seconds
        is_same = waiting is None or not (waiting.longer or waiting.shorter)
        return is_same and not (self.moved or self.bound_only_before or self.bound_only_here)


class Comparison(msgspec.Struct, rename="camel", kw_only=True):
    """All results; times are seconds since the start."""

    api_version: str = FORMAT
    kind: str = KIND
    complete: bool
    """False if it was interrupted: there are differences only of runs that have ended."""
    seed: int
    runs: list[ComparedRun]
    differences: list[RunDifference]
