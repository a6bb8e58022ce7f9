"""Recorded cycles of groups of pods: what was tried, in which order, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass

from moorage.api.base import Condition, Object, Struct
from moorage.api.pod import Pod


class RecordedMember(Struct):
    """A member in one placement: the node that it was put on, or why there was none."""

    pod: str
    node: str | None = None
    feasible: int | None = None
    scores: dict[str, dict[str, int]] | None = None
    message: str | None = None


class RecordedPlacement(Struct):
    """A placement that was tried for a group; a composite group's has those of its parts inside."""

    of: str
    placement: str
    nodes: int | None = None
    code: str | None = None
    message: str | None = None
    members: tuple[RecordedMember, ...] = ()
    inner: tuple[RecordedPlacement, ...] = ()
    chosen: dict[str, str | None] = {}
    placement_scores: dict[str, dict[str, dict[str, int]]] = {}


class RecordedSimulation(Struct):
    """The placements that were tried, and those that were chosen."""

    simulations: tuple[RecordedPlacement, ...] = ()
    chosen: dict[str, str | None] = {}
    placement_scores: dict[str, dict[str, dict[str, int]]] = {}


class RecordedResult(Struct):
    """How a cycle ended for a group."""

    outcome: str
    message: str | None = None
    scheduled: int | None = None
    unschedulable: int | None = None


class RecordedCycle(RecordedSimulation):
    """One cycle of a group.

    nodes: where nothing else is known, the nodes of the members, by namespace and name.
    """

    group: str = ""
    preemption: RecordedSimulation | None = None
    nominated: dict[str, str] = {}
    results: dict[str, RecordedResult] = {}
    messages: dict[str, str | None] = {}
    nodes: dict[str, str] | None = None


class RecordedPod(Struct):
    """A pod after a step."""

    node: str | None = None
    message: str | None = None
    nominated: str | None = None


class GroupExpectation(Struct):
    """What followed a step."""

    cycles: tuple[RecordedCycle, ...] = ()
    pods: dict[str, RecordedPod] = {}
    groups: dict[str, tuple[Condition, ...]] = {}
    victims: tuple[str, ...] = ()
    tied: tuple[tuple[tuple[str, ...], ...], ...] = ()


@dataclass(frozen=True, slots=True)
class GroupStep:
    """Groups and pods that come, or another change of the cluster; then waiting groups are tried."""

    put: tuple[Object, ...]
    delete: tuple[Object, ...]
    pods: tuple[Pod, ...]
    expect: GroupExpectation
