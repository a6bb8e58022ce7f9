"""Device selectors: compiled once, then evaluated for devices."""

from __future__ import annotations

import re
from collections import OrderedDict
from functools import cached_property, lru_cache
from typing import Any, Final

from cel_expr_python import cel  # type: ignore[import-untyped]
from cel_expr_python.ext import ext_bindings, ext_optional  # type: ignore[import-untyped]

from moorage.api.devices import Device, DeviceAttribute
from moorage.cel.budget import Budget, CostLimitError, WorkBudget
from moorage.cel.estimate import max_cost
from moorage.cel.evaluation import closure
from moorage.cel.literals import check_literals
from moorage.cel.logic import BUDGET
from moorage.cel.reads import AttributesRead, attributes_read
from moorage.cel.semver import parse_semver
from moorage.cel.tree import Node, TreeError, read_tree
from moorage.cel.values import CelError, Domains, type_name

MAX_EXPRESSION_BYTES: Final = 10 * 1024
"""Maximum length of an expression, in bytes."""

MAX_TOKENS: Final = 1000
"""Maximum number of tokens in an expression: compiling them takes some 25 ms."""

TOKEN_WORK: Final = 100
"""The work of compiling a token."""

CACHED_TOKENS: Final = 64_000
"""Maximum size of the cache of compiled selectors, in tokens: some 1,500 ordinary selectors."""

_BASE_TOKENS: Final = 16
"""Fixed size of every expression in the cache, in addition to its own tokens."""

_BOOL, _INT, _DOUBLE, _STRING, _DYN = (
    cel.Type.BOOL,
    cel.Type.INT,
    cel.Type.DOUBLE,
    cel.Type.STRING,
    cel.Type.DYN,
)
_QUANTITY = cel.Type.AbstractType("kubernetes.Quantity")
_SEMVER = cel.Type.AbstractType("kubernetes.Semver")
_ANY = cel.Type("any")
_LIST = cel.Type.List(_DYN)
_STRINGS = cel.Type.List(_STRING)
_NUMBERS = [_INT, cel.Type.UINT, _DOUBLE, cel.Type.DURATION]
_ORDERED = [*_NUMBERS, _BOOL, cel.Type.TIMESTAMP, _STRING, cel.Type.BYTES]

_MEMBERS: dict[str, list[tuple[list[Any], Any]]] = {
    "asApproximateFloat": [([_QUANTITY], _DOUBLE)],
    "asInteger": [([_QUANTITY], _INT)],
    "isInteger": [([_QUANTITY], _BOOL)],
    "add": [([_QUANTITY, _QUANTITY], _QUANTITY), ([_QUANTITY, _INT], _QUANTITY)],
    "sub": [([_QUANTITY, _QUANTITY], _QUANTITY), ([_QUANTITY, _INT], _QUANTITY)],
    "isGreaterThan": [([_QUANTITY, _QUANTITY], _BOOL), ([_SEMVER, _SEMVER], _BOOL)],
    "isLessThan": [([_QUANTITY, _QUANTITY], _BOOL), ([_SEMVER, _SEMVER], _BOOL)],
    "compareTo": [([_QUANTITY, _QUANTITY], _INT), ([_SEMVER, _SEMVER], _INT)],
    "major": [([_SEMVER], _INT)],
    "minor": [([_SEMVER], _INT)],
    "patch": [([_SEMVER], _INT)],
    "isSorted": [([cel.Type.List(each)], _BOOL) for each in _ORDERED],
    "sum": [([cel.Type.List(each)], each) for each in _NUMBERS],
    "min": [([cel.Type.List(each)], each) for each in _ORDERED],
    "max": [([cel.Type.List(each)], each) for each in _ORDERED],
    "indexOf": [
        ([_LIST, _DYN], _INT),
        ([_STRING, _STRING], _INT),
        ([_STRING, _STRING, _INT], _INT),
    ],
    "lastIndexOf": [
        ([_LIST, _DYN], _INT),
        ([_STRING, _STRING], _INT),
        ([_STRING, _STRING, _INT], _INT),
    ],
    "slice": [([_LIST, _INT, _INT], _LIST)],
    "flatten": [([_LIST], _LIST), ([_LIST, _INT], _LIST)],
    "distinct": [([_LIST], _LIST)],
    "sort": [([cel.Type.List(each)], cel.Type.List(each)) for each in _ORDERED],
    "reverse": [([_LIST], _LIST)],
    "charAt": [([_STRING, _INT], _STRING)],
    "join": [([_STRINGS], _STRING), ([_STRINGS, _STRING], _STRING)],
    "lowerAscii": [([_STRING], _STRING)],
    "upperAscii": [([_STRING], _STRING)],
    "replace": [([_STRING] * 3, _STRING), ([*([_STRING] * 3), _INT], _STRING)],
    "split": [([_STRING, _STRING], _STRINGS), ([_STRING, _STRING, _INT], _STRINGS)],
    "substring": [([_STRING, _INT], _STRING), ([_STRING, _INT, _INT], _STRING)],
    "trim": [([_STRING], _STRING)],
    "format": [([_STRING, _LIST], _STRING)],
}
"""Kubernetes' member functions: the types of their arguments, the target first, and of the result."""

_GLOBALS: dict[str, list[tuple[list[Any], Any]]] = {
    "quantity": [([_STRING], _QUANTITY)],
    "isQuantity": [([_STRING], _BOOL)],
    "sign": [([_QUANTITY], _INT)],
    "semver": [([_STRING], _SEMVER), ([_STRING, _BOOL], _SEMVER)],
    "isSemver": [([_STRING], _BOOL), ([_STRING, _BOOL], _BOOL)],
    "sets.contains": [([_LIST, _LIST], _BOOL)],
    "sets.equivalent": [([_LIST, _LIST], _BOOL)],
    "sets.intersects": [([_LIST, _LIST], _BOOL)],
    "lists.range": [([_INT], cel.Type.List(_INT))],
    "strings.quote": [([_STRING], _STRING)],
}

_VARIABLES = {
    "device.driver": _STRING,
    "device.allowMultipleAllocations": _BOOL,
    "device.attributes": cel.Type.Map(_STRING, cel.Type.Map(_STRING, _ANY)),
    "device.capacity": cel.Type.Map(_STRING, cel.Type.Map(_STRING, _QUANTITY)),
}


def _declarations(functions: dict[str, list[tuple[list[Any], Any]]], *, member: bool) -> list[Any]:
    return [
        cel.FunctionDecl(
            name,
            [
                cel.Overload(f"{name}_{number}", result, parameters, is_member=member)
                for number, (parameters, result) in enumerate(overloads)
            ],
        )
        for name, overloads in functions.items()
    ]


@lru_cache(maxsize=1)
def _environment() -> Any:
    return cel.NewEnv(
        variables=_VARIABLES,
        extensions=[ext_bindings.ExtBindings(), ext_optional.ExtOptional()],
        functions=_declarations(_MEMBERS, member=True) + _declarations(_GLOBALS, member=False),
    )


class CompileError(ValueError):
    """An expression that cannot be a device selector."""


class CompiledSelector:
    """A compiled selector."""

    def __init__(self, expression: str, tree: Node) -> None:
        self.expression = expression
        self._tree = tree
        self._evaluate = closure(tree)

    @cached_property
    def reads(self) -> AttributesRead | None:
        """The attributes that it can read; None if that may be all of them."""
        return attributes_read(self._tree)

    @cached_property
    def max_cost(self) -> int:
        """The estimated maximum cost for any device."""
        return max_cost(self._tree)

    def matches(self, facts: DeviceFacts, work: WorkBudget) -> bool:
        """Whether a device is selected; CelError if the expression has no value for it.

        work: the work that is left; WorkLimitError if that is not enough.
        """
        try:
            result = self._evaluate({**facts.variables(), BUDGET: Budget(work)})
        except CostLimitError as error:
            raise CelError(str(error)) from None
        if type(result) is not bool:
            raise CelError(f"CEL result of type {type_name(result)} could not be converted to bool")
        return result


def count_tokens(expression: str) -> int:
    """Number of tokens in an expression, which the time to compile it is proportional to."""
    return sum(1 for _ in _TOKEN.finditer(expression))


_TOKEN: Final = re.compile(r'"[^"\\\n]*"|\w+|[^\w\s]')


def _compile(expression: str, tokens: int) -> CompiledSelector | CompileError:
    if len(expression.encode()) > MAX_EXPRESSION_BYTES:
        return CompileError(f"may not be more than {MAX_EXPRESSION_BYTES} bytes")
    if tokens > MAX_TOKENS:
        return CompileError(f"exceeds the limit of {MAX_TOKENS} words and signs")
    try:
        checked = _environment().compile(expression)
    except RuntimeError as error:
        _, _, issues = str(error).partition(": ")
        return CompileError(f"compilation failed: {_STATUS.sub('', issues)}")
    try:
        tree = read_tree(checked.serialize())
        if tree.type.kind not in ("bool", "any"):
            return CompileError(f"must evaluate to bool or the unknown type, not {tree.type}")
        check_literals(tree)
        return CompiledSelector(expression, tree)
    except TreeError as error:
        return CompileError(f"compilation failed: {error}")


_STATUS: Final = re.compile(r" \[(INVALID_ARGUMENT|CANCELLED)\]$")


class _Compiled:
    """A cache of the last compiled selectors, up to a total size."""

    def __init__(self, most_tokens: int) -> None:
        self._most_tokens = most_tokens
        self._held: OrderedDict[str, tuple[int, CompiledSelector | CompileError]] = OrderedDict()
        self.tokens = 0

    def get(self, expression: str, work: WorkBudget | None) -> CompiledSelector | CompileError:
        known = self._held.get(expression)
        if known is not None:
            self._held.move_to_end(expression)
            return known[1]
        tokens = min(count_tokens(expression), MAX_TOKENS + 1)
        compiled = _compile(expression, tokens)
        self._hold(expression, tokens, compiled)
        if work is not None and tokens <= MAX_TOKENS:
            work.spend(tokens * TOKEN_WORK)
        return compiled

    def _hold(self, expression: str, tokens: int, compiled: CompiledSelector | CompileError) -> None:
        size = _BASE_TOKENS + tokens
        self._held[expression] = (size, compiled)
        self.tokens += size
        while self.tokens > self._most_tokens and len(self._held) > 1:
            _, (dropped, _) = self._held.popitem(last=False)
            self.tokens -= dropped


_compiled: Final = _Compiled(CACHED_TOKENS)
"""One for the process: a selector depends on its text alone, and the API server and all profiles have it."""


def compile_selector(expression: str, work: WorkBudget | None = None) -> CompiledSelector:
    """A compiled selector, or CompileError; recently compiled selectors are cached.

    work: the work that compiling is charged to. It may overdraw that once: the next attempt finds it cached.
    """
    compiled = _compiled.get(expression, work)
    if isinstance(compiled, CompileError):
        raise CompileError(str(compiled))  # a new one: exceptions keep their traceback
    return compiled


class DeviceFacts:
    """The variables of a device in expressions, computed on first use."""

    __slots__ = ("_device", "_driver", "_variables")

    def __init__(self, driver: str, device: Device) -> None:
        self._driver = driver
        self._device = device
        self._variables: dict[str, Any] | None = None

    @property
    def size(self) -> int:
        """Number of the device's attributes and capacities."""
        return len(self._device.attributes) + len(self._device.capacity)

    def variables(self) -> dict[str, Any]:
        """The variables of an expression; CelError for a device that cannot be described."""
        if self._variables is None:
            attributes, capacity = Domains(), Domains()
            for name, attribute in self._device.attributes.items():
                domain, identifier = _split(name, self._driver)
                attributes.setdefault(domain, {})[identifier] = _attribute_value(name, attribute)
            for name, amount in self._device.capacity.items():
                domain, identifier = _split(name, self._driver)
                capacity.setdefault(domain, {})[identifier] = amount.value
            self._variables = {
                "device.driver": self._driver,
                "device.allowMultipleAllocations": self._device.allow_multiple_allocations,
                "device.attributes": attributes,
                "device.capacity": capacity,
            }
        return self._variables


def _split(name: str, driver: str) -> tuple[str, str]:
    """A qualified name's domain and identifier; names without a domain are the driver's."""
    domain, slash, identifier = name.partition("/")
    return (domain, identifier) if slash else (driver, name)


def _attribute_value(name: str, attribute: DeviceAttribute) -> Any:
    for value in (attribute.int_value, attribute.bool_value, attribute.string_value):
        if value is not None:
            return value
    if attribute.version_value is None:
        raise CelError(f"attribute {name}: unsupported attribute value")
    try:
        return parse_semver(attribute.version_value)
    except ValueError as error:
        raise CelError(f"attribute {name}: parse semantic version: {error}") from None
