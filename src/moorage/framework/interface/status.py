"""What a plugin answers when its answer is for the pod as a whole, and how plugins fail."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum


class Code(Enum):
    """The kinds of answer; the values are kube-scheduler's names."""

    SUCCESS = "Success"
    ERROR = "Error"
    UNSCHEDULABLE = "Unschedulable"
    UNRESOLVABLE = "UnschedulableAndUnresolvable"
    WAIT = "Wait"
    SKIP = "Skip"
    PENDING = "Pending"


_REFUSALS = frozenset((Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING))


@dataclass(frozen=True, slots=True)
class Status:
    """An answer with its reasons; `plugin` is filled in by the framework."""

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""
    timeout_seconds: float | None = None
    """With WAIT: how long to wait at most."""

    @property
    def refused(self) -> bool:
        """Whether the pod cannot go on for a reason that may pass."""
        return self.code in _REFUSALS

    @property
    def message(self) -> str:
        """All reasons in one line."""
        return ", ".join(self.reasons)

    @property
    def text(self) -> str:
        """All reasons in one line; without any, the kind of answer."""
        return self.message or self.code.value

    def by(self, plugin: str) -> Status:
        """This answer, signed."""
        return replace(self, plugin=plugin)


SUCCESS = Status(Code.SUCCESS)
SKIP = Status(Code.SKIP)
"""Nothing to do for this pod: a pre-filter's or pre-score's other half is left out, the next binder asked."""


def unschedulable(*reasons: str) -> Status:
    """Not now; making room (preemption) may help."""
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    """Not now, and no preemption will change that."""
    return Status(Code.UNRESOLVABLE, reasons)


def pending(*reasons: str) -> Status:
    """The decision is made; something outside has to happen before it can be carried out."""
    return Status(Code.PENDING, reasons)


def wait(timeout_seconds: float, *reasons: str) -> Status:
    """Permit's third answer: hold the pod until somebody allows or rejects it, but not for longer."""
    return Status(Code.WAIT, reasons, timeout_seconds=timeout_seconds)


_FAILURE = 'running {point} plugin "{plugin}": {reason}'
_FAILURES = {
    "pre_bind_pre_flight": 'running PreBindPreFlight "{plugin}": {reason}',
    "add_pod": 'running AddPod on PreFilter plugin "{plugin}": {reason}',
    "remove_pod": 'running RemovePod on PreFilter plugin "{plugin}": {reason}',
    "filter": 'running "{plugin}" filter plugin: {reason}',
    "score": 'running Score plugins: plugin "{plugin}" failed with: {reason}',
    "normalize_score": 'running Normalize on Score plugins: plugin "{plugin}" failed with: {reason}',
}
"""kube-scheduler's words for a plugin that failed, where they differ from point to point."""


def point_name(point: str) -> str:
    """An extension point as messages and metrics call it, such as PreFilter."""
    return point.title().replace("_", "")


class PluginError(Exception):
    """A plugin failed, or answered what it may not answer; the pod's attempt fails, nothing else does.

    wording: the message, with places for plugin, point and reason, where it is not the usual one.
    """

    def __init__(self, plugin: str, point: str, reason: str, wording: str = "") -> None:
        super().__init__(
            (wording or _FAILURES.get(point, _FAILURE)).format(
                plugin=plugin, point=point_name(point), reason=reason
            )
        )
        self.plugin = plugin
        self.point = point


class AnswerError(Exception):
    """What a plugin answered is an error, or nothing that it may answer; the text says which."""
