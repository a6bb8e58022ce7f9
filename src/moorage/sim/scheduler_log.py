"""A scheduler's attempts from its log at -v=10, in klog's text format: kube-scheduler's, or our own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

_LINE: Final = re.compile(r'^[IWEF]\d{4} \S+\s+\d+ [^\]]+\] "(?P<message>(?:[^"\\]|\\.)*)"(?P<values>.*)$')
_VALUE: Final = re.compile(r' (?P<key>[^\s=]+)=(?P<value>"(?:[^"\\]|\\.)*"|\S*)')
_ATTEMPT: Final = "Attempting to schedule pod"
_SCORE: Final = "Plugin scored node for pod"
_BOUND: Final = "Successfully bound pod to node"
_REJECTED: Final = "Unable to schedule pod; no fit; waiting"


@dataclass(slots=True)
class LoggedAttempt:
    """An attempt. `scores` are by node and plugin, and empty if fewer than two nodes were scored."""

    pod: str
    node: str | None = None
    message: str | None = None
    scores: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def has_ended(self) -> bool:
        """Whether the log tells how it ended."""
        return self.node is not None or self.message is not None


def logged_attempts(lines: Iterable[str]) -> list[LoggedAttempt]:
    """All attempts whose end is in the log, in the order in which they began."""
    attempts: list[LoggedAttempt] = []
    last: dict[str, LoggedAttempt] = {}
    for message, values in _entries(lines):
        pod = values.get("pod", "")
        if message == _ATTEMPT:
            last[pod] = LoggedAttempt(pod)
            attempts.append(last[pod])
        elif (attempt := last.get(pod)) is None:
            continue
        elif message == _SCORE:
            attempt.scores.setdefault(values["node"], {})[values["plugin"]] = int(values["score"])
        elif message == _BOUND:
            attempt.node = values["node"]
        elif message == _REJECTED:
            attempt.message = values["err"]
    return [attempt for attempt in attempts if attempt.has_ended]


def _entries(lines: Iterable[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """The messages of structured lines with their values; other lines are left out."""
    for line in lines:
        if (found := _LINE.match(line.rstrip("\n"))) is not None:
            values = {each["key"]: _text(each["value"]) for each in _VALUE.finditer(found["values"])}
            yield found["message"], values


def _text(value: str) -> str:
    try:
        return str(json.loads(value)) if value.startswith('"') else value
    except ValueError:
        return value
