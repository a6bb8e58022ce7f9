"""From syntax tree to closures: every node becomes a function of the variables.

Each closure spends the cost of an operation (`costs`) before it runs it. Reading a variable is one operation,
and so is each field or index after it; constants cost nothing.
"""

from __future__ import annotations

from typing import Any

from moorage.cel.budget import Budget, WorkBudget
from moorage.cel.calls import called
from moorage.cel.costs import LIST_COST, MAP_COST
from moorage.cel.functions import Members
from moorage.cel.logic import BUDGET, SPECIAL, Closure, Scope, spend
from moorage.cel.lookup import INDEXES, indexed, selected
from moorage.cel.tree import Call, Comprehension, Const, MakeList, MakeMap, Node, Select, Variable
from moorage.cel.values import TYPE_NAMES, CelError, TypeName, Uint, no_such_overload, type_name

_TYPES = frozenset(TYPE_NAMES.values())
_KEYS = frozenset((bool, int, Uint, float, str))
_LOOKS = INDEXES | {"_?_:_"}
_CONVERSIONS = frozenset(
    ("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint")
)


class _Failure:
    """An error that is kept as a value, and raised when the value is read."""

    __slots__ = ("error",)

    def __init__(self, error: CelError) -> None:
        self.error = error


def closure(node: Node) -> Closure:
    """A function that evaluates a tree; TreeError if something in it is unknown."""
    if _is_constant(node) and not isinstance(node, Const):
        folded = _folded(node)
        if folded is not None:
            return folded
    return _closure(node)


def _closure(node: Node, base: int = 1) -> Closure:
    """base: the cost of reading the variable, if the node is one or selects from one."""
    match node:
        case Const(value):
            return lambda scope: value
        case Variable(name):
            return _variable(name, base)
        case Select(operand, field, test_only):
            return selected(_operand(operand, base), field, test_only)
        case Call(function, arguments, _, overloads):
            if function in INDEXES:
                return indexed(function, _operand(arguments[0], base), _key(arguments[1]))
            if function == "_?_:_":
                return SPECIAL[function](closure(arguments[0]), *map(_branch, arguments[1:]))
            if function == "@in" and overloads == ("in_list",) and _is_scalars(arguments[1]):
                return _known_members(closure(arguments[0]), closure(arguments[1]))
            return called(node, [closure(argument) for argument in arguments])
        case MakeList(elements, optional):
            return _list([(closure(each), index in optional) for index, each in enumerate(elements)])
        case MakeMap(entries):
            return _map([(closure(key), closure(value), optional) for key, value, optional in entries])
        case Comprehension():
            return _fold(node)


# Constants


def _is_constant(node: Node) -> bool:
    match node:
        case Const():
            return True
        case MakeList(elements, optional):
            return not optional and all(map(_is_constant, elements))
        case MakeMap(entries):
            return all(_is_constant(k) and _is_constant(v) and not optional for k, v, optional in entries)
        case Call(function, (argument,)):
            return function in _CONVERSIONS and _is_constant(argument)
    return False


def _folded(node: Node) -> Closure | None:
    """The closure of the value, which is computed here; None if that is an error."""
    try:
        value = _closure(node)({BUDGET: Budget(WorkBudget())})
    except CelError:
        return None
    return lambda scope: value


def _is_scalars(node: Node) -> bool:
    return isinstance(node, MakeList) and all(isinstance(each, Const) for each in node.elements)


def _known_members(item: Closure, items: Closure) -> Closure:
    there = Members(items({}))
    return lambda scope: item(scope) in there


# Variables


def _variable(name: str, base: int) -> Closure:
    if name in _TYPES:
        return lambda scope: TypeName(name)
    cost = base + name.count(".")

    def look(scope: Scope) -> Any:
        spend(scope, cost)
        value = scope[name]
        if type(value) is _Failure:
            raise value.error
        return value

    return look


def _looks(node: Node) -> bool:
    """Whether a node is a variable, or selects from a value."""
    return isinstance(node, Variable | Select) or (isinstance(node, Call) and node.function in _LOOKS)


def _operand(node: Node, base: int) -> Closure:
    """The value that a field or index selects from; `base` is spent here if that is not a variable."""
    if _looks(node):
        return _closure(node, base)
    inner = closure(node)

    def look(scope: Scope) -> Any:
        value = inner(scope)
        spend(scope, base)
        return value

    return look


def _key(node: Node) -> Closure:
    return _closure(node, 0) if _looks(node) else closure(node)


_branch = _key


# Making values


def _list(elements: list[tuple[Closure, bool]]) -> Closure:
    def make(scope: Scope) -> list[Any]:
        spend(scope, LIST_COST)
        made = []
        for element, optional in elements:
            value = element(scope)
            if not optional:
                made.append(value)
            elif value.present:
                made.append(value.value)
        return made

    return make


def _map(entries: list[tuple[Closure, Closure, bool]]) -> Closure:
    def make(scope: Scope) -> dict[Any, Any]:
        spend(scope, MAP_COST)
        made: dict[Any, Any] = {}
        for key, value, optional in entries:
            name, content = key(scope), value(scope)
            if type(name) not in _KEYS:
                raise CelError(f"unsupported key type: {type_name(name)}")
            if not optional:
                made[name] = content
            elif content.present:
                made[name] = content.value
        return made

    return make


# Loops


def _fold(node: Comprehension) -> Closure:
    over, start, result = closure(node.over), closure(node.start), closure(node.result)
    condition, step = closure(node.condition), _step(node)
    variable, accumulator = node.variable, node.accumulator
    fresh = _is_empty_list(node.start)

    def fold(scope: Scope) -> Any:
        items = over(scope)
        if not isinstance(items, list | dict):
            raise no_such_overload()
        inner = dict(scope)
        inner[accumulator] = [] if fresh else _kept(start, scope)
        for item in items:
            inner[variable] = item
            if not condition(inner):
                break
            scope[BUDGET].work.spend(1)
            inner[accumulator] = _kept(step, inner)
        return result(inner)

    return fold


def _is_empty_list(node: Node) -> bool:
    return isinstance(node, MakeList) and not node.elements


def _step(node: Comprehension) -> Closure:
    """A loop's step; a list that is built element by element is not copied each time."""
    if _is_empty_list(node.start) and node.accumulator.startswith("@"):
        match node.step:
            case Call("_+_", (Variable(name), MakeList() as made)) if name == node.accumulator:
                return _append(name, closure(made))
            case Call(
                "_?_:_", (condition, Call("_+_", (Variable(name), MakeList() as made)), Variable(other))
            ):
                if name == other == node.accumulator:
                    append = _append(name, closure(made))
                    return SPECIAL["_?_:_"](closure(condition), append, _variable(name, 0))
    return closure(node.step)


def _append(name: str, made: Closure) -> Closure:
    def append(scope: Scope) -> Any:
        so_far = scope[name]
        if type(so_far) is _Failure:
            raise so_far.error
        spend(scope, 2)
        so_far += made(scope)
        return so_far

    return append


def _kept(evaluate: Closure, scope: Scope) -> Any:
    try:
        return evaluate(scope)
    except CelError as error:
        return _Failure(error)
