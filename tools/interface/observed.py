"""What a running scheduler or cluster shows: metrics, log lines, event reasons."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from moorage.emulation.kubernetes_version import DEFAULT_VERSION
from moorage.services.metric_table import HEALTH_METRICS, OWN_METRICS, declared_metrics
from tools.interface.fact import Fact
from tools.interface.source import UNKNOWN, Place, assigned, called, places, texts

MAX_PINNED_VERBOSITY: Final = 2
"""The greatest `-v` whose lines may be depended on."""
_ALWAYS: Final = {"warning": (0, frozenset[str]()), "error": (1, {"err"}), "exception": (1, {"err"})}
"""Methods of a logger whose lines are always written: the message's place among arguments, and added keys."""
_REGISTERING: Final = ("counter", "gauge")
"""Methods of `Handle.metrics`, named like the types of metrics."""
_LOGGER: Final = "\nlog = Logger(__name__)\n"
"""What modules have that write structured lines."""
_EVENT_TYPES: Final = ("Normal", "Warning")


class LogLine(NamedTuple):
    """A line that is written to the log."""

    module: str
    verbosity: int
    message: str
    """`…` stands for what is known only when it is written."""
    keys: tuple[str, ...]
    """`…` stands for keys that are known only when it is written."""


def metric_facts() -> Iterator[Fact]:
    """Metrics with type and labels."""
    declared = (declared_metrics(DEFAULT_VERSION), OWN_METRICS, HEALTH_METRICS)
    for spec in (each for table in declared for each in table.values()):
        gate = f", gate {spec.gate}" if spec.gate else ""
        yield Fact(spec.name, f"{spec.kind}, {spec.stability}: {' '.join(spec.labels) or 'no labels'}{gate}")
    for place in places("metrics.counter(", "metrics.gauge("):
        yield from _registered(place)


def _registered(place: Place) -> Iterator[Fact]:
    """A metric that a plugin registers with `Handle.metrics`."""
    match place.node:
        case ast.Call(func=ast.Attribute(value=owner, attr=kind), args=[name, _, *rest]):
            if kind in _REGISTERING and ast.unparse(owner).split(".")[-1] == "metrics":
                for text in texts(place, name):
                    yield Fact(
                        text, f"{kind}, of a plugin: {' '.join(labels_of(place, rest)) or 'no labels'}"
                    )


def labels_of(place: Place, rest: list[ast.expr]) -> list[str]:
    """The labels of a metric, from the arguments after its help."""
    match rest:
        case [ast.Tuple(elts=labels)]:
            return [text for each in labels for text in texts(place, each)]
        case [ast.Name(id=name)]:
            return [text for each in assigned(place, name) for text in labels_of(place, [each])]
    return []


def log_lines() -> Iterator[LogLine]:
    """Structured lines of all verbosities that the source names; those of plugins' hints are not."""
    for place in places(_LOGGER):
        if _is_written(place.node):
            yield from _lines(place)


def log_facts() -> Iterator[Fact]:
    """The keys of each message."""
    for line in log_lines():
        if line.verbosity <= MAX_PINNED_VERBOSITY:
            yield Fact(f'"{line.message}"', f"-v={line.verbosity}: {' '.join(line.keys) or 'no keys'}")


def _is_written(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="log"))):
            return True
    return False


def _lines(place: Place) -> Iterator[LogLine]:
    call, method = place.node, called(place.node)
    assert isinstance(call, ast.Call)
    keys = {each.arg or UNKNOWN for each in call.keywords}
    if method == "info":
        match call.args:
            case [ast.Constant(value=int(verbosity)), message]:
                for text in texts(place, message):
                    yield LogLine(place.module.name, verbosity, text, tuple(sorted(keys)))
    elif method in _ALWAYS:
        at, own = _ALWAYS[method]
        for text in texts(place, call.args[at]):
            yield LogLine(place.module.name, 0, text, tuple(sorted(keys | own)))


def event_facts() -> Iterator[Fact]:
    """Reasons of events with their type, and which program writes them."""
    for place in places('"Normal"', '"Warning"'):
        program = "cluster" if place.module.name.startswith("moorage_cluster") else "scheduler"
        for type_, reason in _events(place):
            for text in texts(place, reason):
                if text.isalnum():
                    yield Fact(text, f"{type_}, of the {program}")


def _events(place: Place) -> Iterator[tuple[str, ast.expr]]:
    """The type and the reason of an event, where a call or a dictionary has both."""
    match place.node:
        case ast.Call(args=arguments, keywords=keywords):
            for type_, reason in pairwise(arguments):
                if given := _event_type(type_):
                    yield given, reason
            named = {each.arg: each.value for each in keywords}
            if called(place.node) == "record_event" and (given := _event_type(named.get("type"))):
                yield given, arguments[1]
        case ast.Dict(keys=keys, values=values):
            pairs = zip(keys, values, strict=True)
            entries = {key.value: value for key, value in pairs if isinstance(key, ast.Constant)}
            if "reason" in entries and (given := _event_type(entries.get("type"))):
                yield given, entries["reason"]


def _event_type(expression: ast.expr | None) -> str:
    """The type of events that an expression is; empty: none."""
    match expression:
        case ast.Constant(value=str(text)) if text in _EVENT_TYPES:
            return text
    return ""
