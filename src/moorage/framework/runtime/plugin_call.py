"""One plugin at one extension point: called, observed, and its answer validated."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.extension_points import MAX_SCORE, MIN_SCORE, PostFilterResult, Scores
from moorage.framework.interface.filter_result import ALL, FilterResult, Reason, reason_of
from moorage.framework.interface.nodes import Nodes, NodeView
from moorage.framework.interface.status import AnswerError, Code, PluginError, Status
from moorage.framework.runtime.error_location import described, location_in_plugin
from moorage.framework.runtime.observation import CallObserver

_REFUSED = np.ones(1, np.int8)
_NOT_AWAITABLE = (Status, PostFilterResult, type(None))
"""The usual types of answers that need not be awaited: telling that of any other object takes longer."""
_OURS = "moorage.plugins."
"""Module prefix of plugins whose scores are known to be within bounds: tests verify it."""
_INVALID_SCORE = (
    'applying score defaultWeights on Score plugins: plugin "{plugin}" returns an invalid score {reason}, '
    f"it should in the range of [{MIN_SCORE}, {MAX_SCORE}] after normalizing"
)
"""kube-scheduler's message."""


@dataclass(frozen=True, slots=True)
class PluginCall:
    """One plugin at one extension point."""

    plugin: str
    point: str
    method: Callable[..., Any]
    weight: int = 1
    one_node: Callable[..., Any] | None = None
    """The same for one node at a time, where a plugin has that, too: faster for a few nodes."""
    observer: CallObserver | None = None
    """Counts the calls, and times those of a sample; None: calls are not observed."""

    def __call__(self, *arguments: Any) -> Any:
        """Call the plugin; any exception becomes a PluginError."""
        observer = self.observer
        began = None if observer is None else observer.begin(arguments)
        try:
            answer = self.method(*arguments)
        except Exception as error:
            failure = self._failure(error, began)
            raise failure from failure.__cause__
        if began is not None:
            self._end(began, answer)
        return answer

    async def waited(self, *arguments: Any) -> Any:
        """Call the plugin, and wait if it is async."""
        observer = self.observer
        began = None if observer is None else observer.begin(arguments)
        try:
            answer = self.method(*arguments)
            if not isinstance(answer, _NOT_AWAITABLE) and inspect.isawaitable(answer):
                answer = await answer
        except Exception as error:
            failure = self._failure(error, began)
            raise failure from failure.__cause__
        if began is not None:
            self._end(began, answer)
        return answer

    def _call_one(self, cycle: CycleState, pod: Pod, node: NodeView) -> Any:
        """Call the plugin's form for one node."""
        assert self.one_node is not None
        observer = self.observer
        began = None if observer is None else observer.begin_node(cycle)
        try:
            answer = self.one_node(cycle, pod, node)
        except Exception as error:
            failure = self._failure(error, began)
            raise failure from failure.__cause__
        if began is not None:
            self._end(began, answer)
        return answer

    def _failure(self, error: Exception, began: float | None) -> PluginError:
        """The error of a call that raised."""
        if isinstance(error, PluginError):
            failure = error
        elif isinstance(error, AnswerError):
            failure = self.failed(str(error))
        else:
            failure = self.raised(error)
            failure.__cause__ = error
        if began is not None:
            self._end(began, failure)
        return failure

    def _end(self, began: float, answer: Any) -> None:
        """A call that is timed has ended."""
        assert self.observer is not None
        self.observer.end(began, answer)

    def failed(self, reason: str) -> PluginError:
        """The error of a call with an invalid result."""
        return PluginError(self.plugin, self.point, reason)

    def errored(self, status: Status) -> PluginError:
        """The error of a call that answered with an error, or with a status that is invalid there."""
        return self.failed(status.text)

    def raised(self, error: Exception) -> PluginError:
        """The error of a call that raised; with the line, where the plugin is not one of moorage's own."""
        place = location_in_plugin(error)
        return self.failed(described(error) if place is None else f"{described(error)} ({place})")

    # Filters

    def filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> FilterResult:
        """Call a filter for nodes; for a single node in its per-node form, where there is one."""
        if self.one_node is not None and len(nodes) == 1 and nodes.hypothetical_pods is None:
            reason = self.filter_node(cycle, pod, NodeView(nodes.snapshot, int(nodes.row_numbers()[0])))
            return ALL if reason is None else FilterResult(_REFUSED, (reason,))
        result = self(cycle, pod, nodes)
        if not isinstance(result, FilterResult):
            if isinstance(result, Status) and result.code is Code.ERROR:
                raise self.errored(result)
            raise self.failed(f"returned {type(result).__name__}; return ALL or a mask's .otherwise(reason)")
        if result.codes is not None and len(result.codes) != len(nodes):
            raise self.failed(f"answered for {len(result.codes)} nodes of {len(nodes)}")
        return result

    def filter_node(self, cycle: CycleState, pod: Pod, node: NodeView) -> Reason | None:
        """Call a filter for one node; None: the node passes."""
        if self.one_node is None:
            result = self.filter(cycle, pod, node.as_nodes())
            refused = 0 if result.codes is None else int(result.codes[0])
            return result.reasons[refused - 1] if refused else None
        answer = self._call_one(cycle, pod, node)
        if answer is None:
            return None
        try:
            return reason_of(answer)
        except AnswerError as error:
            raise self.failed(str(error)) from None

    # Scores

    def score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Scores:
        """Call a score plugin for nodes; the scores are not normalised yet. They are int64 or int16."""
        return self.integers(self(cycle, pod, nodes), len(nodes))

    def score_node(self, cycle: CycleState, pod: Pod, node: NodeView) -> int:
        """Call a score plugin for one node."""
        if self.one_node is None:
            return int(self.score(cycle, pod, node.as_nodes())[0])
        score = self._call_one(cycle, pod, node)
        try:
            return operator.index(score)
        except TypeError:
            raise self._no_score(score) from None

    def normalised(self, plugin: Any, cycle: CycleState, pod: Pod, nodes: Nodes, scores: Scores) -> Scores:
        """Scores within bounds; a plugin without `normalize_score` must have returned such."""
        normalize = getattr(plugin, "normalize_score", None)
        if normalize is not None:
            call = PluginCall(self.plugin, "normalize_score", normalize)
            answer = call(cycle, pod, nodes, scores.astype(np.int64, copy=False))
            scores = call.integers(answer, len(nodes))
        return scores if type(plugin).__module__.startswith(_OURS) else self.within_bounds(scores)

    def within_bounds(self, scores: Scores) -> Scores:
        """Scores that must be within bounds; PluginError if one is not."""
        scores = scores.astype(np.int64, copy=False)
        # Seen as unsigned, negative scores are larger than all others: one comparison finds both.
        if (scores.view(np.uint64) > MAX_SCORE).any():
            low, high = int(scores.min()), int(scores.max())
            wrong = low if low < MIN_SCORE else high
            raise PluginError(self.plugin, self.point, str(wrong), _INVALID_SCORE)
        return scores

    def weighted(self, plugin: Any, cycle: CycleState, pod: Pod, nodes: Nodes, scores: Scores) -> Scores:
        """Scores multiplied by the plugin's weight; a product may not fit in an int16."""
        normalised = self.normalised(plugin, cycle, pod, nodes, scores)
        return normalised if self.weight == 1 else np.multiply(normalised, self.weight, dtype=np.int64)

    def integers(self, scores: Any, count: int) -> Scores:
        """The scores that a plugin returned, validated."""
        array: NDArray[Any] = np.asarray(scores)
        if array.shape == (count,) and array.dtype.kind in "iub":
            return array if array.dtype == np.int16 else array.astype(np.int64, copy=False)
        for each in array.flat:
            if isinstance(each, Status):
                raise self._no_score(each)
        if array.shape != (count,):
            raise self.failed(f"returned scores of shape {array.shape} for {count} nodes")
        raise self.failed(f"returned scores of type {array.dtype}; scores are integers")

    def _no_score(self, answer: Any) -> PluginError:
        """The error of a call whose answer is not a score: an error status, or an invalid answer."""
        if isinstance(answer, Status) and answer.code is Code.ERROR:
            return self.errored(answer)
        return self.failed(f"returned {answer!r}; scores are integers")

    # Statuses

    def status(self, *arguments: Any, also: Code = Code.SUCCESS) -> Status | None:
        """Call the plugin for a status, as `as_status` reads it."""
        answer = self(*arguments)
        return None if answer is None else self.as_status(answer, also)

    def skips(self, *arguments: Any) -> bool:
        """Call a plugin that may succeed or skip, and nothing else."""
        answer = self(*arguments)
        if isinstance(answer, Status) and answer.code is Code.SKIP:
            return True
        status = self.as_status(answer)
        if status is not None:
            raise self.errored(status)
        return False

    def as_status(self, answer: Any, also: Code = Code.SUCCESS) -> Status | None:
        """None for success, else a refusal, or what has the code `also`; any other answer is an error."""
        if answer is None:
            return None
        if not isinstance(answer, Status):
            raise self.failed(f'returned {answer!r}; return None, or a status such as unschedulable("why")')
        if answer.code is Code.SUCCESS:
            return None
        if not answer.refused and answer.code is not also:
            raise self.errored(answer)
        return self.signed(answer)

    def signed(self, status: Status) -> Status:
        """A status with this plugin's name, unless it has one."""
        return status if status.plugin else status.by(self.plugin)
