"""How many more of some pods fit, where, and what runs out first."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

import numpy as np

from moorage.api.base import Object
from moorage.api.decode import InputError
from moorage.api.pod import Pod
from moorage.engine.decision import Decision
from moorage.explain.evaluation import RefusedNodes, first_refusals
from moorage.planning.results import FORMAT, Interrupted, Progress, Struct, no_progress
from moorage.planning.trial import Placement, Trial, numbered
from moorage.simulation.settings import Settings

_INSUFFICIENT: Final = re.compile(r"Insufficient (\S+)")
_TOO_MANY_PODS: Final = "Too many pods"


class NodeCount(Struct, kw_only=True):
    """How many of the pods went to a node."""

    node: str
    pods: int


class Refusals(Struct, kw_only=True):
    """Nodes that one plugin rejects for the same reasons."""

    plugin: str
    reasons: list[str]
    nodes: int


class Fit(Struct, kw_only=True):
    """How many rounds of a set of pods fit, each placed by the engine after the other."""

    api_version: str = FORMAT
    kind: str = "FitPlan"
    complete: bool
    """False if it was interrupted, or reached the maximum: there may be room for more."""
    rounds: int
    """How often all pods of the set fit."""
    pods: int
    """The number of pods that were placed."""
    nodes: list[NodeCount]
    pending_before: int
    """Pods of the cluster that are pending, and fit nowhere: they were tried first."""
    failed_pod: str = ""
    """The pod of the set that fits nowhere in the next round."""
    message: str = ""
    """What the scheduler says of it."""
    runs_out: str = ""
    """What runs out first: a resource, or the reason on most nodes where the pod fitted at the beginning."""
    ran_out: list[Refusals] = []
    """Why nodes reject it that accepted it in the first round."""
    never_fitted: list[Refusals] = []
    """Why nodes reject it that rejected it in the first round, too."""


def plan_fit(
    objects: Iterable[Object],
    pods: Sequence[Pod],
    settings: Settings,
    max_rounds: int | None = None,
    progress: Progress = no_progress,
) -> Fit:
    """How many more of some pods fit, taken together as a set per round."""
    if not pods:
        raise InputError("", "there are no pods to fit")
    trial = Trial(objects, settings)
    if not trial.nodes():
        raise InputError("", "there are no nodes")
    result = Fit(complete=False, rounds=0, pods=0, nodes=[], pending_before=trial.settle())
    counts: Counter[str] = Counter()
    first: list[frozenset[str]] = []
    with suppress(Interrupted):
        while max_rounds is None or result.rounds < max_rounds:
            placed = _round(trial, pods, result.rounds, first)
            if not placed[-1].node:
                _explain(result, pods[len(placed) - 1], placed[-1], first[len(placed) - 1])
                break
            result.rounds += 1
            counts.update(each.node for each in placed)
            progress(result.rounds, max_rounds or 0)
    result.pods = result.rounds * len(pods)
    result.nodes = [NodeCount(node=name, pods=counts[name]) for name in sorted(counts)]
    return result


def _round(trial: Trial, pods: Sequence[Pod], number: int, first: list[frozenset[str]]) -> list[Placement]:
    """Place the set once more; up to the first pod that fits nowhere, and then nothing of it is left.

    first: the nodes that were feasible for each pod of the set in the first round; filled then.
    """
    mark, placed = trial.mark(), list[Placement]()
    for pod in pods:
        placement = trial.place(numbered(pod, number))
        placed.append(placement)
        if len(first) < len(placed):
            first.append(_feasible(placement.decision))
        if not placement.node:
            trial.undo_to(mark)
            break
    return placed


def _feasible(decision: Decision | None) -> frozenset[str]:
    return frozenset(() if decision is None else decision.feasible.names)


def _explain(result: Fit, pod: Pod, failed: Placement, fitted: frozenset[str]) -> None:
    """Say why the next round fails; fitted: the nodes that accepted the pod in the first one."""
    result.complete = True
    result.failed_pod, result.message = pod.key, failed.message
    decision = failed.decision
    if decision is None or decision.error is not None:
        result.runs_out = failed.message
        return
    snapshot, groups = decision.feasible.snapshot, first_refusals(decision)
    rows = np.fromiter((snapshot.row_of[name] for name in fitted), np.intp, len(fitted))
    result.ran_out = _refusals(groups, rows, inside=True)
    result.never_fitted = _refusals(groups, rows, inside=False)
    largest = result.ran_out or result.never_fitted
    result.runs_out = _what(largest[0]) if largest else failed.message


def _refusals(groups: Sequence[RefusedNodes], rows: np.ndarray, *, inside: bool) -> list[Refusals]:
    """The rejections of the nodes in some rows, or of all others; the largest group first."""
    counts = [(group, int(np.isin(group.rows, rows, invert=not inside).sum())) for group in groups]
    found = [
        Refusals(plugin=group.plugin, reasons=list(group.reasons), nodes=count)
        for group, count in counts
        if count
    ]
    return sorted(found, key=lambda each: (-each.nodes, each.plugin, each.reasons))


def _what(refusals: Refusals) -> str:
    """What nodes lack, in one word if it is a resource."""
    texts = [
        match[1] if (match := _INSUFFICIENT.fullmatch(reason)) else reason for reason in refusals.reasons
    ]
    return ", ".join("pods" if text == _TOO_MANY_PODS else text for text in texts)
