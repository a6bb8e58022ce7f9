"""Observation of a profile: how its extension points and its plugins' calls are timed and counted.

An observed framework runs the same code as any other. Its extension points are timed in every cycle; its
plugins only in a sample of the cycles (`CycleState.is_sampled`): sampling decides whether a clock is read,
and nothing else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from time import perf_counter
from typing import Any, Final, Protocol

from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.status import SUCCESS, Code, Status

CodeOf = Callable[[Any], Code]


class CallObserver(Protocol):
    """Observes the calls of one plugin at one extension point."""

    def begin(self, arguments: tuple[Any, ...]) -> float | None:
        """A call begins: returns the start time if it is timed, else None."""

    def begin_node(self, cycle: CycleState) -> float | None:
        """A call of the one-node form begins."""

    def end(self, began: float, answer: Any) -> None:
        """A call that is timed has ended with an answer, which is a PluginError if it failed."""


class FrameworkObserver(Protocol):
    """Observes one profile."""

    def of_call(self, plugin: str, point: str, *, preempts: bool = False) -> CallObserver | None:
        """The observer of a plugin's calls; None where they are not observed.

        preempts: whether it is DefaultPreemption, or derived from it.
        """

    def samples_gate(self) -> bool:
        """Whether the calls of a pre-enqueue that begins are timed."""

    def samples_cycle(self) -> bool:
        """Whether the calls of a cycle that begins are timed."""

    def used_result_cache(self, *, hit: bool) -> None:
        """A cycle uses the result cache of its pod's equivalence class, which has results or not."""

    def duration(self, point: str, code: Code) -> Callable[[float], None]:
        """A callback for the duration of an extension point that ended with a status, in seconds."""

    def waited_on_permit(self, code: Code, seconds: float) -> None:
        """A pod was held by permit plugins."""


_status_code: Final[CodeOf] = attrgetter("code")
_NO_ANSWER: Final = object()


@dataclass(frozen=True, slots=True)
class _Observed:
    """How one method of a framework is observed.

    point: the extension point. code: the status of an answer; None: every answer has the usual status.
    usual: the status that most pods get. failed: the status if it raises.
    usual_answer: if an answer is this object, its status is the usual one.
    """

    point: str
    code: CodeOf | None = None
    usual_answer: object = _NO_ANSWER
    is_async: bool = False
    usual: Code = Code.SUCCESS
    failed: Code = Code.ERROR


OBSERVED: Final[Mapping[str, _Observed]] = {
    "gate": _Observed("pre_enqueue", lambda plugin: Code.UNRESOLVABLE if plugin else Code.SUCCESS, ""),
    "pre_filter": _Observed("pre_filter", lambda left: Code.UNSCHEDULABLE if left is None else Code.SUCCESS),
    "filter": _Observed("filter", lambda passed: Code.SUCCESS if len(passed) else Code.UNSCHEDULABLE),
    "post_filter": _Observed("post_filter", lambda result: result.status.code, is_async=True),
    "pre_score": _Observed("pre_score"),
    "sum_scores": _Observed("score"),
    "placement_generate": _Observed(
        "placement_generate", lambda made: made.code if isinstance(made, Status) else Code.SUCCESS
    ),
    "placement_feasible": _Observed("placement_feasible", _status_code, SUCCESS),
    "placement_score": _Observed("placement_score"),
    "pod_group_post_filter": _Observed(
        "pod_group_post_filter", lambda result: result.status.code, is_async=True
    ),
    "reserve": _Observed("reserve", _status_code, SUCCESS),
    "unreserve": _Observed("unreserve"),
    "permit": _Observed("permit", _status_code, SUCCESS),
    "pre_bind_pre_flight": _Observed(
        "pre_bind_pre_flight",
        lambda is_needed: Code.SUCCESS if is_needed else Code.SKIP,
        usual_answer=False,
        usual=Code.SKIP,
    ),
    "pre_bind": _Observed("pre_bind", _status_code, SUCCESS, is_async=True),
    "bind": _Observed("bind", _status_code, SUCCESS, is_async=True),
    "post_bind": _Observed("post_bind", is_async=True, failed=Code.SUCCESS),
}
"""The methods of a framework that are extension points."""


def observe(framework: object, observer: FrameworkObserver) -> None:
    """Have an observer time the extension points of a framework from now on."""
    for name, observed in OBSERVED.items():
        wrap = _observed_async if observed.is_async else _observed
        setattr(framework, name, wrap(getattr(framework, name), observed, observer))


def _observed(method: Callable[..., Any], how: _Observed, observer: FrameworkObserver) -> Callable[..., Any]:
    point, code_of, usual, usual_answer = how.point, how.code, how.usual, how.usual_answer
    report_usual = observer.duration(point, usual)

    def call(*arguments: Any) -> Any:
        began = perf_counter()
        try:
            answer = method(*arguments)
        except BaseException:
            observer.duration(point, how.failed)(perf_counter() - began)
            raise
        seconds = perf_counter() - began
        if answer is usual_answer or code_of is None or (code := code_of(answer)) is usual:
            report_usual(seconds)
        else:
            observer.duration(point, code)(seconds)
        return answer

    return call


def _observed_async(
    method: Callable[..., Awaitable[Any]], how: _Observed, observer: FrameworkObserver
) -> Callable[..., Awaitable[Any]]:
    point, code_of, usual, usual_answer = how.point, how.code, how.usual, how.usual_answer
    report_usual = observer.duration(point, usual)

    async def call(*arguments: Any) -> Any:
        began = perf_counter()
        try:
            answer = await method(*arguments)
        except BaseException:
            observer.duration(point, how.failed)(perf_counter() - began)
            raise
        seconds = perf_counter() - began
        if answer is usual_answer or code_of is None or (code := code_of(answer)) is usual:
            report_usual(seconds)
        else:
            observer.duration(point, code)(seconds)
        return answer

    return call
