"""The command line: every command with its arguments and options."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import typer

from moorage.cli.flags import Flag
from moorage.cli.kube_flags import KubeFlags
from moorage.cli.main import app
from moorage.cli.run_flags import GROUPS
from tools.docs.markdown import block, code, docstring, escaped, table
from tools.interface.command_line import commands
from tools.interface.fact import merged
from tools.interface.served import environment_facts

_WIDTH: Final = 100
"""Length of lines of usage, in characters."""


def page() -> str:
    """The page."""
    variables = ([code(name), what] for name, what in merged(environment_facts()))
    parts = [
        "# Command line",
        "Every command of `moorage` with its options, as `--help` shows them. `up`, `apiserver`, `chaos` and "
        "`soak` are part of the laptop cluster (`moorage[cluster]`). `kubectl moorage` is the same program.",
        *_command("moorage", typer.main.get_command(app)),
        *(part for name, command in commands() for part in _command(name, command)),
        "## Environment variables",
        table(["variable", "use"], variables),
    ]
    return "\n\n".join(parts) + "\n"


def _command(path: str, command: Any) -> Iterator[str]:
    """A command with its arguments and options."""
    yield f"{'#' * max(2, len(path.split()))} {path}"
    if isinstance(command, KubeFlags):
        yield from _kube_flags(command, path)
        return
    context = command.context_class(command, info_name=path, terminal_width=_WIDTH)
    yield block(command.get_usage(context).removeprefix("Usage: "), "text")
    yield docstring(command.help)
    for title, entries in _sections(command, context).items():
        yield f"**{title}**"
        yield "\n\n".join(entries)


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
