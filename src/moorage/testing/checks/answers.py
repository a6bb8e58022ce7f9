"""Valid results of each extension point: types, shapes, bounds, reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.extension_points import MAX_SCORE, MIN_SCORE, PostFilterResult, PreFlight
from moorage.framework.interface.filter_result import Reason
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import Code, PluginError, Status
from moorage.queue.queued_pod import QueuedPod
from moorage.testing.placement import make_unschedulable, place
from moorage.testing.plugin_answers import (
    begin,
    filter_result_problem,
    pre_filter,
    prepare_scoring,
    raw_scores,
    shown,
)
from moorage.testing.trial import Check, Trial

_REFUSALS = (Code.UNSCHEDULABLE, Code.UNRESOLVABLE)
_ALLOWED = {
    "pre_enqueue": (Code.SUCCESS, Code.ERROR, Code.PENDING, *_REFUSALS),
    "pre_filter": (Code.SUCCESS, Code.ERROR, Code.SKIP, *_REFUSALS),
    "post_filter": (Code.SUCCESS, Code.ERROR, *_REFUSALS),
    "pre_score": (Code.SUCCESS, Code.ERROR, Code.SKIP),
    "reserve": (Code.SUCCESS, Code.ERROR, Code.PENDING, *_REFUSALS),
    "permit": (Code.SUCCESS, Code.ERROR, Code.PENDING, Code.WAIT, *_REFUSALS),
    "pre_bind_pre_flight": (Code.SUCCESS, Code.ERROR, Code.SKIP),
}
"""The valid statuses of each extension point."""

Answer = tuple[str, Any]
"""A method, and what it returned."""


def _statuses(trial: Trial) -> Iterator[Answer]:
    """The results for the pod as a whole, by extension point in order; calls that raise are left out."""
    stage, pod = trial.stage, trial.pod
    nodes, cycle = stage.nodes, CycleState()

    def answers(method: str, ask: Callable[[], Any]) -> Iterator[Answer]:
        if stage.has(method):
            try:
                yield method, ask()
            except PluginError:
                return

    yield from answers("pre_enqueue", lambda: stage.call("pre_enqueue", pod))
    yield from answers("pre_filter", lambda: stage.call("pre_filter", cycle, pod, nodes))
    yield from answers("pre_score", lambda: stage.call("pre_score", CycleState(), pod, nodes))
    if stage.has("post_filter"):
        yield from _post_filter(trial)
    yield from _at_a_node(trial)


def _post_filter(trial: Trial) -> Iterator[Answer]:
    """The post-filter's result, if no node is feasible."""
    refused = make_unschedulable(trial)
    try:
        if refused is not None:
            yield "post_filter", refused.post_filter()
    except PluginError:
        return


def _at_a_node(trial: Trial) -> Iterator[Answer]:
    """The results for a pod that has been assigned a node."""
    if not any(map(trial.stage.has, ("reserve", "unreserve", "permit", "pre_bind_pre_flight"))):
        return
    placed = place(trial)
    if placed is None:
        return
    for method in ("reserve", "permit", "pre_bind_pre_flight", "unreserve"):
        if placed.stage.has(method):
            try:
                yield method, placed.call(method)
            except PluginError:
                return


# Statuses


def _wrong_statuses(trial: Trial) -> Iterator[str]:
    for method, answer in _statuses(trial):
        if method == "post_filter" and isinstance(answer, PostFilterResult):
            known = {None, "", *trial.stage.nodes.names}
            if answer.nominated_node not in known:
                yield f"post_filter nominated {answer.nominated_node!r}, which is no node of the cluster"
            answer = answer.status
        if method == "pre_bind_pre_flight" and isinstance(answer, PreFlight):
            answer = answer.status
        if method == "pre_filter" and isinstance(answer, set | frozenset):
            if not all(isinstance(name, str) for name in answer):
                yield f"pre_filter returned {answer!r}; a set holds names of nodes"
            continue
        if method == "unreserve":
            if answer is not None:
                yield f"unreserve returned {answer!r}; it has nothing to say"
            continue
        if answer is None and method != "post_filter":
            continue
        if not isinstance(answer, Status):
            yield f"{method} returned {answer!r}; return a status such as unschedulable('why')"
        elif answer.code not in _ALLOWED[method]:
            yield f"{method} answered {shown(answer)}, which means nothing there"
        elif answer.code is Code.WAIT and not (answer.timeout_seconds or 0) > 0:
            yield f"permit wants to wait for {answer.timeout_seconds} seconds"


# Filters and scores


def _wrong_filter_results(trial: Trial) -> Iterator[str]:
    stage, pod, cycle = trial.stage, trial.pod, CycleState()
    if isinstance(pre_filter(stage, cycle, pod), Status):
        return
    nodes = stage.nodes
    if stage.has("filter"):
        result = stage.call("filter", cycle, pod, nodes)
        if not _is_error(result) and (problem := filter_result_problem(result, len(nodes))):
            yield problem
    if stage.has("filter_node"):
        for view in nodes:
            returned = stage.call("filter_node", cycle, pod, view)
            if not _is_an_answer(returned):
                yield f"filter_node returned {returned!r}; return None, a reason, or a refusal"


def _is_an_answer(returned: Any) -> bool:
    if isinstance(returned, Status):
        return returned.code in (Code.SUCCESS, Code.ERROR, *_REFUSALS)
    return returned is None or isinstance(returned, str | Reason)


def _is_error(answer: Any) -> bool:
    """Whether a plugin returned an error, which is valid everywhere."""
    return isinstance(answer, Status) and answer.code is Code.ERROR


def _refusals_without_reason(trial: Trial) -> Iterator[str]:
    for method, answer in _statuses(trial):
        status = answer.status if isinstance(answer, PostFilterResult | PreFlight) else answer
        if not isinstance(status, Status) or not status.refused:
            continue
        # Where a post-filter could do nothing, the message of the filters says it all.
        if not _has_words(status.reasons) and (status.reasons or method != "post_filter"):
            yield f"{method} refused a pod without a reason"
    stage, pod = trial.stage, trial.pod
    begun = begin(stage, pod)
    for name, reason in begun.refused.items():
        if not _has_words(reason.texts):
            yield f"filter refused {name} without a reason"
    if stage.has("filter_node") and not begun.skips:
        for view in begun.candidates:
            returned = stage.call("filter_node", begun.cycle, pod, view)
            if returned == "" or (
                isinstance(returned, Status) and returned.refused and not _has_words(returned.reasons)
            ):
                yield f"filter_node refused {view.name} without a reason"


def _has_words(texts: tuple[Any, ...]) -> bool:
    return bool(texts) and all(isinstance(text, str) and text.strip() for text in texts)


def _wrong_scores(trial: Trial) -> Iterator[str]:
    for cycle, nodes in _scored(trial):
        stage, pod = trial.stage, trial.pod
        if stage.has("score"):
            yield from _not_integers("score", stage.call("score", cycle, pod, nodes), len(nodes))
        if stage.has("score_node"):
            for view in nodes:
                returned = stage.call("score_node", cycle, pod, view)
                if not isinstance(returned, int | np.integer) and not _is_error(returned):
                    yield f"score_node returned {returned!r}; a score is an integer"


def _scores_out_of_bounds(trial: Trial) -> Iterator[str]:
    for cycle, nodes in _scored(trial):
        stage, pod = trial.stage, trial.pod
        scores: Any = raw_scores(stage, cycle, pod, nodes)
        if stage.has("normalize_score"):
            scores = stage.call("normalize_score", cycle, pod, nodes, scores.copy())
            if problem := next(_not_integers("normalize_score", scores, len(nodes)), ""):
                yield problem
                return
        for name, score in zip(nodes.names, np.asarray(scores).tolist(), strict=True):
            if not MIN_SCORE <= score <= MAX_SCORE:
                normalised = ", normalised" if stage.has("normalize_score") else ""
                yield f"{name} scored {score}{normalised}; scores are {MIN_SCORE} to {MAX_SCORE}"


def _scored(trial: Trial) -> Iterator[tuple[CycleState, Nodes]]:
    """The state and the nodes that the score is called with; nothing if it is not called."""
    begun = begin(trial.stage, trial.pod)
    if prepare_scoring(trial.stage, begun.cycle, trial.pod, begun.feasible):
        yield begun.cycle, begun.feasible


def _not_integers(method: str, scores: Any, count: int) -> Iterator[str]:
    array = np.asarray(scores)
    if _is_error(scores):
        return
    if array.shape != (count,):
        yield f"{method} returned scores of shape {array.shape} for {count} nodes"
    elif array.dtype.kind not in "iub":
        yield f"{method} returned scores of type {array.dtype}; scores are integers"


# The queue


def _keys_that_do_not_compare(trial: Trial) -> Iterator[str]:
    queued = [QueuedPod(pod, float(number)) for number, pod in enumerate(trial.cluster.pods)]
    yield from _unsorted("queue_sort", [trial.stage.call("queue_sort", each) for each in queued])
    if trial.stage.has("sub_queue"):
        yield from _wrong_sub_queues(trial, queued)


def _unsorted(method: str, keys: list[Any]) -> Iterator[str]:
    try:
        sorted(keys)
    except TypeError as error:
        yield f"the keys of {method} cannot be compared: {error}"


def _wrong_sub_queues(trial: Trial, pods: Sequence[QueuedPod]) -> Iterator[str]:
    try:
        firsts = {trial.stage.call("sub_queue", queued): queued for queued in reversed(pods)}
    except TypeError as error:
        yield f"the sub-queues of sub_queue cannot be told apart: {error}"
        return
    keys = [trial.stage.call("sub_queue_sort", *each) for each in firsts.items()]
    yield from _unsorted("sub_queue_sort", keys)
    for popped, failed in ((None, False), *((each, failed) for each in firsts for failed in (True, False))):
        changed = trial.stage.call("changed_sub_queues", MappingProxyType(firsts), popped, failed)
        if changed is not None and not isinstance(changed, Iterable):
            yield f"changed_sub_queues returned {changed!r}; return sub-queues, or None for all of them"


CHECKS = (
    Check(
        "status-answers",
        "Answers for the pod as a whole are None or a status that means something at that extension point.",
        _wrong_statuses,
        (*_ALLOWED, "unreserve"),
    ),
    Check(
        "filter-answers",
        "filter gives ALL or one code for every node it was asked about; filter_node None or a refusal.",
        _wrong_filter_results,
        ("filter", "filter_node"),
    ),
    Check(
        "refusals-have-reasons",
        "Every refusal says why, in words: users read them in the pod's events. post_filter may add nothing.",
        _refusals_without_reason,
        ("pre_enqueue", "pre_filter", "filter", "filter_node", "post_filter", "reserve", "permit"),
    ),
    Check(
        "score-answers",
        "score gives one integer for every node it was asked about; score_node one integer.",
        _wrong_scores,
        ("score", "score_node"),
    ),
    Check(
        "score-bounds",
        "Scores are from 0 to 100, after normalize_score where there is one.",
        _scores_out_of_bounds,
        ("score", "score_node"),
    ),
    Check(
        "queue-order",
        "The keys of queue_sort can be compared with each other; so can those of sub-queues.",
        _keys_that_do_not_compare,
        ("queue_sort",),
    ),
)
