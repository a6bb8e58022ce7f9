"""Charges for calls: their cost (`costs`), and the work that their cost does not include."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from moorage.cel.arithmetic import ARITHMETIC
from moorage.cel.budget import PLAIN_CALL_WORK, VISIT_WORK, Budget
from moorage.cel.costs import call_cost, size
from moorage.cel.tree import Call
from moorage.cel.values import NUMBERS, Domains, Optional

PATTERN_WORK = 12
"""The work of a state of a regular expression, which is compiled for each call."""

_CLASS_STATES, _MAX_REPETITIONS = 200, 1000
_REPETITION = re.compile(r"[{,]\s*([0-9]+)\s*}")

_MAPS: frozenset[type] = frozenset((dict, Domains))
_HOLDERS: frozenset[type] = _MAPS | {str, bytes, list, Optional}
_VISITORS = frozenset(("_==_", "_!=_", "@in", "isSorted", "sum", "max", "min", "distinct", "sort")) | {
    "indexOf",
    "lastIndexOf",
    "sets.contains",
    "sets.equivalent",
    "sets.intersects",
}
"""Functions that visit all members of their arguments, at any depth."""


def payment(node: Call, is_plain: bool) -> Callable[[Budget, list[Any]], None]:
    """How to pay for a call, given its arguments. Plain functions are the CEL library's."""
    cost, name = call_cost(node.function, node.overloads), node.function
    visits = is_plain or name in _VISITORS
    holders = _HOLDERS - _MAPS if name == "@in" else _HOLDERS  # maps find a key by hash

    def pay(budget: Budget, values: list[Any]) -> None:
        if visits:
            for value in values:
                if type(value) in holders:
                    budget.visit(value)
        budget.spend(1 if cost is None else cost(*values))
        if is_plain:
            budget.work.spend(PLAIN_CALL_WORK)
        if name in _GROWING:
            _GROWING[name](budget, *values)

    return pay


def _pay_replacement(budget: Budget, text: Any, old: Any, new: Any, *count: Any) -> None:
    """Pay for the result, which may be much longer than the original."""
    if type(text) is str and type(old) is str:
        budget.write((text.count(old) if old else len(text) + 1) * size(new))


def _pay_arithmetic(budget: Budget, left: Any, right: Any) -> None:
    """Sums of lists and strings are copies; types other than these and numbers are left to the library."""
    kind = type(left)
    if kind is list:
        budget.copy(len(left) + size(right))
    elif kind in (str, bytes):
        budget.write(len(left) + size(right))
    elif kind not in NUMBERS or kind is not type(right):
        budget.work.spend(PLAIN_CALL_WORK)


def _pay_pattern(budget: Budget, text: Any, pattern: Any) -> None:
    """A short pattern can have many states: repetitions multiply them, and so do character classes."""
    if type(pattern) is not str:
        return
    states = len(pattern) + _CLASS_STATES * (pattern.count("\\p") + pattern.count("\\P"))
    times, nested = 1, "){" in pattern
    for each in _REPETITION.findall(pattern):
        count = min(int(each[-4:]), _MAX_REPETITIONS)
        times = min(times * count, _MAX_REPETITIONS) if nested else max(times, count)
    budget.work.spend(states * max(times, 1) * PATTERN_WORK)


def _pay_flat(budget: Budget, items: Any, depth: Any = 1) -> None:
    """Lists can contain one list repeatedly: each is paid for before it is visited."""
    if type(items) is list and type(depth) is int and depth > 0:
        budget.work.spend(VISIT_WORK)
        budget.copy(len(items))
        for item in items:
            if type(item) is list:
                budget.copy(len(item))
                _pay_flat(budget, item, depth - 1)


_GROWING: dict[str, Callable[..., None]] = {
    "replace": _pay_replacement,
    **dict.fromkeys(ARITHMETIC, _pay_arithmetic),
    "matches": _pay_pattern,
    "flatten": _pay_flat,
}
"""Charges for calls with work, or a result, out of proportion to their cost."""
