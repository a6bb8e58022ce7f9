"""Device selectors: compiled once, then asked about devices."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from cel_expr_python import cel  # type: ignore[import-untyped]
from cel_expr_python.ext import ext_bindings, ext_optional  # type: ignore[import-untyped]

from moorage.api.devices import Device, DeviceAttribute
from moorage.devices.cel.evaluation import STEPS, closure
from moorage.devices.cel.logic import Closure
from moorage.devices.cel.semver import parse_semver
from moorage.devices.cel.tree import TreeError, read_tree
from moorage.devices.cel.values import CelError, Domains, type_name

MAX_STEPS = 1_000_000
"""How many steps the loops of one evaluation may take."""

_BOOL, _INT, _DOUBLE, _STRING, _DYN = (
    cel.Type.BOOL,
    cel.Type.INT,
    cel.Type.DOUBLE,
    cel.Type.STRING,
    cel.Type.DYN,
)
_QUANTITY = cel.Type.AbstractType("kubernetes.Quantity")
_SEMVER = cel.Type.AbstractType("kubernetes.Semver")
_LIST = cel.Type.List(_DYN)
_STRINGS = cel.Type.List(_STRING)

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
    "isSorted": [([_LIST], _BOOL)],
    "sum": [([_LIST], _DYN)],
    "min": [([_LIST], _DYN)],
    "max": [([_LIST], _DYN)],
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
    "sort": [([_LIST], _LIST)],
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
"""Kubernetes' member functions: the types they take, the target first, and what they give back."""

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
    "device.attributes": cel.Type.Map(_STRING, cel.Type.Map(_STRING, _DYN)),
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


class Selector:
    """A compiled selector."""

    __slots__ = ("_evaluate", "expression")

    def __init__(self, expression: str, evaluate: Closure) -> None:
        self.expression = expression
        self._evaluate = evaluate

    def matches(self, facts: DeviceFacts) -> bool:
        """Whether a device is selected; CelError where the expression has no answer for it."""
        result = self._evaluate({**facts.variables(), STEPS: [MAX_STEPS]})
        if type(result) is not bool:
            raise CelError(f"CEL result of type {type_name(result)} could not be converted to bool")
        return result


@lru_cache(maxsize=4096)
def _compiled(expression: str) -> Selector | CompileError:
    try:
        checked = _environment().compile(expression)
    except RuntimeError as error:
        _, _, issues = str(error).partition(": ")
        return CompileError(f"compilation failed: {issues.removesuffix(' [INVALID_ARGUMENT]')}")
    kind = checked.return_type()
    if kind not in (_BOOL, _DYN):
        name = kind.name()
        shown = name.lower() if name.isupper() else name
        return CompileError(f"must evaluate to bool or the unknown type, not {shown}")
    try:
        return Selector(expression, closure(read_tree(checked.serialize())))
    except TreeError as error:
        return CompileError(f"compilation failed: {error}")


def compile_selector(expression: str) -> Selector:
    """A selector ready to ask, or CompileError; each expression is compiled once."""
    compiled = _compiled(expression)
    if isinstance(compiled, CompileError):
        raise CompileError(str(compiled))  # a new one: errors remember where they were raised
    return compiled


class DeviceFacts:
    """What expressions see of a device; worked out when first asked for."""

    __slots__ = ("_device", "_driver", "_variables")

    def __init__(self, driver: str, device: Device) -> None:
        self._driver = driver
        self._device = device
        self._variables: dict[str, Any] | None = None

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
