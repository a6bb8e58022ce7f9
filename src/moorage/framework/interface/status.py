"""The status a plugin returns for a pod as a whole, and how plugins fail."""

from __future__ import annotations

from enum import Enum

import msgspec


class Code(Enum):
    """The kinds of answer; the values are kube-scheduler's names."""

    SUCCESS = "Success"
    ERROR = "Error"
    UNSCHEDULABLE = "Unschedulable"
    UNRESOLVABLE = "UnschedulableAndUnresolvable"
    WAIT = "Wait"
    SKIP = "Skip"
    PENDING = "Pending"

    __hash__ = object.__hash__  # Members are compared by identity; that of Enum is a call in Python.


_REFUSALS = frozenset((Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING))


class Status(msgspec.Struct, frozen=True):
    """An answer with its reasons; `plugin` is filled in by the framework."""

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""
    timeout_seconds: float | None = None
    """With WAIT: the time-out, in seconds."""

    @property
    def refused(self) -> bool:
        """Whether the pod is rejected for a reason that may go away."""
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
        """This status with a plugin's name."""
        return Status(self.code, self.reasons, plugin, self.timeout_seconds)


SUCCESS = Status(Code.SUCCESS)
SKIP = Status(Code.SKIP)
"""Nothing to do for this pod: the plugin's filter or score is left out, the next bind plugin is called."""


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
    """Permit's third answer: hold the pod until it is allowed or rejected, or the time-out ends."""
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
    """A plugin failed, or its answer is invalid; only the pod's attempt fails.

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
    """A plugin's answer is an error status, or invalid; the text describes which."""
