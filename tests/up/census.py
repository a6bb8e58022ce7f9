"""How many entries all collections have that a running cluster holds, by the path that leads to them."""

from __future__ import annotations

from array import array
from collections import Counter, deque
from collections.abc import Iterator
from functools import partial
from types import CellType, FunctionType, MethodType
from typing import Any

_SEQUENCES = (list, tuple, set, frozenset, deque)
_COUNTED = (array, dict, list, set, deque)


def count_entries(root: object) -> Counter[str]:
    """The entries of all collections that can be reached from an object, by path.

    A path consists of attributes; all entries of a collection have the same path. What can be reached in
    several ways counts for the shortest.
    """
    found: Counter[str] = Counter()
    seen: dict[int, object] = {}  # With the objects themselves, so that no other one gets their identity.
    waiting: deque[tuple[str, object]] = deque([("", root)])
    while waiting:
        path, each = waiting.popleft()
        if id(each) in seen or isinstance(each, (str, bytes, int, float, type)):
            continue
        seen[id(each)] = each
        if isinstance(each, _COUNTED):
            found[path] += len(each)
        waiting.extend((f"{path}{step}", part) for step, part in _parts(each))
    return found


def _parts(each: Any) -> Iterator[tuple[str, object]]:
    if isinstance(each, dict):
        yield from (("[key]", key) for key in each)
        yield from (("[]", value) for value in each.values())
    elif isinstance(each, _SEQUENCES):
        yield from (("[]", value) for value in each)
    elif isinstance(each, FunctionType):
        cells = (cell for cell in each.__closure__ or () if cell != CellType())
        yield from (("()", cell.cell_contents) for cell in cells)
    elif isinstance(each, MethodType):
        yield "()", each.__self__
    elif isinstance(each, partial):
        yield "()", (each.func, each.args)
    yield from ((f".{name}", getattr(each, name, None)) for name in _attributes(each))


def _attributes(each: object) -> Iterator[str]:
    yield from getattr(each, "__dict__", ())
    yield from getattr(type(each), "__struct_fields__", ())
    for base in type(each).__mro__:
        slots = base.__dict__.get("__slots__", ())
        yield from (slots,) if isinstance(slots, str) else slots
