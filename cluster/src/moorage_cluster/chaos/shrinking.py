"""A failing script to a short one: whatever can be left out is left out, in halves, then one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from msgspec.structs import replace

from moorage_cluster.chaos.script import Script

T = TypeVar("T")

MAX_RUNS: Final = 400
"""Number of runs after which a script is short enough."""


class _Budget:
    """The runs that are left, and whether a script still fails."""

    def __init__(self, fails: Callable[[Script], bool], runs: int) -> None:
        self._fails = fails
        self._left = runs

    def fails(self, script: Script) -> bool:
        """Whether a script fails; no, if there are no runs left."""
        if self._left <= 0:
            return False
        self._left -= 1
        return self._fails(script)


def shrunk(script: Script, fails: Callable[[Script], bool], runs: int = MAX_RUNS) -> Script:
    """The shortest script that was found to fail as well, with so many runs."""
    budget = _Budget(fails, runs)
    size = -1
    while size != script.size:
        size = script.size
        # Faults first: a script with few of them says most.
        script = replace(script, faults=_fewer(script.faults, script, "faults", budget))
        script = replace(script, operations=_fewer(script.operations, script, "operations", budget))
        script = replace(script, objects=_fewer(script.objects, script, "objects", budget))
    return script


def _fewer(items: tuple[T, ...], script: Script, field: str, budget: _Budget) -> tuple[T, ...]:
    """A part of the items with which a script still fails."""
    length = max(len(items) // 2, 1)
    while items:
        begin = 0
        while begin < len(items):
            fewer = items[:begin] + items[begin + length :]
            if budget.fails(replace(script, **{field: fewer})):
                items = fewer
            else:
                begin += length
        if length == 1:
            break
        length = max(length // 2, 1)
    return items
