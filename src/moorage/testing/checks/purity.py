"""Filters and scores are functions of the pod and the nodes: equal input, equal answers, nothing changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from moorage.api.decode import all_types
from moorage.cluster.object_tables import Objects
from moorage.framework.interface.nodes import Nodes
from moorage.testing.placement import make_unschedulable
from moorage.testing.plugin_answers import ask, begin, prepare_scoring, raw_scores
from moorage.testing.stage import Stage
from moorage.testing.trial import Check, Trial

_FUNCTIONS = ("pre_filter", "filter", "filter_node", "pre_score", "score", "score_node")


def contents(objects: Objects) -> dict[str, list[str]]:
    """All objects except nodes and pods, as text."""
    return {kind.__name__: sorted(map(repr, objects.of(kind))) for kind in all_types()}


def _different_answers(trial: Trial) -> Iterator[str]:
    first = ask(trial.stage, trial.pod)
    if difference := first.difference(ask(trial.stage, trial.pod)):
        yield f"asked again: {difference}"
    # A new plugin has no state from earlier calls.
    elif difference := first.difference(ask(trial.fresh(), trial.pod)):
        yield f"asked before and after about other pods: {difference}"
    if trial.stage.has("pre_enqueue"):
        once, again = (trial.stage.call("pre_enqueue", trial.pod) for _ in range(2))
        if once != again:
            yield f"pre_enqueue answered {once!r}, then {again!r}"


def _changes(trial: Trial) -> Iterator[str]:
    stage = trial.fresh()
    nodes = stage.nodes
    before = _all_there_is(trial, stage, nodes)
    ask(stage, trial.pod, nodes)
    if stage.has("pre_enqueue"):
        stage.call("pre_enqueue", trial.pod)
    if stage.has("post_filter"):
        shared = Trial(stage, trial.cluster, trial.pod)
        if (refused := make_unschedulable(shared)) is not None:
            refused.post_filter()
    after = _all_there_is(trial, stage, nodes)
    for what, content in before.items():
        if content != after[what]:
            yield f"it changed {what}"
    yield from _changed_scores(trial)


def _all_there_is(trial: Trial, stage: Stage, nodes: Nodes) -> dict[str, Any]:
    snapshot = nodes.snapshot
    # A label's column is created on demand, and the node itself is compared separately.
    columns = [
        {name: value for name, value in row.items() if name not in ("labels", "node")}
        for row in snapshot.contents().values()
    ]
    return {
        "the pod": repr(trial.pod),
        "a node": repr(snapshot.nodes),
        "a pod on a node": [repr(info.pod) for info in snapshot.pods.infos],
        "what the columns hold": columns,
        "other objects": contents(snapshot.objects),
        "the live objects": contents(stage.cache.objects),
        "the view of the nodes": nodes.names,
    }


def _changed_scores(trial: Trial) -> Iterator[str]:
    """Whether normalising changes its input, which may be cached for the next pod."""
    stage = trial.stage
    if not stage.has("normalize_score"):
        return
    begun = begin(stage, trial.pod)
    if prepare_scoring(stage, begun.cycle, trial.pod, begun.feasible):
        scores = raw_scores(stage, begun.cycle, trial.pod, begun.feasible).copy()
        given = scores.copy()
        stage.call("normalize_score", begun.cycle, trial.pod, begun.feasible, given)
        if not np.array_equal(scores, given):
            yield "normalize_score changed the scores it was given; return new ones"


CHECKS = (
    Check(
        "deterministic",
        "Asked again about the same pod and nodes, it answers the same, whatever it was asked before.",
        _different_answers,
        (*_FUNCTIONS, "pre_enqueue"),
    ),
    Check(
        "changes-nothing",
        "Pods, nodes, other objects and given scores are as they were, whatever it was asked.",
        _changes,
        (*_FUNCTIONS, "pre_enqueue", "post_filter"),
    ),
)
