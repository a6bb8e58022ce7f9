"""Commands with their arguments and options, as the command line parses them, and exit statuses."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import Enum
from itertools import pairwise
from typing import Any, Final, Literal, get_args, get_origin

from moorage.cli.flags import Flag
from moorage.cli.kube_flags import KubeFlags
from moorage.cli.main import COMMANDS, DeferredCommand
from moorage.cli.run_flags import FLAGS
from tools.interface.fact import Fact
from tools.interface.source import Module, modules

_CLI: Final = ("moorage.cli.", "moorage_cluster.cli.")
_COMMANDS_OF: Final = {"main": "", "kube_flags": " run", "inspection": " attempts"}
"""The commands of modules that are not named like theirs."""
_STATUSES: Final = ("Exit status", "Exit statuses")


def commands() -> Iterator[tuple[str, Any]]:
    """Every command that can be called, with its full name, as Click knows it."""
    for name, (target, summary) in sorted(COMMANDS.items()):
        yield from _below(f"moorage {name}", DeferredCommand(name, target, summary).load())


def _below(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield name, command
    for each, one in sorted(getattr(command, "commands", {}).items()):
        yield from _below(f"{name} {each}", one)


def command_facts() -> Iterator[Fact]:
    """Commands, arguments and options."""
    for name, command in commands():
        yield Fact(name, "group of commands" if hasattr(command, "commands") else "command")
        if isinstance(command, KubeFlags):
            yield from (_flag(name, each) for each in FLAGS)
        else:
            yield from (_parameter(name, each) for each in command.params)


def _flag(command: str, flag: Flag) -> Fact:
    short = f"-{flag.short}, " if flag.short else ""
    default = f", default {flag.default}" if flag.default else ""
    return Fact(f"{command} --{flag.name}", f"{short}{flag.kind.name}{default}")


def _parameter(command: str, parameter: Any) -> Fact:
    kind = _kind(parameter.type_descriptor.annotation)
    needed = ", required" if parameter.required else _default(parameter.default)
    if parameter.param_type_name == "argument":
        return Fact(f"{command} {(parameter.metavar or parameter.name).upper()}", f"argument, {kind}{needed}")
    long = next((each for each in parameter.opts if each.startswith("--")), parameter.opts[0])
    others = [each for each in (*parameter.opts, *parameter.secondary_opts) if each != long]
    return Fact(f"{command} {long}", "".join(f"{each}, " for each in others) + kind + needed)


def _kind(annotation: Any) -> str:
    """A type; what can be chosen, where it is a choice."""
    if get_origin(annotation) is list:
        return f"{_kind(*get_args(annotation))}, repeated"
    if get_origin(annotation) is Literal:
        return "|".join(get_args(annotation))
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return "|".join(map(_shown, annotation))
    return str(annotation.__name__)


def _default(default: Any) -> str:
    if callable(default) or default in (None, "", (), [], False):
        return ""
    return f", default {_shown(default)}"


def _shown(value: Any) -> str:
    return str(value.value if isinstance(value, Enum) else value)


def exit_statuses() -> Iterator[Fact]:
    """Constants whose docstring says `Exit status: what it means`; several share one, separated by `;`."""
    for module in modules(*_STATUSES):
        if module.name.startswith(_CLI):
            body = module.tree.body
            for statement, text in pairwise(body):
                yield from _statuses(module, statement, text)


def _statuses(module: Module, statement: ast.stmt, docstring: ast.stmt) -> Iterator[Fact]:
    match docstring:
        case ast.Expr(value=ast.Constant(value=str(text))) if text.startswith(_STATUSES):
            meanings = text.partition(":")[2] or text.partition(" of ")[2]
            names = (each.id for each in ast.walk(statement) if isinstance(each, ast.Name))
            values = [module.global_value(name) for name in names if name.isupper()]
            for value, meaning in zip(values, meanings.strip(" .").split("; "), strict=False):
                yield Fact(f"{_command_of(module)} {value}", " ".join(meaning.split()))


def _command_of(module: Module) -> str:
    stem = module.name.rpartition(".")[2]
    return "moorage" + _COMMANDS_OF.get(stem, f" {stem.replace('_', ' ')}")
