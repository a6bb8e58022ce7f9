"""The budget of an evaluation.

Two things are counted. Cost is Kubernetes' measure with its limit for one evaluation, so that the same
expressions fail in the same words. Work is our own measure of the time that an attempt to schedule a pod may
take: cost, and what cost does not show of this implementation (calls into the library, elements copied or
compared). Both are charged before an operation runs or allocates memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from moorage.cel.values import Optional

COST_LIMIT: Final = 1_000_000
"""The maximum cost of one evaluation."""

WORK_LIMIT: Final = 90_000
"""The units of work in one attempt to schedule a pod: 45 ms where one takes half a microsecond."""

PLAIN_CALL_WORK: Final = 120
"""The work of a call of the CEL library, in addition to its cost."""

VISIT_WORK: Final = 8
"""The work of visiting a list within a list, and of comparing it with another."""

ELEMENTS_PER_UNIT: Final = 8
"""Elements of a list that are copied, compared or hashed in a unit of work."""

CHARACTERS_PER_UNIT: Final = 64
"""Characters that are copied in a unit of work."""


class CostLimitError(Exception):
    """The cost limit is exceeded: the evaluation ends, and no operator ignores this error."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


class WorkLimitError(Exception):
    """A scheduling attempt ends: the pod's claims take too much work."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"allocating devices exceeds the limit of {limit} units of work in one attempt")


class WorkBudget:
    """The work that an attempt has left. Results are cached, so that the next attempt gets further."""

    __slots__ = ("left", "limit")

    def __init__(self, limit: int = WORK_LIMIT) -> None:
        self.limit = limit
        self.left = limit

    def spend(self, units: int) -> None:
        """Subtract work from what is left; WorkLimitError if less is left."""
        self.left -= units
        if self.left < 0:
            raise WorkLimitError(self.limit)


class Budget:
    """The cost that an evaluation has left, and the work of the attempt that it is part of."""

    __slots__ = ("left", "work")

    def __init__(self, work: WorkBudget) -> None:
        self.left = COST_LIMIT
        self.work = work

    @property
    def cost(self) -> int:
        """The cost of the evaluation so far."""
        return COST_LIMIT - self.left

    def spend(self, cost: int) -> None:
        """Pay for an operation; cost is work as well."""
        self.left -= cost
        if self.left < 0:
            raise CostLimitError
        self.work.spend(cost)

    def copy(self, size: int) -> None:
        """Pay for copying elements, which costs nothing in Kubernetes' measure."""
        self.work.spend(size // ELEMENTS_PER_UNIT)

    def write(self, size: int) -> None:
        """Pay for copying characters."""
        self.work.spend(size // CHARACTERS_PER_UNIT)

    def visit(self, value: Any) -> None:
        """Pay for visiting all members of a value; there may be many if lists contain one list repeatedly."""
        if isinstance(value, str | bytes):
            self.write(len(value))
        elif isinstance(value, list):
            self.work.spend(VISIT_WORK + len(value) // ELEMENTS_PER_UNIT)
            for each in value:
                if type(each) in _HOLDERS:
                    self.visit(each)
        elif isinstance(value, Optional):
            self.work.spend(VISIT_WORK)
            self.visit(value.value)
        elif isinstance(value, Mapping):
            self.work.spend(VISIT_WORK * (1 + len(value)))
            for key, each in value.items():
                self.visit(key)
                self.visit(each)


_HOLDERS = frozenset((str, bytes, list, dict, Optional))
