"""Functions over plain values, run by the CEL library itself.

String functions, conversions and regular expressions are the library's: each is compiled once with free
variables for its arguments, then called like a function. It does not support Kubernetes' own values.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from cel_expr_python import cel  # type: ignore[import-untyped]
from cel_expr_python.ext import ext_strings  # type: ignore[import-untyped]

from moorage.cel.values import CelError, TypeName, Uint, no_such_overload

_OPERATORS = {"_+_": "+", "_-_": "-", "_*_": "*", "_/_": "/", "_%_": "%"}
_COMPARISONS = {"_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">="}
_REASONS = {"divide by zero": "division by zero", "modulo by zero": "modulus by zero"}
"""Error messages of kube-scheduler's CEL, by the library's."""

_STRINGS_VERSION = 2  # of the library of string functions, as in Kubernetes


@lru_cache(maxsize=1)
def _environment() -> Any:
    names = {f"a{index}": cel.Type.DYN for index in range(4)}
    return cel.NewEnv(variables=names, extensions=[ext_strings.ExtStrings(_STRINGS_VERSION)])


@lru_cache(maxsize=1024)
def plain_function(name: str, count: int, member: bool) -> Callable[..., Any]:
    """A function of CEL's standard library or string library, over `count` arguments."""
    names = [f"a{index}" for index in range(count)]
    operator = _OPERATORS.get(name) or _COMPARISONS.get(name)
    if operator is not None:
        source = f"a0 {operator} a1"
    elif name == "-_":
        source = "-a0"
    elif member:
        source = f"a0.{name}({', '.join(names[1:])})"
    else:
        source = f"{name}({', '.join(names)})"
    program = _environment().compile(source)

    def call(*arguments: Any) -> Any:
        try:
            answer = program.eval(data=dict(zip(names, arguments, strict=True)))
        except (RuntimeError, TypeError, ValueError):
            raise no_such_overload() from None
        return _checked(answer)

    return call


def _checked(answer: Any) -> Any:
    kind = answer.type()
    if kind == cel.Type.ERROR:
        text = str(answer.plain_value())
        _, _, reason = text.partition(": ")
        if not reason or reason.startswith(("No matching overload", "Non-CEL value")):
            raise no_such_overload()
        raise CelError(_REASONS.get(reason, reason))
    value = answer.plain_value()
    if kind == cel.Type.UINT:
        return Uint(value)
    if kind == cel.Type.TYPE:
        return TypeName(value)
    return bytes(value) if isinstance(value, bytearray) else value
