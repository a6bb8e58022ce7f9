"""Options that several commands have: a command takes a group of them as one argument.

A group is a function whose parameters are the options, and which returns what they say together.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from functools import wraps
from inspect import Parameter, Signature, signature
from types import SimpleNamespace
from typing import Any, get_type_hints

Command = Callable[..., None]


def takes(**groups: Callable[..., Any]) -> Callable[[Command], Command]:
    """Give a command the options of groups in place of its parameters of their names."""

    def decorated(command: Command) -> Command:
        own = _parameters(command, left_out=groups)
        parts = {name: _parameters(group) for name, group in groups.items()}
        parameters = [
            each
            for name in signature(command).parameters
            for each in (parts[name].values() if name in parts else [own[name]])
        ]

        @wraps(command)
        def run(**given: Any) -> None:
            made = {
                name: groups[name](**{option: given.pop(option) for option in options})
                for name, options in parts.items()
            }
            command(**made, **given)

        run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        return run

    return decorated


def _parameters(function: Callable[..., Any], left_out: Container[str] = ()) -> dict[str, Parameter]:
    """Parameters by name, whose annotations are what they name; that of the result may be unknown here."""
    parameters = signature(function).parameters
    wanted = {name: each for name, each in parameters.items() if name not in left_out}
    annotated = SimpleNamespace(__annotations__={name: each.annotation for name, each in wanted.items()})
    types = get_type_hints(annotated, function.__globals__, include_extras=True)
    return {
        name: each.replace(annotation=types[name], kind=Parameter.KEYWORD_ONLY)
        for name, each in wanted.items()
    }
