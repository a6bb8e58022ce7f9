"""What a PriorityClass says of the preemption of its pods: the two annotations of scheduler-plugins."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from moorage import Object, declare_kind

PREFIX: Final = "preemption-toleration.scheduling.x-k8s.io/"
MINIMUM_PREEMPTABLE_PRIORITY: Final = f"{PREFIX}minimum-preemptable-priority"
"""The annotation with the lowest priority from which on pods of the class are preempted at any time."""
TOLERATION_SECONDS: Final = f"{PREFIX}toleration-seconds"
"""The annotation with how long pods of the class are safe from lower priorities; negative: for ever."""

_NUMBER: Final = re.compile(r"([+-]?)0*([0-9]{1,19})")


class PriorityClass(Object):
    """A PriorityClass, as far as preemption reads it."""

    value: int = 0


PRIORITY_CLASS: Final = declare_kind(
    "scheduling.k8s.io/v1", "priorityclasses", PriorityClass, namespaced=False
)


class Policy(NamedTuple):
    """From which priorities pods of a class are safe, and for how many seconds; negative: for ever."""

    minimum_preemptable_priority: int
    toleration_seconds: int


NO_TOLERATION: Final = Policy(-(1 << 31), 0)
"""The policy of pods that any pod of higher priority may preempt."""


def policy_of(priority_class: PriorityClass) -> Policy:
    """The policy of a class; ValueError if an annotation is not a number in range.

    Without the annotations, pods of the class are preempted by all priorities above it, at any time.
    """
    annotations = priority_class.metadata.annotations
    minimum, seconds = annotations.get(MINIMUM_PREEMPTABLE_PRIORITY), annotations.get(TOLERATION_SECONDS)
    return Policy(
        priority_class.value + 1 if minimum is None else _number(MINIMUM_PREEMPTABLE_PRIORITY, minimum, 32),
        0 if seconds is None else _number(TOLERATION_SECONDS, seconds, 64),
    )


def _number(annotation: str, text: str, bits: int) -> int:
    """A decimal number with or without a sign, and with nothing around it."""
    bound = 1 << (bits - 1)
    found = _NUMBER.fullmatch(text)
    number = bound if found is None else int("".join(found.groups()))
    if not -bound <= number < bound:
        raise ValueError(f"{annotation}: {text!r} is not a whole number from {-bound} to {bound - 1}")
    return number
