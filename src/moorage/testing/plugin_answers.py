"""Calls a plugin as a scheduling cycle would call it alone, and returns its results in a comparable form.

Everything here raises PluginError if the plugin raises, or returns an invalid result.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from moorage.api.pod import Pod
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.dependencies import DependsOn
from moorage.framework.interface.extension_points import DependsOnPlugin, Scores
from moorage.framework.interface.filter_result import FilterResult, Reason
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import Code, Status
from moorage.testing.stage import Stage


@dataclass(frozen=True, slots=True)
class Answers:
    """A plugin's results for a pod and for each node, by name.

    pre_filter: its result for the pod as a whole. refusals: the nodes it rejects.
    scores: before normalising; None if it does not score.
    """

    pre_filter: Any = None
    refusals: Mapping[str, Reason] = field(default_factory=dict)
    scores: Mapping[str, int] | None = None

    def of(self, names: AbstractSet[str]) -> Answers:
        """The results for some of the nodes."""
        refusals = {name: reason for name, reason in self.refusals.items() if name in names}
        scores = self.scores
        if scores is not None:
            scores = {name: score for name, score in scores.items() if name in names}
        return Answers(self.pre_filter, refusals, scores)

    def difference(self, other: Answers) -> str:
        """A description of the first difference from other results; empty if they are equal."""
        if self.pre_filter != other.pre_filter:
            return f"pre_filter answered {shown(self.pre_filter)}, then {shown(other.pre_filter)}"
        for name in sorted(self.refusals.keys() | other.refusals.keys()):
            ours, theirs = self.refusals.get(name), other.refusals.get(name)
            if ours != theirs:
                return f"filter said of {name}: {shown(ours)}, then: {shown(theirs)}"
        if (self.scores is None) != (other.scores is None):
            return "it scored nodes once, and once it did not"
        if self.scores is not None and other.scores is not None:
            for name in sorted(self.scores.keys() & other.scores.keys()):
                if self.scores[name] != other.scores[name]:
                    return f"score said of {name}: {self.scores[name]}, then: {other.scores[name]}"
        return ""


def shown(answer: Any) -> str:
    """A result as text."""
    if answer is None:
        return "yes"
    if isinstance(answer, Reason):
        return repr(", ".join(answer.texts))
    if isinstance(answer, Status):
        return f"{answer.code.value} {answer.message}".strip()
    return repr(answer)


def dependencies_of(stage: Stage, pod: Pod) -> DependsOn | None:
    """The dependencies that the plugin declares for its results, if any."""
    if not isinstance(stage.plugin, DependsOnPlugin):
        return None
    depends_on: DependsOn | None = stage.call("depends_on", pod, stage.nodes.objects)
    return depends_on


def is_refusal(answer: Any) -> bool:
    """Whether a pre-filter ended the attempt."""
    return isinstance(answer, Status) and answer.code not in (Code.SUCCESS, Code.SKIP)


def pre_filter(stage: Stage, cycle: CycleState, pod: Pod) -> Any:
    """The pre-filter's result for a pod: None, SKIP, a rejection or a set of names."""
    if not stage.has("pre_filter"):
        return None
    answer = stage.call("pre_filter", cycle, pod, stage.nodes)
    if isinstance(answer, AbstractSet):
        return frozenset(answer)
    return None if isinstance(answer, Status) and answer.code is Code.SUCCESS else answer


def refusals(stage: Stage, cycle: CycleState, pod: Pod, nodes: Nodes) -> dict[str, Reason]:
    """The nodes that the filter rejects."""
    step = stage.step("filter")
    if step is None or not len(nodes):
        return {}
    result = step.filter(cycle, pod, nodes)
    if problem := filter_result_problem(result, len(nodes)):
        raise step.failed(problem)
    if result.codes is None:
        return {}
    codes = zip(nodes.names, result.codes.tolist(), strict=True)
    return {name: result.reasons[int(code) - 1] for name, code in codes if code}


def filter_result_problem(result: Any, count: int) -> str:
    """What is wrong with a verdict over `count` nodes; empty if it is valid."""
    if not isinstance(result, FilterResult):
        return f"filter returned {type(result).__name__}; return ALL or a mask's .otherwise(reason)"
    if result.codes is None:
        return ""
    codes = np.asarray(result.codes)
    if codes.shape != (count,):
        return f"filter answered with codes of shape {codes.shape} for {count} nodes"
    if codes.dtype.kind not in "iub":
        return f"filter answered with codes of type {codes.dtype}; codes are integers"
    if len(codes) and not 0 <= int(codes.min()) <= int(codes.max()) <= len(result.reasons):
        wrong = int(codes.min()) if int(codes.min()) < 0 else int(codes.max())
        return f"filter answered with code {wrong}; there are {len(result.reasons)} reasons"
    return ""


def prepare_scoring(stage: Stage, cycle: CycleState, pod: Pod, nodes: Nodes) -> bool:
    """Call the pre-score; False if there is nothing to score."""
    if stage.step("score") is None or not len(nodes):
        return False
    if not stage.has("pre_score"):
        return True
    answer = stage.call("pre_score", cycle, pod, nodes)
    return answer is None or answer.code is Code.SUCCESS


def raw_scores(stage: Stage, cycle: CycleState, pod: Pod, nodes: Nodes) -> Scores:
    """The raw scores, before normalising. Shape (nodes,)."""
    step = stage.step("score")
    assert step is not None
    return step.score(cycle, pod, nodes)


def _candidates(answer: Any, nodes: Nodes) -> Nodes:
    """The nodes of a view that remain for the filter after the pre-filter."""
    if is_refusal(answer):
        return nodes.at(np.zeros(0, np.intp))
    if not isinstance(answer, frozenset):
        return nodes
    return nodes.where(np.array([name in answer for name in nodes.names], bool))


@dataclass(frozen=True, slots=True)
class StartedCycle:
    """The state of a cycle after filtering by this plugin.

    answer: the pre-filter's result. candidates: the nodes it left. refused: those that the filter rejected.
    """

    cycle: CycleState
    answer: Any
    candidates: Nodes
    refused: Mapping[str, Reason]

    @property
    def skips(self) -> bool:
        """Whether the filter was not called: the pre-filter skipped it, or rejected the pod."""
        return isinstance(self.answer, Status)

    @property
    def feasible(self) -> Nodes:
        """The nodes that passed."""
        names = self.candidates.names
        return self.candidates.where(np.array([name not in self.refused for name in names], bool))


def begin(stage: Stage, pod: Pod, nodes: Nodes | None = None) -> StartedCycle:
    """Pre-filter a pod, then filter nodes; by default all nodes."""
    nodes = stage.nodes if nodes is None else nodes
    cycle = CycleState()
    answer = pre_filter(stage, cycle, pod)
    left = _candidates(answer, nodes)
    refused = {} if isinstance(answer, Status) else refusals(stage, cycle, pod, left)
    return StartedCycle(cycle, answer, left, refused)


def ask(stage: Stage, pod: Pod, nodes: Nodes | None = None) -> Answers:
    """The results of a cycle of its own for some nodes; by default all nodes.

    Only feasible nodes are scored, but a plugin with depends_on scores all nodes, as in the framework, which
    caches the scores.
    """
    nodes = stage.nodes if nodes is None else nodes
    begun = begin(stage, pod, nodes)
    if is_refusal(begun.answer):
        return Answers(begun.answer)
    to_score = nodes if dependencies_of(stage, pod) is not None else begun.feasible
    scores = None
    if prepare_scoring(stage, begun.cycle, pod, to_score):
        raw = raw_scores(stage, begun.cycle, pod, to_score)
        scores = dict(zip(to_score.names, raw.tolist(), strict=True))
    return Answers(begun.answer, begun.refused, scores)
