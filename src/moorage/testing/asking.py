"""Asking a plugin all that a scheduling cycle would ask it alone; its answers, so that they can be compared.

Everything here raises PluginError where the plugin raises, or answers what it may not.
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
    """What a plugin says of a pod and of each node, by name.

    pre_filter: its answer for the pod as a whole. refusals: the nodes it does not let the pod on.
    scores: before normalising; None where it has none to give.
    """

    pre_filter: Any = None
    refusals: Mapping[str, Reason] = field(default_factory=dict)
    scores: Mapping[str, int] | None = None

    def of(self, names: AbstractSet[str]) -> Answers:
        """The same of some of the nodes."""
        refusals = {name: reason for name, reason in self.refusals.items() if name in names}
        scores = self.scores
        if scores is not None:
            scores = {name: score for name, score in scores.items() if name in names}
        return Answers(self.pre_filter, refusals, scores)

    def difference(self, other: Answers) -> str:
        """What another set of answers has otherwise, in words; empty if nothing."""
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
    """An answer in words."""
    if answer is None:
        return "yes"
    if isinstance(answer, Reason):
        return repr(", ".join(answer.texts))
    if isinstance(answer, Status):
        return f"{answer.code.value} {answer.message}".strip()
    return repr(answer)


def dependencies_of(stage: Stage, pod: Pod) -> DependsOn | None:
    """What the plugin says that its answers rest on, if it does."""
    if not isinstance(stage.plugin, DependsOnPlugin):
        return None
    depends_on: DependsOn | None = stage.call("depends_on", pod, stage.nodes.objects)
    return depends_on


def is_refusal(answer: Any) -> bool:
    """Whether a pre-filter ended the attempt."""
    return isinstance(answer, Status) and answer.code not in (Code.SUCCESS, Code.SKIP)


def pre_filter(stage: Stage, cycle: CycleState, pod: Pod) -> Any:
    """What the pre-filter says of a pod: None, SKIP, a refusal or a set of names."""
    if not stage.has("pre_filter"):
        return None
    answer = stage.call("pre_filter", cycle, pod, stage.nodes)
    if isinstance(answer, AbstractSet):
        return frozenset(answer)
    return None if isinstance(answer, Status) and answer.code is Code.SUCCESS else answer


def refusals(stage: Stage, cycle: CycleState, pod: Pod, nodes: Nodes) -> dict[str, Reason]:
    """The nodes that the filter refuses."""
    step = stage.step("filter")
    if step is None or not len(nodes):
        return {}
    verdict = step.filter(cycle, pod, nodes)
    if problem := verdict_problem(verdict, len(nodes)):
        raise step.failed(problem)
    if verdict.codes is None:
        return {}
    codes = zip(nodes.names, verdict.codes.tolist(), strict=True)
    return {name: verdict.reasons[int(code) - 1] for name, code in codes if code}


def verdict_problem(verdict: Any, count: int) -> str:
    """What is wrong with a verdict over so many nodes; empty if nothing."""
    if not isinstance(verdict, FilterResult):
        return f"filter returned {type(verdict).__name__}; return ALL or a mask's .otherwise(reason)"
    if verdict.codes is None:
        return ""
    codes = np.asarray(verdict.codes)
    if codes.shape != (count,):
        return f"filter answered with codes of shape {codes.shape} for {count} nodes"
    if codes.dtype.kind not in "iub":
        return f"filter answered with codes of type {codes.dtype}; codes are integers"
    if len(codes) and not 0 <= int(codes.min()) <= int(codes.max()) <= len(verdict.reasons):
        wrong = int(codes.min()) if int(codes.min()) < 0 else int(codes.max())
        return f"filter answered with code {wrong}; there are {len(verdict.reasons)} reasons"
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
    """What the score says before normalising. Shape (nodes,)."""
    step = stage.step("score")
    assert step is not None
    return step.score(cycle, pod, nodes)


def _candidates(answer: Any, nodes: Nodes) -> Nodes:
    """The nodes of a view that are left to the filter after a pre-filter's answer."""
    if is_refusal(answer):
        return nodes.at(np.zeros(0, np.intp))
    if not isinstance(answer, frozenset):
        return nodes
    return nodes.where(np.array([name in answer for name in nodes.names], bool))


@dataclass(frozen=True, slots=True)
class Begun:
    """A cycle after filtering, as far as this plugin goes.

    answer: the pre-filter's. candidates: the nodes it left. refused: those of them that the filter refused.
    """

    cycle: CycleState
    answer: Any
    candidates: Nodes
    refused: Mapping[str, Reason]

    @property
    def skips(self) -> bool:
        """Whether the filter was not asked: the pre-filter said that it need not be, or refused the pod."""
        return isinstance(self.answer, Status)

    @property
    def feasible(self) -> Nodes:
        """The nodes that passed."""
        names = self.candidates.names
        return self.candidates.where(np.array([name not in self.refused for name in names], bool))


def begin(stage: Stage, pod: Pod, nodes: Nodes | None = None) -> Begun:
    """Pre-filter a pod, then filter nodes, or all nodes."""
    nodes = stage.nodes if nodes is None else nodes
    cycle = CycleState()
    answer = pre_filter(stage, cycle, pod)
    left = _candidates(answer, nodes)
    refused = {} if isinstance(answer, Status) else refusals(stage, cycle, pod, left)
    return Begun(cycle, answer, left, refused)


def ask(stage: Stage, pod: Pod, nodes: Nodes | None = None) -> Answers:
    """All that a cycle would ask about nodes, or about all nodes, with a state of its own.

    Only nodes that passed are scored, but of a plugin that has depends_on all nodes are asked, as the
    framework does to remember the scores.
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
