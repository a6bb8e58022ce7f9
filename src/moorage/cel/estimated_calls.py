"""Estimated costs of calls and sizes of their results, by function and overload."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Final, NamedTuple

from moorage.cel.costs import LIST_COST, PATTERN_FACTOR, TRAVERSAL_FACTOR
from moorage.cel.estimated_sizes import Estimate, path_size
from moorage.cel.ranges import MAX, ONE, UNKNOWN, Range, capped, fixed
from moorage.cel.tree import Call, Const, Node, Type


class CallEstimate(NamedTuple):
    """A call's cost without that of its arguments, and its result's size."""

    cost: Range
    size: Range | None = None


_Rule = Callable[[Call, Sequence[Estimate]], CallEstimate]


def estimated_call(node: Call, arguments: Sequence[Estimate]) -> CallEstimate:
    """The ranges that cover all overloads a call may have when it is evaluated."""
    estimates = [_estimate(node, overload, arguments) for overload in node.overloads]
    sizes = [each.size for each in estimates if each.size is not None]
    cost = reduce(Range.or_else, (each.cost for each in estimates))
    return CallEstimate(cost, reduce(Range.or_else, sizes) if sizes else None)


def _estimate(node: Call, overload: str, parts: Sequence[Estimate]) -> CallEstimate:
    rule = _BY_NAME.get(node.function) or _BY_OVERLOAD.get(overload)
    return CallEstimate(ONE) if rule is None else rule(node, parts)


def _every_member(node: Call, parts: Sequence[Estimate]) -> CallEstimate:
    target = parts[0]
    if target.node.type.kind != "list":
        return CallEstimate(target.extent.by(TRAVERSAL_FACTOR))
    each = ONE
    if target.node.type.parameters[0].kind in ("string", "bytes"):
        each = each.plus((path_size((*target.path, "@items")) or UNKNOWN).by(TRAVERSAL_FACTOR))
    return CallEstimate(target.extent.times(each))


def _traversal(node: Call, parts: Sequence[Estimate]) -> CallEstimate:
    return CallEstimate(parts[0].extent.by(TRAVERSAL_FACTOR))


def _same_size(node: Call, parts: Sequence[Estimate]) -> CallEstimate:
    return CallEstimate(parts[0].extent.by(TRAVERSAL_FACTOR), parts[0].extent)


def _by_argument(node: Call, parts: Sequence[Estimate]) -> CallEstimate:
    return CallEstimate(parts[1].extent.by(TRAVERSAL_FACTOR))


def _replaced(node: Call, parts: Sequence[Estimate]) -> CallEstimate:
    text, old, new = parts[0].extent, parts[1].extent, parts[2].extent
    most, kept_most = _replacements(text.high, old.low, new.high <= old.low)
    least, kept_least = _replacements(text.low, old.high, old.high <= new.low)
    size = Range(least, most).times(new).plus(Range(kept_least, kept_most))
    return CallEstimate(text.by(2 * TRAVERSAL_FACTOR), size)


def _replacements(length: int, part: int, no_matter: bool) -> tuple[int, int]:
    """How often a part can be replaced in a text, and how many characters of the text stay."""
    if part == 0:
        return capped(length + 1), length
    return (0, length) if no_matter else (-(-length // part), 0)


def _split(node: Call, parts: Sequence[Estimate]) -> CallEstimate:
    text, high = parts[0].extent, parts[0].extent.high
    match node.arguments[2:]:
        case (Const(int(limit)),):
            high = limit & MAX
    return CallEstimate(text.by(2 * TRAVERSAL_FACTOR), Range(0, high))


def _joined(node: Call, parts: Sequence[Estimate]) -> CallEstimate:
    items = parts[0]
    size = items.extent.times(path_size((*items.path, "@items")) or UNKNOWN)
    if len(parts) > 1:
        gaps = Range(max(items.extent.low - 1, 0), max(items.extent.high - 1, 0))
        size = size.plus(parts[1].extent.times(gaps))
    return CallEstimate(size.by(TRAVERSAL_FACTOR), size)


def _new_list(factor: float, size: Range) -> CallEstimate:
    return CallEstimate(size.by(factor).plus(fixed(1 + LIST_COST)), size)


def _literal(node: Node, default: int) -> int:
    return max(node.value, 0) if isinstance(node, Const) and type(node.value) is int else default


def _sliced(node: Call, parts: Sequence[Estimate]) -> CallEstimate:
    start = _literal(node.arguments[1], 0)
    end = _literal(node.arguments[2], parts[0].extent.high)
    return _new_list(1, fixed((end - start) & MAX))


def _flattened(node: Call, parts: Sequence[Estimate]) -> CallEstimate:
    depth = _literal(node.arguments[1], MAX) if len(parts) > 1 else 1
    return _new_list(depth, parts[0].extent)


def _distinct(node: Call, parts: Sequence[Estimate]) -> CallEstimate:
    return _new_list(2, parts[0].extent.times(parts[0].extent))


def _sorted(node: Call, parts: Sequence[Estimate]) -> CallEstimate:
    texts = node.type.kind == "list" and node.type.parameters[0].kind in ("string", "bytes")
    return _new_list(2 + TRAVERSAL_FACTOR * texts, parts[0].extent.times(parts[0].extent))


def _crosswise(factor: int) -> _Rule:
    return lambda node, parts: CallEstimate(parts[0].extent.times(parts[1].extent).by(factor).plus(ONE))


def _matches(node: Call, parts: Sequence[Estimate]) -> CallEstimate:
    text = parts[0].extent.plus(ONE).by(TRAVERSAL_FACTOR)
    return CallEstimate(text.times(parts[1].extent.by(PATTERN_FACTOR)))


def _contains(node: Call, parts: Sequence[Estimate]) -> CallEstimate:
    return CallEstimate(parts[0].extent.by(TRAVERSAL_FACTOR).times(parts[1].extent.by(TRAVERSAL_FACTOR)))


def _compared(node: Call, parts: Sequence[Estimate]) -> CallEstimate:
    high = min(parts[0].extent.high, parts[1].extent.high)
    return CallEstimate(Range(min(high, 1), high).by(TRAVERSAL_FACTOR))


def _equals(node: Call, parts: Sequence[Estimate]) -> CallEstimate:
    kinds = {part.node.type for part in parts}
    if len(kinds) == 1 and kinds < {Type("opaque", name=name) for name in _OPAQUE}:
        return CallEstimate(ONE)
    return _compared(node, parts)


def _added(node: Call, parts: Sequence[Estimate]) -> CallEstimate:
    size = parts[0].extent.plus(parts[1].extent)
    return CallEstimate(size.by(TRAVERSAL_FACTOR), size)


def _to_bytes(node: Call, parts: Sequence[Estimate]) -> CallEstimate:
    text = parts[0].extent
    return CallEstimate(text.by(TRAVERSAL_FACTOR), Range(text.low, text.high * 4 & MAX))


def _to_string(node: Call, parts: Sequence[Estimate]) -> CallEstimate:
    data = parts[0].extent
    return CallEstimate(data.by(TRAVERSAL_FACTOR), Range(data.low // 4, data.high))


def _quoted(node: Call, parts: Sequence[Estimate]) -> CallEstimate:
    text = parts[0].extent
    return CallEstimate(text.by(TRAVERSAL_FACTOR), Range(text.low + 2 & MAX, text.high * 2 + 2 & MAX))


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
    "lists.range": lambda node, parts: _new_list(1, fixed(_literal(node.arguments[0], MAX))),
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
    "add_list": lambda node, parts: CallEstimate(ONE, parts[0].extent.plus(parts[1].extent)),
    "in_list": lambda node, parts: CallEstimate(parts[1].extent),
    "string_to_bytes": _to_bytes,
    "bytes_to_string": _to_string,
    "matches_string": _matches,
    "contains_string": _contains,
}
