"""Plugins at extension points, counted and timed.

In every cycle it is counted how often a plugin was asked, and about how many nodes. Only in a sample of the
cycles it is timed: `MeasuredFramework` changes its calls for timed ones then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, TypeVar

from moorage.api.pod import Pod
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.extension_points import PostFilterResult
from moorage.framework.interface.filter_result import Reason
from moorage.framework.interface.nodes import NodeView
from moorage.framework.interface.status import Code, PluginError, Status
from moorage.framework.runtime.plugin_call import PluginCall
from moorage.framework.runtime.pre_binding import PreFlight
from moorage.services.metric_values import Number

T = TypeVar("T")

Observe = Callable[[Any, float], None]
"""Takes an answer (an exception, if that is what came) and when the call began."""


def _unobserved(answer: Any, began: float) -> None:
    """Nobody looks on."""


@dataclass(frozen=True, slots=True)
class CountedStep(PluginCall):
    """One plugin at an extension point where it is asked once about each pod."""

    asked: Number = field(default_factory=Number)

    def __call__(self, *arguments: Any) -> Any:
        """Call the plugin; whatever it raises becomes a PluginError."""
        self.asked.value += 1
        return PluginCall.__call__(self, *arguments)


@dataclass(frozen=True, slots=True)
class NodesStep(CountedStep):
    """One plugin at an extension point where it is asked about nodes: many at a time, or one by one."""

    def __call__(self, *arguments: Any) -> Any:
        """Call the plugin about nodes; whatever it raises becomes a PluginError."""
        self.asked.value += len(arguments[2])
        return PluginCall.__call__(self, *arguments)

    def reason(self, cycle: CycleState, pod: Pod, node: NodeView) -> Reason | None:
        """Ask a filter about one node."""
        if self.one_node is not None:
            self.asked.value += 1
        return PluginCall.reason(self, cycle, pod, node)

    def score_of(self, cycle: CycleState, pod: Pod, node: NodeView) -> int:
        """Ask for the score of one node."""
        if self.one_node is not None:
            self.asked.value += 1
        return PluginCall.score_of(self, cycle, pod, node)


@dataclass(frozen=True, slots=True)
class TimedStep(PluginCall):
    """Another call, timed."""

    call: PluginCall = field(kw_only=True)
    observe: Observe = _unobserved

    def __call__(self, *arguments: Any) -> Any:
        """Call the plugin."""
        return self._timed(self.call, *arguments)

    async def waited(self, *arguments: Any) -> Any:
        """Call the plugin, and wait if it is async."""
        began = perf_counter()
        try:
            answer = await self.call.waited(*arguments)
        except PluginError as error:
            self.observe(error, began)
            raise
        self.observe(answer, began)
        return answer

    def reason(self, cycle: CycleState, pod: Pod, node: NodeView) -> Reason | None:
        """Ask a filter about one node."""
        return self._timed(self.call.reason, cycle, pod, node)

    def score_of(self, cycle: CycleState, pod: Pod, node: NodeView) -> int:
        """Ask for the score of one node."""
        return self._timed(self.call.score_of, cycle, pod, node)

    def _timed(self, call: Callable[..., T], *arguments: Any) -> T:
        began = perf_counter()
        try:
            answer = call(*arguments)
        except PluginError as error:
            self.observe(error, began)
            raise
        self.observe(answer, began)
        return answer


@dataclass(frozen=True, slots=True)
class WaitingStep(PluginCall):
    """One plugin that may wait, timed in the cycles that are in the sample."""

    observe: Observe = _unobserved

    async def waited(self, *arguments: Any) -> Any:
        """Call the plugin, and wait if it is async."""
        if not arguments[0].is_sampled:
            return await PluginCall.waited(self, *arguments)
        began = perf_counter()
        try:
            answer = await PluginCall.waited(self, *arguments)
        except PluginError as error:
            self.observe(error, began)
            raise
        self.observe(answer, began)
        return answer


def code_of(answer: Any) -> Code:
    """What an answer says; one that is no status is a good one."""
    if isinstance(answer, PreFlight):
        answer = answer.status
    if isinstance(answer, Status):
        return answer.code
    if isinstance(answer, PostFilterResult):
        return answer.status.code
    if isinstance(answer, Reason):
        return answer.code
    return Code.ERROR if isinstance(answer, Exception) else Code.SUCCESS
