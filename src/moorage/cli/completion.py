"""What may come next on a command line, for shells and for kubectl.

The protocol is that of Kubernetes' commands, which kubectl speaks with its plugins, too: the words after the
command's name, the last of which is being written and may be empty, are answered by a line for each candidate
(with a description after a tab), and a last line `:N`, where N says what the shell may add of its own.

Nothing of the scheduler is imported, and nothing is asked of a cluster but names, where only names fit.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import typer

_FILES: Final = 0
"""The shell adds names of files if there is no candidate."""
_NO_FILES: Final = 4
_SCRIPTS: Final = Path(__file__).with_name("completion_scripts")
_NAMED_IN_CLUSTER: Final = {
    "pod": ("get", "pods", "--output=name"),
    "node": ("get", "nodes", "--output=name"),
    "namespace": ("get", "namespaces", "--output=name"),
    "context": ("config", "get-contexts", "--output=name"),
}
"""What kubectl is asked for the values of a parameter, by the parameter's name."""
_PASSED_ON: Final = ("namespace", "kubeconfig", "context")
"""Options that say which cluster is meant, and where in it; kubectl has them, too."""
_REQUEST_TIMEOUT: Final = "--request-timeout=2s"
_KUBECTL_ENDS_WITHIN_SECONDS: Final = 5.0


class Answer(NamedTuple):
    """Candidates with their descriptions, which may be empty, and whether files may be added."""

    candidates: Sequence[tuple[str, str]]
    directive: int = _NO_FILES


class Option(NamedTuple):
    """An option: all its names, what it does, and whether a value follows."""

    names: Sequence[str]
    help: str
    takes_value: bool
    parameter: Any = None
    """What knows its values; None: nothing does."""


@dataclass
class Line:
    """The words before the last one: which command they name, and what they give it."""

    command: Any
    context: Any
    options: dict[str, Option] = field(default_factory=dict)
    arguments: int = 0
    """How many arguments are there already."""
    pending: Option | None = None
    """The option whose value comes next."""
    given: dict[str, str] = field(default_factory=dict)
    """Values of options, by the option's first long name without its hyphens."""


def script(shell: str) -> str:
    """What makes a shell ask for completions."""
    (path,) = _SCRIPTS.glob(f"moorage.{shell}")
    return path.read_text(encoding="utf-8")


def answer_kubectl() -> None:
    """The program that kubectl runs to complete `kubectl moorage`."""
    answer(sys.argv[1:])


def answer(words: Sequence[str]) -> None:
    """Print the candidates for the last of some words."""
    candidates, directive = complete(words or [""])
    for value, description in candidates:
        typer.echo(f"{value}\t{' '.join(description.split())}" if description else value)
    typer.echo(f":{directive}")


def complete(words: Sequence[str]) -> Answer:
    """The candidates for the last of some words."""
    from moorage.cli.main import app

    *before, current = words
    line = _read(typer.main.get_command(app), before)
    if line is None:
        return Answer(())
    if line.pending is not None:
        return _values(line, line.pending.parameter, current)
    if current.startswith("-"):
        name, equals, value = current.partition("=")
        if equals:
            return _after(f"{name}=", line, name, value)
        return _starting(current, _listed(line))
    if commands := getattr(line.command, "commands", None):
        return _starting(current, ((name, _summary(each)) for name, each in commands.items()))
    return _argument(line, current)


def _summary(command: Any) -> str:
    """The first paragraph of a command's help."""
    text: str = command.help or ""
    return text.partition("\n\n")[0]


def _read(root: Any, words: Sequence[str]) -> Line | None:
    """The line that words begin; None if there is no such command."""
    line = _begun(root, None, "moorage")
    for word in words:
        if line.pending is not None:
            _give(line, line.pending, word)
            line.pending = None
        elif word.startswith("-"):
            name, equals, value = word.partition("=")
            option = line.options.get(name)
            if option is not None and option.takes_value and not equals:
                line.pending = option
            elif option is not None:
                _give(line, option, value)
        elif commands := getattr(line.command, "commands", None):
            if word not in commands:
                return None
            line = _begun(_loaded(commands[word]), line.context, word)
        else:
            line.arguments += 1
    return line


def _begun(command: Any, parent: Any, name: str) -> Line:
    context = typer.Context(command, info_name=name, parent=parent, resilient_parsing=True)
    options = {name: each for each in _options(command, context) for name in each.names}
    return Line(command, context, options)


def _loaded(command: Any) -> Any:
    """A command with its options: those of `moorage` itself are imported when they are named."""
    return command.load() if hasattr(command, "load") else command


def _options(command: Any, context: Any) -> Iterator[Option]:
    for flag in getattr(command, "flags", ()):
        names = [f"--{flag.name}", *([f"-{flag.short}"] if flag.short else [])]
        yield Option(names, flag.help, not flag.kind.bare)
    for each in command.get_params(context):
        if each.param_type_name == "option" and not each.hidden:
            takes_value = not (each.is_flag or each.count)
            yield Option([*each.opts, *each.secondary_opts], each.help or "", takes_value, each)


def _give(line: Line, option: Option, value: str) -> None:
    names = [name[2:] for name in option.names if name.startswith("--")]
    line.given[names[0] if names else option.names[0]] = value


def _listed(line: Line) -> Iterator[tuple[str, str]]:
    """The long names of options; short ones where there is no other."""
    for option in {id(each): each for each in line.options.values()}.values():
        for name in [each for each in option.names if each.startswith("--")] or option.names:
            yield name, option.help


def _after(prefix: str, line: Line, name: str, value: str) -> Answer:
    """The candidates for the value of `--name=value`, as whole words."""
    option = line.options.get(name)
    if option is None or not option.takes_value:
        return Answer(())
    found = _values(line, option.parameter, value)
    return Answer([(prefix + each, text) for each, text in found.candidates], found.directive)


def _argument(line: Line, current: str) -> Answer:
    arguments = [each for each in line.command.get_params(line.context) if each.param_type_name == "argument"]
    if not arguments:
        return Answer(())
    at = min(line.arguments, len(arguments) - 1)
    if line.arguments > at and arguments[at].nargs != -1:
        return Answer(())
    return _values(line, arguments[at], current)


def _values(line: Line, parameter: Any, current: str) -> Answer:
    """The values of an option or argument; files, if nothing is known of them."""
    if parameter is None:
        return Answer((), _FILES)
    known = parameter.shell_complete(line.context, "")
    if choices := [(each.value, each.help or "") for each in known if each.type == "plain"]:
        return _starting(current, choices)
    command = _NAMED_IN_CLUSTER.get(parameter.name)
    # What is read from a file, or from a dump, is no cluster's.
    if command is None or "from" in line.given or _is_path(parameter, line.context):
        return Answer((), _FILES)
    return _starting(current, ((name, "") for name in _names_in_cluster(command, line.given)))


def _is_path(parameter: Any, context: Any) -> bool:
    """Whether the help says that a file is wanted."""
    shown = (parameter.get_help_record(context) or ("", ""))[0].upper()
    return "PATH" in shown or "FILE" in shown


def _names_in_cluster(command: Sequence[str], given: dict[str, str]) -> list[str]:
    """Names that kubectl prints; none if it cannot."""
    chosen = [f"--{name}={given[name]}" for name in _PASSED_ON if given.get(name)]
    try:
        done = subprocess.run(
            ["kubectl", *command, _REQUEST_TIMEOUT, *chosen],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_KUBECTL_ENDS_WITHIN_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [line.rpartition("/")[2] for line in done.stdout.splitlines()]


def _starting(current: str, candidates: Iterable[tuple[str, str]]) -> Answer:
    return Answer([(value, text) for value, text in candidates if value.startswith(current)])
