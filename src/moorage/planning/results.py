"""What plans have in common: their format, pods that move or stay pending, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final, dataclass_transform

import msgspec

from moorage.api.pod import Pod

FORMAT: Final = "moorage.io/v1alpha1"

Progress = Callable[[int, int], None]
"""Called between steps with the number of those done, and of all of them; 0: that is not known.

It may raise `Interrupted`: then the plan ends there, and says that it is not complete.
"""


class Interrupted(Exception):  # noqa: N818 - the plan has not failed
    """A plan is to end early."""


def no_progress(done: int, total: int) -> None:
    """Shows nothing."""


@dataclass_transform(kw_only_default=True, field_specifiers=(msgspec.field,))
class Struct(msgspec.Struct, rename="camel", kw_only=True):
    """The base of everything in a result: camelCase in JSON."""


class Move(Struct, kw_only=True):
    """A pod that gets a node, in the order in which it does."""

    namespace: str
    name: str
    source: str
    """The node it was on; empty if it was pending."""
    node: str


class WaitingPod(Struct, kw_only=True):
    """A pod that is without a node in the end."""

    namespace: str
    name: str
    source: str
    """The node it was on; empty if it was pending before."""
    message: str
    """What the scheduler says."""
    preempts_on: str = ""
    """The node on which the scheduler would make room for it by preemption; a plan ends there."""


class StayingPod(Struct, kw_only=True):
    """A pod that cannot be evicted."""

    namespace: str
    name: str
    node: str
    reason: str
    budget: str = ""
    """The disruption budget that forbids it, if one does."""


class Usage(Struct, kw_only=True):
    """How much of a resource the pods on nodes request; milli-CPU for cpu, whole units for all else."""

    resource: str
    requested: int
    allocatable: int

    @property
    def share(self) -> float:
        """The requested share; 0 where there is nothing."""
        return self.requested / self.allocatable if self.allocatable else 0.0


class MessageCount(Struct, kw_only=True):
    """Pods that are pending for the same reason."""

    message: str
    pods: int


def counted(messages: Iterable[str]) -> list[MessageCount]:
    """Messages of pending pods, the most frequent first."""
    counts = Counter(messages)
    return [
        MessageCount(message=message, pods=count)
        for message, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]


def by_priority(pods: Iterable[Pod]) -> list[Pod]:
    """Pods in the order in which a queue hands them out that gets them all at once."""
    return sorted(pods, key=lambda pod: -pod.priority)
