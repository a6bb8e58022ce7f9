"""The command line: every command with its arguments and options."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import typer

import moorage
from moorage.cli.flags import Flag
from moorage.cli.kube_flags import KubeFlags
from moorage.cli.main import DeferredCommand, app
from moorage.cli.run_flags import GROUPS
from tools.docs.markdown import block, code, docstring, escaped, table
from tools.docs.python_source import Module, modules, texts_of

_WIDTH: Final = 100
"""Length of lines of usage, in characters."""


def page() -> str:
    """The page."""
    root = Path(moorage.__path__[0])
    parts = [
        "# Command line",
        "Every command of `moorage` with its options, as `--help` shows them. `up`, `apiserver`, `chaos` and "
        "`soak` are part of the laptop cluster (`moorage[cluster]`). `kubectl moorage` is the same program.",
        *_command(typer.main.get_command(app), "moorage", None, 2),
        "## Environment variables",
        table(["variable", "read in"], _variables(modules(root, "environ"), root)),
    ]
    return "\n\n".join(parts) + "\n"


def _command(command: Any, path: str, parent: Any, level: int) -> Iterator[str]:
    """A command, and those in it."""
    if isinstance(command, DeferredCommand):
        command = command.load()
    context = command.context_class(command, info_name=path.rpartition(" ")[2], parent=parent)
    context.terminal_width = context.max_content_width = _WIDTH
    yield f"{'#' * level} {path}"
    if isinstance(command, KubeFlags):
        yield from _kube_flags(command, path)
        return
    yield block(command.get_usage(context).removeprefix("Usage: "), "text")
    yield docstring(command.help)
    for title, entries in _sections(command, context).items():
        yield f"**{title}**"
        yield "\n\n".join(entries)
    inner = getattr(command, "commands", {})
    for name, each in inner.items():
        yield from _command(each, f"{path} {name}", context, level + 1 if parent else level)


def _sections(command: Any, context: Any) -> dict[str, list[str]]:
    """Arguments, options, and options with a section of their own."""
    sections: dict[str, list[str]] = {"Arguments": [], "Options": []}
    for parameter in command.get_params(context):
        if (record := parameter.get_help_record(context)) is None:
            continue
        usual = "Arguments" if parameter.param_type_name == "argument" else "Options"
        name, text = record
        sections.setdefault(getattr(parameter, "rich_help_panel", None) or usual, []).append(
            _entry(name, text, parameter)
        )
    return {title: entries for title, entries in sections.items() if entries}


def _entry(name: str, text: str, parameter: Any) -> str:
    variables = parameter.envvar or ()
    names = (variables,) if isinstance(variables, str) else tuple(variables)
    note = f" Environment: {', '.join(map(code, names))}." if names else ""
    return f"{code(name)}\n: {escaped(text)}{note}"


def _kube_flags(command: KubeFlags, path: str) -> Iterator[str]:
    """The command that reads flags as Kubernetes' components do."""
    yield block(f"{path} [flags]", "text")
    yield docstring(command.help)
    for group in GROUPS:
        yield f"**{group.title}**"
        yield "\n\n".join(_flag(flag) for flag in group.flags)


def _flag(flag: Flag) -> str:
    short = f"-{flag.short}, " if flag.short else ""
    kind = "" if flag.kind.bare else f" {flag.kind.name}"
    default = f" Default: {code(flag.default)}." if flag.default not in ("", "false") else ""
    note = f" No effect: {escaped(flag.note)}." if flag.note else ""
    return f"{code(f'{short}--{flag.name}{kind}')}\n: {escaped(flag.help)}{default}{note}"


def _variables(among: list[Module], root: Path) -> list[list[str]]:
    """The environment variables that modules read, with the modules."""
    found: dict[str, set[str]] = {}
    for module in among:
        for name in _read_in(module):
            found.setdefault(name, set()).add(module.path.relative_to(root).as_posix())
    return [[code(name), ", ".join(map(code, sorted(files)))] for name, files in sorted(found.items())]


def _read_in(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        match node:
            case (
                ast.Call(func=ast.Attribute(value=owner, attr="get"), args=[name, *_])
                | ast.Subscript(value=owner, slice=name)
            ) if ast.unparse(owner) in ("environ", "os.environ"):
                yield from texts_of(module, name)
