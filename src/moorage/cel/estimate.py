"""What an expression costs at most, whatever the device: Kubernetes' estimate, by which it is admitted.

Every node is estimated from its parts: what it costs, how large its value can be, how large the value's
members can be, and how it is reached from the variable `device`, whose parts have known limits. Sizes and
costs are ranges; where nothing is known of a size, it can be anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final, NamedTuple

from moorage.cel.costs import LIST_COST, MAP_COST, PATTERN_FACTOR, TRAVERSAL_FACTOR
from moorage.cel.tree import (
    Call,
    Comprehension,
    Const,
    MakeList,
    MakeMap,
    Node,
    Select,
    Type,
    Variable,
)

_MAX: Final = (1 << 64) - 1
_DOMAIN_SIZE, _NAME_SIZE, _DRIVER_SIZE, _VALUE_SIZE, _MAP_SIZE = 63, 32, 63, 64, 32
"""The limits of what a device's description holds."""


class Range(NamedTuple):
    """The least and the most that something can be."""

    low: int
    high: int

    def plus(self, other: Range) -> Range:
        """The sum."""
        return Range(_capped(self.low + other.low), _capped(self.high + other.high))

    def times(self, other: Range) -> Range:
        """The product."""
        return Range(_capped(self.low * other.low), _capped(self.high * other.high))

    def by(self, factor: float) -> Range:
        """The product with a factor, rounded up."""
        return Range(_capped(ceil(self.low * factor)), _capped(ceil(self.high * factor)))

    def or_else(self, other: Range) -> Range:
        """What covers both."""
        return Range(min(self.low, other.low), max(self.high, other.high))


def _capped(value: int) -> int:
    return min(value, _MAX)


def _fixed(value: int) -> Range:
    return Range(value, value)


_NOTHING, _ONE, _UNKNOWN = _fixed(0), _fixed(1), Range(0, _MAX)


class _Entry(NamedTuple):
    """How large the members of a list or a map are."""

    is_list: bool
    key: Range
    value: Range


@dataclass(frozen=True, slots=True)
class _Estimate:
    """What is known of a node. `size` and `entry` are None, and `path` empty, where nothing is."""

    node: Node
    cost: Range
    size: Range | None = None
    entry: _Entry | None = None
    path: tuple[str, ...] = ()

    @property
    def extent(self) -> Range:
        return _UNKNOWN if self.size is None else self.size


_Scope = Mapping[str, "_Estimate"]


def max_cost(tree: Node) -> int:
    """The most that an expression can cost."""
    return _estimate(tree, {}).cost.high


def _estimate(node: Node, scope: _Scope) -> _Estimate:
    match node:
        case Const(value):
            return _Estimate(node, _NOTHING, _fixed(len(value) if isinstance(value, str | bytes) else 1))
        case Variable(name):
            return _variable(node, name, scope)
        case Select():
            return _select(node, scope)
        case Call():
            return _call(node, scope)
        case MakeList(elements):
            parts = [_estimate(each, scope) for each in elements]
            entry = _Entry(True, _ONE, _covering(parts))
            return _Estimate(node, _sum(parts).plus(_fixed(LIST_COST)), _fixed(len(parts)), entry)
        case MakeMap(entries):
            keys = [_estimate(key, scope) for key, _, _ in entries]
            values = [_estimate(value, scope) for _, value, _ in entries]
            entry = _Entry(False, _covering(keys), _covering(values))
            cost = _sum([*keys, *values]).plus(_fixed(MAP_COST))
            return _Estimate(node, cost, _fixed(len(entries)), entry)
        case Comprehension():
            return _loop(node, scope)


def _sum(parts: Sequence[_Estimate]) -> Range:
    total = _NOTHING
    for part in parts:
        total = total.plus(part.cost)
    return total


def _covering(parts: Sequence[_Estimate]) -> Range:
    if not parts:
        return _NOTHING
    covering = parts[0].extent
    for part in parts[1:]:
        covering = covering.or_else(part.extent)
    return covering


# Looking into values


def _variable(node: Variable, name: str, scope: _Scope) -> _Estimate:
    known = scope.get(name)
    if known is not None:
        return _reached(node, _ONE, known.path, known.entry, known.size)
    path = tuple(name.split("."))
    return _reached(node, _fixed(len(path)), path)


def _select(node: Select, scope: _Scope) -> _Estimate:
    operand = _estimate(node.operand, scope)
    if node.test_only:
        return _Estimate(node, operand.cost, _type_size(node.type))
    steps = _ONE if node.operand.type.kind in ("map", "struct", "param") else _NOTHING
    return _reached(node, operand.cost.plus(steps), (*operand.path, node.field))


def _reached(
    node: Node,
    cost: Range,
    path: tuple[str, ...],
    entry: _Entry | None = None,
    size: Range | None = None,
) -> _Estimate:
    """What is known of a value by the way it is reached, or by its type, or by the variable it came from."""
    return _Estimate(node, cost, _path_size(path) or _type_size(node.type) or size, entry, path)


def _type_size(kind: Type) -> Range | None:
    if kind.kind in ("bool", "double", "duration", "int", "timestamp", "uint"):
        return _ONE
    if kind.kind == "opaque" and kind.name == "optional_type" and kind.parameters:
        return _type_size(kind.parameters[0])
    return None


def _path_size(path: tuple[str, ...]) -> Range | None:
    """How large a part of a device can be; None for what is no part of it."""
    high = _LIMITS.get(path)
    if high is None and path[:2] == ("device", "attributes") and len(path) == 4 and path[2] == "@values":
        high = _VALUE_SIZE
    return None if high is None else Range(0, high)


_LIMITS: Final[Mapping[tuple[str, ...], int]] = {
    ("device", "driver"): _DRIVER_SIZE,
    ("device", "allowMultipleAllocations"): 1,
    **{
        ("device", part, *steps): high
        for part in ("attributes", "capacity")
        for steps, high in (
            ((), _MAP_SIZE),
            (("@keys",), _DOMAIN_SIZE),
            (("@values",), _MAP_SIZE),
            (("@values", "@keys"), _NAME_SIZE),
        )
    },
}


# Loops


def _loop(node: Comprehension, scope: _Scope) -> _Estimate:
    over, start = _estimate(node.over, scope), _estimate(node.start, scope)
    inner = {**scope, node.accumulator: start}
    if _is_bind(node):
        result = _estimate(node.result, inner)
        cost = over.cost.plus(start.cost).plus(result.cost)
        return _Estimate(node, cost, result.size, result.entry)
    each = {**inner, node.variable: _member(over)}
    step = _estimate(node.step, each)
    turn = step.cost.plus(_estimate(node.condition, each).cost)
    result = _estimate(node.result, inner)
    cost = over.cost.plus(start.cost).plus(result.cost).plus(over.extent.times(turn))
    match node.start:
        case Const():
            return _Estimate(node, cost, start.size)
        case MakeList() | MakeMap():
            return _Estimate(node, cost, over.extent, step.entry)
    return _Estimate(node, cost, _type_size(node.type))


def _is_bind(node: Comprehension) -> bool:
    over, condition = node.over, node.condition
    return (
        isinstance(over, MakeList)
        and not over.elements
        and isinstance(condition, Const)
        and condition.value is False
    )


def _member(over: _Estimate) -> _Estimate:
    """What a loop's variable is: an element of a list, or a key of a map."""
    is_list = over.entry.is_list if over.entry is not None else over.node.type.kind == "list"
    size = None
    if over.entry is not None:
        size = over.entry.value if is_list else over.entry.key
    return _Estimate(over.node, _ONE, size, None, (*over.path, "@items" if is_list else "@keys"))


# Calls


class _Priced(NamedTuple):
    """What a call costs beside its arguments, and how large its result is."""

    cost: Range
    size: Range | None = None


_Rule = Callable[[Call, Sequence[_Estimate]], _Priced]


def _call(node: Call, scope: _Scope) -> _Estimate:
    parts = [_estimate(argument, scope) for argument in node.arguments]
    function, together = node.function, _sum(parts)
    match function:
        case "dyn":
            return _Estimate(node, together.plus(_ONE), parts[0].size, parts[0].entry)
        case "_&&_" | "_||_":
            return _Estimate(node, Range(parts[0].cost.low, together.high), _ONE)
        case "_?_:_":
            _, positive, negative = parts
            cost = parts[0].cost.plus(positive.cost.or_else(negative.cost))
            entry = _union(positive.entry, negative.entry)
            return _Estimate(node, cost, positive.extent.or_else(negative.extent), entry)
        case "_[_]":
            return _index(node, parts, together.plus(_ONE))
    priced = [_price(node, overload, parts) for overload in node.overloads]
    cost = priced[0].cost
    sizes = [each.size for each in priced if each.size is not None]
    for each in priced[1:]:
        cost = cost.or_else(each.cost)
    size = sizes[0] if sizes else None
    for other in sizes[1:]:
        assert size is not None
        size = size.or_else(other)
    entry = _union(parts[0].entry, parts[1].entry) if function == "_+_" else None
    return _Estimate(node, together.plus(cost), size or _type_size(node.type), entry)


def _index(node: Call, parts: Sequence[_Estimate], cost: Range) -> _Estimate:
    container = parts[0]
    step = "@items" if node.overloads == ("index_list",) else "@values"
    path = (*container.path, step)
    known = None if container.entry is None else container.entry.value
    return _Estimate(node, cost, known or _path_size(path) or _type_size(node.type), None, path)


def _union(one: _Entry | None, other: _Entry | None) -> _Entry | None:
    if one is None or other is None:
        return None
    return _Entry(one.is_list, one.key.or_else(other.key), one.value.or_else(other.value))


def _price(node: Call, overload: str, parts: Sequence[_Estimate]) -> _Priced:
    rule = _BY_NAME.get(node.function) or _BY_OVERLOAD.get(overload)
    return _Priced(_ONE) if rule is None else rule(node, parts)


def _every_member(node: Call, parts: Sequence[_Estimate]) -> _Priced:
    target = parts[0]
    if target.node.type.kind != "list":
        return _Priced(target.extent.by(TRAVERSAL_FACTOR))
    each = _ONE
    if target.node.type.parameters[0].kind in ("string", "bytes"):
        each = each.plus((_path_size((*target.path, "@items")) or _UNKNOWN).by(TRAVERSAL_FACTOR))
    return _Priced(target.extent.times(each))


def _traversal(node: Call, parts: Sequence[_Estimate]) -> _Priced:
    return _Priced(parts[0].extent.by(TRAVERSAL_FACTOR))


def _same_size(node: Call, parts: Sequence[_Estimate]) -> _Priced:
    return _Priced(parts[0].extent.by(TRAVERSAL_FACTOR), parts[0].extent)


def _by_argument(node: Call, parts: Sequence[_Estimate]) -> _Priced:
    return _Priced(parts[1].extent.by(TRAVERSAL_FACTOR))


def _replaced(node: Call, parts: Sequence[_Estimate]) -> _Priced:
    text, old, new = parts[0].extent, parts[1].extent, parts[2].extent
    most, kept_most = _replacements(text.high, old.low, new.high <= old.low)
    least, kept_least = _replacements(text.low, old.high, old.high <= new.low)
    size = Range(least, most).times(new).plus(Range(kept_least, kept_most))
    return _Priced(text.by(2 * TRAVERSAL_FACTOR), size)


def _replacements(length: int, part: int, no_matter: bool) -> tuple[int, int]:
    """How often a part can be replaced in a text, and how much of the text is kept."""
    if part == 0:
        return _capped(length + 1), length
    return (0, length) if no_matter else (-(-length // part), 0)


def _split(node: Call, parts: Sequence[_Estimate]) -> _Priced:
    text, high = parts[0].extent, parts[0].extent.high
    match node.arguments[2:]:
        case (Const(int(limit)),):
            high = limit & _MAX
    return _Priced(text.by(2 * TRAVERSAL_FACTOR), Range(0, high))


def _joined(node: Call, parts: Sequence[_Estimate]) -> _Priced:
    items = parts[0]
    size = items.extent.times(_path_size((*items.path, "@items")) or _UNKNOWN)
    if len(parts) > 1:
        gaps = Range(max(items.extent.low - 1, 0), max(items.extent.high - 1, 0))
        size = size.plus(parts[1].extent.times(gaps))
    return _Priced(size.by(TRAVERSAL_FACTOR), size)


def _new_list(factor: float, size: Range) -> _Priced:
    return _Priced(size.by(factor).plus(_fixed(1 + LIST_COST)), size)


def _literal(node: Node, default: int) -> int:
    return max(node.value, 0) if isinstance(node, Const) and type(node.value) is int else default


def _sliced(node: Call, parts: Sequence[_Estimate]) -> _Priced:
    start = _literal(node.arguments[1], 0)
    end = _literal(node.arguments[2], parts[0].extent.high)
    return _new_list(1, _fixed((end - start) & _MAX))


def _flattened(node: Call, parts: Sequence[_Estimate]) -> _Priced:
    depth = _literal(node.arguments[1], _MAX) if len(parts) > 1 else 1
    return _new_list(depth, parts[0].extent)


def _distinct(node: Call, parts: Sequence[_Estimate]) -> _Priced:
    return _new_list(2, parts[0].extent.times(parts[0].extent))


def _sorted(node: Call, parts: Sequence[_Estimate]) -> _Priced:
    texts = node.type.kind == "list" and node.type.parameters[0].kind in ("string", "bytes")
    return _new_list(2 + TRAVERSAL_FACTOR * texts, parts[0].extent.times(parts[0].extent))


def _crosswise(factor: int) -> _Rule:
    return lambda node, parts: _Priced(parts[0].extent.times(parts[1].extent).by(factor).plus(_ONE))


def _matches(node: Call, parts: Sequence[_Estimate]) -> _Priced:
    text = parts[0].extent.plus(_ONE).by(TRAVERSAL_FACTOR)
    return _Priced(text.times(parts[1].extent.by(PATTERN_FACTOR)))


def _contains(node: Call, parts: Sequence[_Estimate]) -> _Priced:
    return _Priced(parts[0].extent.by(TRAVERSAL_FACTOR).times(parts[1].extent.by(TRAVERSAL_FACTOR)))


def _compared(node: Call, parts: Sequence[_Estimate]) -> _Priced:
    high = min(parts[0].extent.high, parts[1].extent.high)
    return _Priced(Range(min(high, 1), high).by(TRAVERSAL_FACTOR))


def _equals(node: Call, parts: Sequence[_Estimate]) -> _Priced:
    kinds = {part.node.type for part in parts}
    if len(kinds) == 1 and kinds < {Type("opaque", name=name) for name in _OPAQUE}:
        return _Priced(_ONE)
    return _compared(node, parts)


def _added(node: Call, parts: Sequence[_Estimate]) -> _Priced:
    size = parts[0].extent.plus(parts[1].extent)
    return _Priced(size.by(TRAVERSAL_FACTOR), size)


def _to_bytes(node: Call, parts: Sequence[_Estimate]) -> _Priced:
    text = parts[0].extent
    return _Priced(text.by(TRAVERSAL_FACTOR), Range(text.low, text.high * 4 & _MAX))


def _to_string(node: Call, parts: Sequence[_Estimate]) -> _Priced:
    data = parts[0].extent
    return _Priced(data.by(TRAVERSAL_FACTOR), Range(data.low // 4, data.high))


def _quoted(node: Call, parts: Sequence[_Estimate]) -> _Priced:
    text = parts[0].extent
    return _Priced(text.by(TRAVERSAL_FACTOR), Range(text.low + 2 & _MAX, text.high * 2 + 2 & _MAX))


_OPAQUE: Final = ("kubernetes.Quantity", "kubernetes.Semver")

_BY_NAME: Final[Mapping[str, _Rule]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _every_member),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _same_size),
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver", "format"), _traversal),
    **dict.fromkeys(("sets.contains", "sets.intersects"), _crosswise(1)),
    "sets.equivalent": _crosswise(2),
    "replace": _replaced,
    "split": _split,
    "join": _joined,
    "slice": _sliced,
    "flatten": _flattened,
    "distinct": _distinct,
    "sort": _sorted,
    "reverse": lambda node, parts: _new_list(1, parts[0].extent),
    "lists.range": lambda node, parts: _new_list(1, _fixed(_literal(node.arguments[0], _MAX))),
    "strings.quote": _quoted,
    "_==_": _equals,
    "_!=_": _compared,
}

_BY_OVERLOAD: Final[Mapping[str, _Rule]] = {
    **dict.fromkeys(("starts_with_string", "ends_with_string"), _by_argument),
    **{
        f"{order}_{kind}": _compared
        for order in ("less", "less_equals", "greater", "greater_equals")
        for kind in ("string", "bytes")
    },
    **dict.fromkeys(("add_string", "add_bytes"), _added),
    "add_list": lambda node, parts: _Priced(_ONE, parts[0].extent.plus(parts[1].extent)),
    "in_list": lambda node, parts: _Priced(parts[1].extent),
    "string_to_bytes": _to_bytes,
    "bytes_to_string": _to_string,
    "matches_string": _matches,
    "contains_string": _contains,
}
