"""Every line of the log: its message, level and keys, as the calls of loggers in the source have them."""

from __future__ import annotations

import ast
import logging
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

import moorage
from moorage.klog import verbosity_of
from tools.docs.markdown import code, table
from tools.docs.python_source import Module, modules, texts_of

_LEVELLED: Final = ("info", "infof")
_ALWAYS: Final = ("warning", "error", "exception")
_STANDARD: Final[Mapping[str, int]] = MappingProxyType({"debug": logging.DEBUG, "info": logging.INFO})
"""Methods of the standard library's loggers, whose levels stand for verbosities."""
_SET_AT_RUN_TIME: Final = "set at run time"


class LogMessage(NamedTuple):
    """A message that the source can write."""

    file: str
    level: str
    text: str
    keys: tuple[str, ...]


def page() -> str:
    """The page."""
    root = Path(moorage.__path__[0])
    found = list(messages(modules(root, "Logger("), root))
    parts = [
        "# Log messages",
        "Every message of the scheduler, by the `-v` from which it is written, with its keys. "
        "`--vmodule` takes the names of the files. What is in braces is inserted at run time. "
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
    rows = sorted({(each.text, ", ".join(map(code, each.keys)), each.file) for each in found}, key=_lower)
    return table(["message", "keys", "file"], [(code(text), keys, code(file)) for text, keys, file in rows])


def _lower(row: tuple[str, str, str]) -> tuple[str, str, str]:
    return row[0].lower(), row[1], row[2]


def messages(among: Iterable[Module], root: Path) -> Iterator[LogMessage]:
    """The messages of modules, in the order of lines."""
    for module in among:
        loggers = dict(_loggers(module))
        for call in module.calls:
            match call.func:
                case ast.Attribute(value=ast.Name(id=name), attr=method) if name in loggers:
                    yield from _messages(module, call, method, loggers[name], root)


def _loggers(module: Module) -> Iterator[tuple[str, bool]]:
    """The names of a module's loggers, each with whether it is one of `klog`."""
    for node in module.tree.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=made))
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.Call(func=made))
            ) if ast.unparse(made) in ("Logger", "klog.Logger", "logging.getLogger"):
                yield name, ast.unparse(made) != "logging.getLogger"


def _messages(module: Module, call: ast.Call, method: str, is_klog: bool, root: Path) -> Iterator[LogMessage]:
    """The messages that a call can write."""
    if method not in (*_LEVELLED, *_ALWAYS) and (is_klog or method not in _STANDARD):
        return
    levels, position = [method], 0
    if is_klog and method in _LEVELLED:
        levels, position = _levels(module, call.args[0]), 1
    elif is_klog and method in ("error", "exception"):
        position = 1
    elif not is_klog and method in _STANDARD:
        levels = [str(verbosity_of(_STANDARD[method]))]
    file = module.path.relative_to(root).as_posix()
    keys = tuple(each.arg for each in call.keywords if each.arg not in (None, "logger", "exc_info"))
    for text in texts_of(module, call.args[position]):
        for level in levels:
            yield LogMessage(file, level, text, tuple(key for key in keys if key is not None))


def _levels(module: Module, node: ast.expr) -> list[str]:
    """The verbosities that an expression can be."""
    match node:
        case ast.Constant(value=int(level)):
            return [str(level)]
        case ast.IfExp(body=body, orelse=other):
            return [*_levels(module, body), *_levels(module, other)]
    return [_SET_AT_RUN_TIME]
