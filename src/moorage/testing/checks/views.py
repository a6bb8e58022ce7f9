"""A node's result does not depend on the other nodes of the view, the form of the call, or preparation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.filter_result import reason_of
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import PluginError, Status
from moorage.testing.plugin_answers import (
    Answers,
    ask,
    begin,
    dependencies_of,
    is_refusal,
    prepare_scoring,
    raw_scores,
    refusals,
    shown,
)
from moorage.testing.trial import Check, Trial


def _parts(nodes: Nodes) -> Iterator[Nodes]:
    """Parts of the nodes: in another order, every second one, each alone."""
    indices = np.arange(len(nodes))
    yield nodes.at(indices[::-1])
    if len(nodes) > 2:
        yield nodes.at(indices[::2])
        yield nodes.at(indices[1::2])
    for index in indices:
        yield nodes.at(indices[index : index + 1])


def _different_alone(trial: Trial) -> Iterator[str]:
    stage, pod = trial.stage, trial.pod
    scores_count = dependencies_of(stage, pod) is not None
    everywhere = ask(stage, pod)
    if is_refusal(everywhere.pre_filter):
        return
    for part in _parts(stage.nodes):
        here = ask(stage, pod, part)
        expected = everywhere.of(set(part.names))
        if not scores_count:
            expected, here = _without_scores(expected), _without_scores(here)
        if difference := expected.difference(here):
            yield f"asked about {len(stage.nodes)} nodes and about {len(part)}: {difference}"


def _without_scores(answers: Answers) -> Answers:
    return Answers(answers.pre_filter, answers.refusals)


def _different_forms(trial: Trial) -> Iterator[str]:
    stage, pod = trial.stage, trial.pod
    begun = begin(stage, pod)
    if stage.has("filter") and stage.has("filter_node") and not begun.skips:
        for view in begun.candidates:
            alone = reason_of(stage.call("filter_node", begun.cycle, pod, view))
            if alone != begun.refused.get(view.name):
                yield (
                    f"filter said of {view.name}: {shown(begun.refused.get(view.name))}, "
                    f"filter_node: {shown(alone)}"
                )
    nodes = begun.feasible
    if stage.has("score") and stage.has("score_node") and prepare_scoring(stage, begun.cycle, pod, nodes):
        scores = raw_scores(stage, begun.cycle, pod, nodes).tolist()
        for view, score in zip(nodes, scores, strict=True):
            alone = stage.call("score_node", begun.cycle, pod, view)
            if alone != score:
                yield f"score said of {view.name}: {score}, score_node: {alone}"


def _different_without_pre_filter(trial: Trial) -> Iterator[str]:
    begun = begin(trial.stage, trial.pod)
    if is_refusal(begun.answer):
        return
    try:
        unprepared = refusals(trial.stage, CycleState(), trial.pod, begun.candidates)
    except PluginError as error:
        yield f"without pre_filter: {error}"
        return
    if not begun.skips and (difference := Answers(None, begun.refused).difference(Answers(None, unprepared))):
        yield f"with and without pre_filter: {difference}"


def _refused_after_skip(trial: Trial) -> Iterator[str]:
    begun = begin(trial.stage, trial.pod)
    if isinstance(begun.answer, Status) and not is_refusal(begun.answer):
        refused = refusals(trial.stage, begun.cycle, trial.pod, begun.candidates)
        for name, reason in refused.items():
            yield f"pre_filter said SKIP, but filter would have refused {name}: {shown(reason)}"


CHECKS = (
    Check(
        "same-alone",
        "A node gets the same answer alone, among others and in any order: refusals always, raw scores if "
        "the plugin has depends_on.",
        _different_alone,
        ("filter", "filter_node", "score", "score_node"),
    ),
    Check(
        "both-forms-agree",
        "filter and filter_node say the same, and so do score and score_node.",
        _different_forms,
        ("filter_node", "score_node"),
    ),
    Check(
        "works-without-pre-filter",
        "filter says the same where a profile has switched the plugin's pre_filter off.",
        _different_without_pre_filter,
        ("pre_filter",),
    ),
    Check(
        "skip-is-honest",
        "Where pre_filter says SKIP, filter would let every node pass.",
        _refused_after_skip,
        ("pre_filter",),
    ),
)
