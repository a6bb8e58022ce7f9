"""What happens to the nodes of a simulated cluster, from a file.

A file is a YAML list of events, each with a time since the start and one action:

    - {at: 1h, cordon: node-1}
    - {at: 2h, drain: node-3}
    - {at: 3h, fail: zone-0}          # a node, or all nodes of a zone
    - {at: 4h, recover: zone-0}       # what has failed, was drained or cordoned
    - {at: 5h, add: "name=large,count=2,cpu=32,memory=128Gi"}
    - {at: 6h, remove: large-1}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from moorage.api.decode import InputError
from moorage.api.files import load_documents, read_text
from moorage.config.duration import parse_duration
from moorage.simulation.shapes import parse_shape

ACTIONS: Final = ("cordon", "drain", "fail", "recover", "add", "remove")


class ScriptEvent(NamedTuple):
    """An event of a script."""

    at_seconds: float
    action: str
    target: str
    """The name of a node or a zone; for `add`, a shape."""
    where: str
    """The place in the file, for errors."""


def read_script(path: Path) -> list[ScriptEvent]:
    """The events of a file, in the order in which they happen; or InputError."""
    documents = load_documents(read_text(path), str(path))
    return script_of([each for document in documents for each in _entries(document, path)], str(path))


def script_of(entries: Iterable[Any], where: str) -> list[ScriptEvent]:
    """Events such as `{at: 2h, drain: node-3}`, in the order in which they happen; or InputError.

    where: what they are from, for errors.
    """
    events = [_event(entry, f"{where}: event {number}") for number, entry in enumerate(entries, 1)]
    return sorted(events, key=lambda each: each.at_seconds)


def _entries(document: Any, path: Path) -> list[Any]:
    if not isinstance(document, list):
        raise InputError(str(path), "expected a list of events such as {at: 2h, drain: node-3}")
    return document


def _event(entry: Any, where: str) -> ScriptEvent:
    if not isinstance(entry, Mapping) or "at" not in entry:
        raise InputError(where, "expected an event such as {at: 2h, drain: node-3}")
    actions = [each for each in entry if each != "at"]
    if len(actions) != 1 or actions[0] not in ACTIONS:
        raise InputError(
            where,
            f"expected one action of {', '.join(ACTIONS)}, not {', '.join(map(str, actions)) or 'none'}",
        )
    action, target = actions[0], entry[actions[0]]
    if not isinstance(target, str) or not target:
        raise InputError(where, f"{action}: expected a name, not {target!r}")
    if action == "add":
        parse_shape(target)
    try:
        at_seconds = float(parse_duration(str(entry["at"])))
    except ValueError as error:
        raise InputError(where, f"at: {error}") from None
    if at_seconds < 0:
        raise InputError(where, f"at: {entry['at']} is negative")
    return ScriptEvent(at_seconds, action, target, where)
