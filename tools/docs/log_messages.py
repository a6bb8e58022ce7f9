"""Every line of the log: its message, level and keys, as the calls of loggers in the source have them."""

from __future__ import annotations

import ast
import logging
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Final, NamedTuple

from moorage.klog import verbosity_of
from tools.docs.markdown import code, table
from tools.interface.source import UNKNOWN, Module, Place, places, texts

_LEVELLED: Final = ("info", "infof")
_ALWAYS: Final = ("warning", "error", "exception")
_STANDARD: Final[Mapping[str, int]] = MappingProxyType({"debug": logging.DEBUG, "info": logging.INFO})
"""Methods of the standard library's loggers, whose levels stand for verbosities."""
_SET_AT_RUN_TIME: Final = "set at run time"


class LogMessage(NamedTuple):
    """A message that the source can write."""

    module: str
    level: str
    text: str
    keys: tuple[str, ...]


def page() -> str:
    """The page."""
    found = [each for each in messages(places("Logger(")) if each.module.startswith("moorage.")]
    parts = [
        "# Log messages",
        "Every message of the scheduler, by the `-v` from which it is written, with its keys. "
        "`--vmodule` takes the last parts of the modules' names. `…` is known at run time only. "
        "Errors and warnings are written at every `-v`, errors with the key `err`.",
    ]
    for title, kinds in (("Errors", ("error", "exception")), ("Warnings", ("warning",))):
        parts += [f"## {title}", _table(each for each in found if each.level in kinds)]
    for level in sorted({each.level for each in found} - set(_ALWAYS), key=_verbosity):
        title = f"-v={level}" if level.isdecimal() else f"Level {level}"
        parts += [f"## {title}", _table(each for each in found if each.level == level)]
    return "\n\n".join(parts) + "\n"


def _verbosity(level: str) -> tuple[int, str]:
    return (int(level), "") if level.isdecimal() else (1000, level)


def _table(found: Iterable[LogMessage]) -> str:
    rows = sorted({(each.text, ", ".join(map(code, each.keys)), each.module) for each in found}, key=_lower)
    return table(
        ["message", "keys", "module"], [(code(text), keys, code(module)) for text, keys, module in rows]
    )


def _lower(row: tuple[str, str, str]) -> tuple[str, str, str]:
    return row[0].lower(), row[1], row[2]


def messages(among: Iterable[Place]) -> Iterator[LogMessage]:
    """The messages of calls of loggers."""
    for place in among:
        match place.node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) as call:
                if (is_klog := _loggers(place.module).get(name)) is not None:
                    yield from _messages(place, call, method, is_klog)


@cache
def _loggers(module: Module) -> dict[str, bool]:
    """The names of a module's loggers, each with whether it is one of `klog`."""
    found = {}
    for node in module.tree.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=made))
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.Call(func=made))
            ) if ast.unparse(made) in ("Logger", "klog.Logger", "logging.getLogger"):
                found[name] = ast.unparse(made) != "logging.getLogger"
    return found


def _messages(place: Place, call: ast.Call, method: str, is_klog: bool) -> Iterator[LogMessage]:
    """The messages that a call can write."""
    if method not in (*_LEVELLED, *_ALWAYS) and (is_klog or method not in _STANDARD):
        return
    levels, position = [method], 0
    if is_klog and method in _LEVELLED:
        levels, position = _levels(call.args[0]), 1
    elif is_klog and method in ("error", "exception"):
        position = 1
    elif not is_klog and method in _STANDARD:
        levels = [str(verbosity_of(_STANDARD[method]))]
    keys = tuple(each.arg for each in call.keywords if each.arg not in (None, "logger", "exc_info"))
    for text in texts(place, call.args[position]) or [UNKNOWN]:
        for level in levels:
            yield LogMessage(place.module.name, level, text, tuple(key for key in keys if key is not None))


def _levels(node: ast.expr) -> list[str]:
    """The verbosities that an expression can be."""
    match node:
        case ast.Constant(value=int(level)):
            return [str(level)]
        case ast.IfExp(body=body, orelse=other):
            return [*_levels(body), *_levels(other)]
    return [_SET_AT_RUN_TIME]
