"""The maximum cost of an expression for any device: Kubernetes' estimate, by which expressions are admitted.

Every node is estimated from its parts: its cost, its value's size, the sizes of the value's members, and
its path from the variable `device`, whose parts have known limits. Sizes and costs are ranges; an unknown
size is the range of all sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from moorage.cel.costs import LIST_COST, MAP_COST
from moorage.cel.estimated_calls import estimated_call
from moorage.cel.estimated_sizes import ElementSizes, Estimate, path_size, type_size
from moorage.cel.ranges import NOTHING, ONE, Range, fixed
from moorage.cel.tree import Call, Comprehension, Const, MakeList, MakeMap, Node, Select, Variable

_Scope = Mapping[str, Estimate]


def max_cost(tree: Node) -> int:
    """The maximum cost of an expression."""
    return _estimate(tree, {}).cost.high


def _estimate(node: Node, scope: _Scope) -> Estimate:
    match node:
        case Const(value):
            return Estimate(node, NOTHING, fixed(len(value) if isinstance(value, str | bytes) else 1))
        case Variable(name):
            return _variable(node, name, scope)
        case Select():
            return _select(node, scope)
        case Call():
            return _call(node, scope)
        case MakeList(elements):
            parts = [_estimate(each, scope) for each in elements]
            entry = ElementSizes(True, ONE, _covering(parts))
            return Estimate(node, _sum(parts).plus(fixed(LIST_COST)), fixed(len(parts)), entry)
        case MakeMap(entries):
            keys = [_estimate(key, scope) for key, _, _ in entries]
            values = [_estimate(value, scope) for _, value, _ in entries]
            entry = ElementSizes(False, _covering(keys), _covering(values))
            cost = _sum([*keys, *values]).plus(fixed(MAP_COST))
            return Estimate(node, cost, fixed(len(entries)), entry)
        case Comprehension():
            return _loop(node, scope)


def _sum(parts: Sequence[Estimate]) -> Range:
    return reduce(Range.plus, (part.cost for part in parts), NOTHING)


def _covering(parts: Sequence[Estimate]) -> Range:
    return reduce(Range.or_else, (part.extent for part in parts)) if parts else NOTHING


# Variables and fields


def _variable(node: Variable, name: str, scope: _Scope) -> Estimate:
    known = scope.get(name)
    if known is not None:
        return _reached(node, ONE, known.path, known.entry, known.size)
    path = tuple(name.split("."))
    return _reached(node, fixed(len(path)), path)


def _select(node: Select, scope: _Scope) -> Estimate:
    operand = _estimate(node.operand, scope)
    if node.test_only:
        return Estimate(node, operand.cost, type_size(node.type))
    steps = ONE if node.operand.type.kind in ("map", "struct", "param") else NOTHING
    return _reached(node, operand.cost.plus(steps), (*operand.path, node.field))


def _reached(
    node: Node,
    cost: Range,
    path: tuple[str, ...],
    entry: ElementSizes | None = None,
    size: Range | None = None,
) -> Estimate:
    """The estimate of a value whose size follows from its path, its type or the variable it came from."""
    return Estimate(node, cost, path_size(path) or type_size(node.type) or size, entry, path)


# Loops


def _loop(node: Comprehension, scope: _Scope) -> Estimate:
    over, start = _estimate(node.over, scope), _estimate(node.start, scope)
    inner = {**scope, node.accumulator: start}
    if _is_bind(node):
        result = _estimate(node.result, inner)
        cost = over.cost.plus(start.cost).plus(result.cost)
        return Estimate(node, cost, result.size, result.entry)
    each = {**inner, node.variable: _member(over)}
    step = _estimate(node.step, each)
    turn = step.cost.plus(_estimate(node.condition, each).cost)
    result = _estimate(node.result, inner)
    cost = over.cost.plus(start.cost).plus(result.cost).plus(over.extent.times(turn))
    match node.start:
        case Const():
            return Estimate(node, cost, start.size)
        case MakeList() | MakeMap():
            return Estimate(node, cost, over.extent, step.entry)
    return Estimate(node, cost, type_size(node.type))


def _is_bind(node: Comprehension) -> bool:
    over, condition = node.over, node.condition
    return (
        isinstance(over, MakeList)
        and not over.elements
        and isinstance(condition, Const)
        and condition.value is False
    )


def _member(over: Estimate) -> Estimate:
    """The estimate of a loop's variable: an element of a list, or a key of a map."""
    is_list = over.entry.is_list if over.entry is not None else over.node.type.kind == "list"
    size = None
    if over.entry is not None:
        size = over.entry.value if is_list else over.entry.key
    return Estimate(over.node, ONE, size, None, (*over.path, "@items" if is_list else "@keys"))


# Calls


def _call(node: Call, scope: _Scope) -> Estimate:
    parts = [_estimate(argument, scope) for argument in node.arguments]
    function, together = node.function, _sum(parts)
    match function:
        case "dyn":
            return Estimate(node, together.plus(ONE), parts[0].size, parts[0].entry)
        case "_&&_" | "_||_":
            return Estimate(node, Range(parts[0].cost.low, together.high), ONE)
        case "_?_:_":
            _, positive, negative = parts
            cost = parts[0].cost.plus(positive.cost.or_else(negative.cost))
            entry = _union(positive.entry, negative.entry)
            return Estimate(node, cost, positive.extent.or_else(negative.extent), entry)
        case "_[_]":
            return _index(node, parts, together.plus(ONE))
    call = estimated_call(node, parts)
    entry = _union(parts[0].entry, parts[1].entry) if function == "_+_" else None
    return Estimate(node, together.plus(call.cost), call.size or type_size(node.type), entry)


def _index(node: Call, parts: Sequence[Estimate], cost: Range) -> Estimate:
    container = parts[0]
    step = "@items" if node.overloads == ("index_list",) else "@values"
    path = (*container.path, step)
    known = None if container.entry is None else container.entry.value
    return Estimate(node, cost, known or path_size(path) or type_size(node.type), None, path)


def _union(one: ElementSizes | None, other: ElementSizes | None) -> ElementSizes | None:
    if one is None or other is None:
        return None
    return ElementSizes(one.is_list, one.key.or_else(other.key), one.value.or_else(other.value))
