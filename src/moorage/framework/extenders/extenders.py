"""Extenders: web services that take part in scheduling, after the plugins.

    filters -> extenders, one after another, each asked about the nodes that those before it let pass
    scores  -> extenders, concurrently; their scores are added to the plugins' scores
    preempt -> extenders, one after another, each may take nodes and victims out
    bind    -> the extender that binds, in place of the bind plugins

`Extender` implements the calls; this module interprets the answers. An extender that fails fails the pod's
attempt, unless it is ignorable; if it fails to score, its scores are left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.cluster.snapshot import Snapshot
from moorage.framework.interface.diagnosis import Diagnosis, Refusal
from moorage.framework.interface.extension_points import MAX_SCORE, Scores
from moorage.framework.interface.filter_result import Reason
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import Code
from moorage.framework.runtime.scores import ScoreTable
from moorage.klog import Logger, ObjectRef, kobj

log = Logger(__name__)

MAX_PRIORITY: Final = 10
"""Maximum score that an extender gives."""
_SCALE: Final = MAX_SCORE // MAX_PRIORITY
_INT64: Final = 1 << 64


class ExtenderError(Exception):
    """An extender failed, or its answer is invalid; the message is for the pod's condition."""


@dataclass(frozen=True, slots=True)
class Filtered:
    """An extender's filter results for the nodes that it was called with.

    failed: why it rejected nodes, by name. unresolvable: the same, where no preemption will change that.
    """

    passed: Sequence[str]
    failed: Mapping[str, str] = field(default_factory=dict)
    unresolvable: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NodeVictims:
    """The victims on a node, the most important first, and the number of PDB violations."""

    pods: tuple[Pod, ...]
    broken_budgets: int


@dataclass(frozen=True, slots=True)
class ChosenVictims:
    """The victims on a node that an extender has chosen, as uids of pods."""

    uids: tuple[str, ...]
    broken_budgets: int


class Extender(Protocol):
    """One web service; each call raises ExtenderError if it fails."""

    name: str
    is_ignorable: bool
    """Whether to go on without it when it fails."""
    weight: int
    filters: bool
    prioritizes: bool
    preempts: bool
    binds: bool

    def is_interested(self, pod: Pod) -> bool:
        """Whether the extender is called for a pod at all."""

    async def filter(self, pod: Pod, nodes: Sequence[Node]) -> Filtered:
        """Which nodes can run the pod."""

    async def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> Sequence[tuple[str, int]]:
        """Scores of nodes, by name; 10 is best."""

    async def preempt(self, pod: Pod, victims: Mapping[str, NodeVictims]) -> Mapping[str, ChosenVictims]:
        """The victims by node; nodes that are left out are no candidates."""

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Bind a pod to a node."""

    async def close(self) -> None:
        """Close connections; later calls open new ones."""


class Extenders(tuple[Extender, ...]):
    """The extenders of a configuration, in the order in which they are called: ignorable ones last."""

    def __new__(cls, extenders: Iterable[Extender] = ()) -> Extenders:
        """Put the extenders in order."""
        return super().__new__(cls, sorted(extenders, key=lambda each: each.is_ignorable))

    def __init__(self, extenders: Iterable[Extender] = ()) -> None:
        self.filters = any(each.filters for each in self)
        self.prioritizes = any(each.prioritizes for each in self)
        self.want_whole_objects = any(each.filters or each.prioritizes or each.preempts for each in self)
        """Whether any extender does more than binding: such an extender is sent whole pods or nodes."""
        self.prioritizing = 0
        """Number of extenders that are being called for scores."""

    async def close(self) -> None:
        """Close connections."""
        for extender in self:
            await extender.close()

    # The scheduling cycle

    async def filter(self, pod: Pod, nodes: Nodes, diagnosis: Diagnosis) -> Nodes:
        """The nodes that pass every extender, called one after another; rejections are recorded."""
        for extender in self:
            if not len(nodes):
                break
            if not extender.filters or not extender.is_interested(pod):
                continue
            snapshot, rows = nodes.snapshot, nodes.row_numbers().tolist()
            try:
                answer = await extender.filter(pod, [snapshot.nodes[row] for row in rows])
                passed = _rows_of(answer.passed, rows, snapshot, extender.name)
            except ExtenderError as error:
                if not extender.is_ignorable:
                    raise
                message = "Skipping extender as it returned error and has ignorable flag set"
                log.info(0, message, extender=extender.name, err=error)
                continue
            _record_failures(extender.name, answer, snapshot, diagnosis)
            nodes = Nodes(snapshot, passed)
        return nodes

    async def add_scores(self, pod: Pod, nodes: Nodes, table: ScoreTable) -> tuple[ScoreTable, Scores]:
        """The plugins' scores and the extenders', and for which nodes there are any of the latter.

        The second is 1 for nodes that an extender has scored, and 0 elsewhere. Shape (nodes,).
        """
        asked = [each for each in self if each.is_interested(pod)]
        answers = await asyncio.gather(*(self._prioritized(each, pod, nodes) for each in asked))
        place_of = {name: place for place, name in enumerate(nodes.names)}
        totals = table.totals.astype(np.int64)
        is_scored = np.zeros(len(nodes), np.int64)
        by_extender: dict[str, Scores] = {}
        for extender, answer in zip(asked, answers, strict=True):
            if not extender.prioritizes:
                is_scored[:] = 1
                continue
            scores = by_extender.setdefault(extender.name, np.zeros(len(nodes), np.int64))
            for name, score in answer:
                if log.v >= 10:
                    message = "Extender scored node for pod"
                    log.info(10, message, pod=kobj(pod), extender=extender.name, node=name, score=score)
                if (place := place_of.get(name)) is not None:
                    weighted = score * extender.weight * _SCALE
                    scores[place] = _wrapped(int(scores[place]) + weighted)
                    totals[place] = _wrapped(int(totals[place]) + weighted)
                    is_scored[place] = 1
        return ScoreTable(totals, lambda: {**table.by_plugin, **by_extender}), is_scored

    async def _prioritized(self, extender: Extender, pod: Pod, nodes: Nodes) -> Sequence[tuple[str, int]]:
        if not extender.prioritizes:
            return ()
        self.prioritizing += 1
        try:
            return await extender.prioritize(pod, [nodes.snapshot.nodes[row] for row in nodes.row_numbers()])
        except ExtenderError as error:
            message = "Failed to run extender's priority function. No score given by this extender."
            log.info(5, message, error=error, pod=kobj(pod), extender=extender.name)
            return ()
        finally:
            self.prioritizing -= 1

    def preempting(self, pod: Pod) -> list[Extender]:
        """The extenders that support preemption and are interested in a pod."""
        return [each for each in self if each.preempts and each.is_interested(pod)]

    async def preempt(
        self, pod: Pod, victims: Mapping[str, NodeVictims], snapshot: Snapshot
    ) -> Mapping[str, NodeVictims]:
        """The nodes, by name, that all extenders leave as candidates, each with its victims."""
        for extender in self.preempting(pod):
            try:
                chosen = await extender.preempt(pod, victims)
                left = {name: _found(extender.name, name, each, snapshot) for name, each in chosen.items()}
            except ExtenderError as error:
                if not extender.is_ignorable:
                    raise
                message = "Skipped extender as it returned error and has ignorable flag set"
                log.info(2, message, extender=extender.name, err=error)
                continue
            for name in [name for name, each in left.items() if not each.pods]:
                if not extender.is_ignorable:
                    raise ExtenderError(f'expected at least one victim pod on node "{name}"')
                message = "Ignored node for which the extender didn't report victims"
                log.info(2, message, node=ObjectRef(name), extender=extender.name)
                del left[name]
            victims = left
            if not victims:
                break
        return victims

    # The binding cycle

    async def bind(self, pod: Pod, node_name: str) -> bool:
        """Whether an extender has bound the pod; False: the bind plugins have to."""
        for extender in self:
            if not extender.binds or not extender.is_interested(pod):
                continue
            try:
                await extender.bind(pod, node_name)
            except ExtenderError as error:
                if not extender.is_ignorable:
                    raise
                message = "Skipping extender in bind as it returned error and has ignorable flag set"
                log.info(0, message, extender=extender.name, err=error)
                continue
            return True
        return False


def _rows_of(names: Sequence[str], asked: list[int], snapshot: Snapshot, extender: str) -> NDArray[np.intp]:
    """The rows of nodes that passed an extender, which must be among those that it was called with."""
    requested_rows = {snapshot.names[row]: row for row in asked}
    rows = dict.fromkeys(requested_rows.get(name, -1) for name in names)
    if -1 in rows:
        unknown = next(name for name in names if name not in requested_rows)
        raise ExtenderError(
            f'extender "{extender}" claims a filtered node "{unknown}" '
            "which is not found in the input node list"
        )
    return np.array([*rows], np.intp)


def _record_failures(extender: str, answer: Filtered, snapshot: Snapshot, diagnosis: Diagnosis) -> None:
    """Record why an extender rejected nodes; replaces earlier reasons."""
    by_reason: dict[Reason, list[int]] = {}
    for refused, code in ((answer.failed, Code.UNSCHEDULABLE), (answer.unresolvable, Code.UNRESOLVABLE)):
        for name, message in refused.items():
            row = snapshot.row_of.get(name)
            if row is not None:
                by_reason.setdefault(Reason((message,), code), []).append(row)
    for reason, rows in by_reason.items():
        diagnosis.codes[rows] = len(diagnosis.refusals)
        diagnosis.refusals.append(Refusal(extender, reason))


def _found(extender: str, node_name: str, chosen: ChosenVictims, snapshot: Snapshot) -> NodeVictims:
    """The pods that an extender names as victims."""
    row = snapshot.row_of.get(node_name)
    if row is None:
        raise ExtenderError(f'nodeinfo not found for node name "{node_name}"')
    here = snapshot.pods_of(row)
    for uid in chosen.uids:
        if uid not in here:
            raise ExtenderError(
                f"extender: {extender} claims to preempt pod (UID: &{{{uid}}}) on node: {node_name}, "
                "but the pod is not found on that node"
            )
    return NodeVictims(tuple(here[uid].pod for uid in chosen.uids), chosen.broken_budgets)


def _wrapped(score: int) -> int:
    """A score wrapped to 64 bits: kube-scheduler does not check for overflow."""
    return (score + _INT64 // 2) % _INT64 - _INT64 // 2
