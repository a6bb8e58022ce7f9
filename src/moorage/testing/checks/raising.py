"""Nothing raises: every extension point of the scheduling half is called as a cycle does.

Extension points of the binding cycle (pre_bind, bind, post_bind) are not called: they have external effects.
"""

from __future__ import annotations

from collections.abc import Iterator

from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import PluginError
from moorage.queue.queued_pod import QueuedPod
from moorage.testing.placement import make_unschedulable, place
from moorage.testing.plugin_answers import begin, dependencies_of, is_refusal, prepare_scoring, raw_scores
from moorage.testing.trial import Check, Trial


def _raised(trial: Trial) -> Iterator[str]:
    try:
        _before_the_queue(trial)
        _filters_and_scores(trial)
        if trial.stage.has("post_filter") and (refused := make_unschedulable(trial)) is not None:
            refused.post_filter()
        _at_a_node(trial)
    except PluginError as error:
        if error.__cause__ is not None:
            yield str(error)


def _before_the_queue(trial: Trial) -> None:
    if trial.stage.has("pre_enqueue"):
        trial.stage.call("pre_enqueue", trial.pod)
    if trial.stage.has("queue_sort"):
        trial.stage.call("queue_sort", QueuedPod(trial.pod, 0.0))


def _filters_and_scores(trial: Trial) -> None:
    stage, pod = trial.stage, trial.pod
    begun = begin(stage, pod)
    if is_refusal(begun.answer):
        return
    if stage.has("filter_node") and not begun.skips:
        for view in begun.candidates:
            stage.call("filter_node", begun.cycle, pod, view)
    # Results of a plugin with depends_on are cached for all nodes, so it is called for all of them.
    _scores(trial, begun.cycle, stage.nodes if dependencies_of(stage, pod) is not None else begun.feasible)


def _scores(trial: Trial, cycle: CycleState, nodes: Nodes) -> None:
    stage, pod = trial.stage, trial.pod
    if not prepare_scoring(stage, cycle, pod, nodes):
        return
    raw = raw_scores(stage, cycle, pod, nodes)
    if stage.has("score_node"):
        for view in nodes:
            stage.call("score_node", cycle, pod, view)
    if stage.has("normalize_score"):
        stage.call("normalize_score", cycle, pod, nodes, raw.copy())


def _at_a_node(trial: Trial) -> None:
    methods = ("reserve", "permit", "pre_bind_pre_flight")
    if any(map(trial.stage.has, methods)) and (placed := place(trial)) is not None:
        for method in filter(placed.stage.has, methods):
            placed.call(method)


CHECKS = (Check("raises-nothing", "No extension point raises, whatever the pod and the cluster.", _raised),)
