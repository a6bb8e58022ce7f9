"""Reserve and unreserve: unreserve reverts reserve, and is idempotent, also without a reserve before it."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from typing import Any

from moorage.framework.interface.dependencies import DependsOn
from moorage.framework.interface.status import Code, PluginError
from moorage.testing.checks.purity import contents
from moorage.testing.placement import AssumedPod, place
from moorage.testing.plugin_answers import Answers, ask, dependencies_of, shown
from moorage.testing.trial import Check, Trial

_SCALARS = (str, bytes, int, float, bool, type(None))
_MAX_DEPTH = 6


def _not_given_back(trial: Trial) -> Iterator[str]:
    placed = place(trial)
    if placed is None or not placed.stage.has("reserve"):
        return
    before = _seen(placed)
    placed.call("reserve")
    placed.call("unreserve")
    if difference := _difference(before, _seen(placed)):
        yield f"after reserve and unreserve {difference}"


def _not_idempotent(trial: Trial) -> Iterator[str]:
    try:
        yield from _called_twice(trial)
        yield from _called_without_reserve(trial)
    except PluginError as error:
        if error.point == "unreserve":
            yield str(error)
        else:
            raise


def _called_twice(trial: Trial) -> Iterator[str]:
    placed = place(trial)
    if placed is None:
        return
    if placed.stage.has("reserve"):
        placed.call("reserve")
    placed.call("unreserve")
    once = _seen(placed)
    placed.call("unreserve")
    if difference := _difference(once, _seen(placed)):
        yield f"after a second unreserve {difference}"


def _called_without_reserve(trial: Trial) -> Iterator[str]:
    placed = place(trial)
    if placed is None:
        return
    before = _seen(placed)
    placed.call("unreserve")
    if difference := _difference(before, _seen(placed)):
        yield f"after unreserve without reserve {difference}"


def _acting(trial: Trial) -> Iterator[str]:
    depends_on = dependencies_of(trial.stage, trial.pod)
    if not isinstance(depends_on, DependsOn) or depends_on.runs_after_filter:
        return
    placed = place(trial)
    if placed is None or not placed.stage.has("reserve"):
        return
    before = _seen(placed)
    answer = placed.call("reserve")
    if answer is not None and answer.code is not Code.SUCCESS:
        yield f"depends_on says runs_after_filter=False for the pod, but reserve answered {shown(answer)}"
    elif difference := _difference(before, _seen(placed)):
        yield f"depends_on says runs_after_filter=False for the pod, but after reserve {difference}"


def _seen(placed: AssumedPod) -> dict[str, Any]:
    """The observable state of a plugin's reservations: objects, its attributes, its results."""
    return {
        "objects": contents(placed.stage.cache.objects),
        "books": {name: _plain(value) for name, value in _attributes(placed.stage.plugin).items()},
        "answers": ask(placed.stage, placed.pod),
    }


def _attributes(plugin: Any) -> Mapping[str, Any]:
    return dict(getattr(plugin, "__dict__", {}))


def _plain(value: Any, depth: int = 0) -> Any:
    """A copy of plain data; for anything else its type, because its contents are opaque."""
    if isinstance(value, _SCALARS):
        return value
    if depth < _MAX_DEPTH:
        if isinstance(value, Mapping):
            # A count of zero equals a missing entry, as in most bookkeeping.
            return {key: plain for key, each in value.items() if (plain := _plain(each, depth + 1))}
        if isinstance(value, list | tuple | deque):
            return [_plain(each, depth + 1) for each in value]
        if isinstance(value, set | frozenset):
            return Counter(repr(_plain(each, depth + 1)) for each in value)
    return type(value).__name__


def _difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    for name in sorted(before["books"].keys() | after["books"].keys()):
        was, is_now = before["books"].get(name), after["books"].get(name)
        if was != is_now:
            return f"its attribute {name} is not {was!r} but {is_now!r}"
    if before["objects"] != after["objects"]:
        kinds = [kind for kind, content in before["objects"].items() if content != after["objects"][kind]]
        return f"objects are not as before: {', '.join(kinds)}"
    first: Answers = before["answers"]
    difference = first.difference(after["answers"])
    return f"it answers otherwise: {difference}" if difference else ""


CHECKS = (
    Check(
        "unreserve-gives-back",
        "After reserve and unreserve all is as it was.",
        _not_given_back,
        ("unreserve",),
    ),
    Check(
        "unreserve-is-idempotent",
        "unreserve may be called twice, and where reserve was never called: it does not raise, and what is "
        "given back already is not given back again.",
        _not_idempotent,
        ("unreserve",),
    ),
    Check(
        "who-does-not-act-reserves-nothing",
        "Where depends_on says runs_after_filter=False, reserve has nothing to do: it is left out.",
        _acting,
        ("depends_on", "reserve"),
    ),
)
