"""From a profile's plugin sets to one ordered list of plugins for each extension point.

A plugin enabled at `multiPoint` runs at every extension point it implements; settings of a single point take
precedence. The framework builds its loops from the result.
"""

from __future__ import annotations

from collections.abc import Callable

from moorage.api.decode import InputError
from moorage.api.pod import DEFAULT_SCHEDULER
from moorage.config.defaults import ALL_PLUGINS
from moorage.config.types import EXTENSION_POINTS, UNNAMED_POINTS, PluginRef, Plugins

MAX_SCORE = 100
_MAX_TOTAL_SCORE = (1 << 63) - 1

Implements = Callable[[str, str], bool]
"""Whether a plugin (by name) implements an extension point; KeyError if there is no such plugin."""

WEIGHTED_POINTS = {"score": "score", "placement_score": "placement score"}
"""The extension points where plugins have weights, and what error messages call them."""


class ExpansionError(InputError):
    """Invalid plugin sets; the message is kube-scheduler's."""

    def __init__(self, reason: str) -> None:
        super().__init__("", reason)


def expand(
    plugins: Plugins, implements: Implements, scheduler_name: str = DEFAULT_SCHEDULER
) -> dict[str, tuple[PluginRef, ...]]:
    """The plugins of every extension point, in the order in which they run.

    `plugins` are already merged with the default ones. Plugins that `multiPoint` enables and the point itself
    configures again come first, in the point's order; then the others of `multiPoint`; then the others of the
    point. Plugins at scoring points have their final weight.
    """
    lists = {point: _expand_point(point, plugins, implements) for point in EXTENSION_POINTS}
    sorters = len(lists["queue_sort"])
    if sorters != 1:
        raise ExpansionError(
            f'only one queue sort plugin required for profile with scheduler name "{scheduler_name}", '
            f"but got {sorters}"
        )
    if not lists["bind"]:
        raise ExpansionError(
            f'at least one bind plugin is needed for profile with scheduler name "{scheduler_name}"'
        )
    if len(lists["placement_generate"]) > 1:
        raise ExpansionError(
            "at most one placement generate plugin is allowed for profile with scheduler name "
            f'"{scheduler_name}"'
        )
    expanded = {point: _unweighted(names) for point, names in lists.items()}
    for point, called in WEIGHTED_POINTS.items():
        weights = _weights(point, called, plugins, implements)
        expanded[point] = tuple(PluginRef(name=name, weight=weights[name]) for name in lists[point])
    for point in UNNAMED_POINTS:
        expanded[point] = _unweighted(_expand_point(point, plugins, implements))
    return expanded


def _unweighted(names: list[str]) -> tuple[PluginRef, ...]:
    return tuple(PluginRef(name=name) for name in names)


def _expand_point(point: str, plugins: Plugins, implements: Implements) -> list[str]:
    own = plugins.at(point)
    disabled = own.disabled_names
    # The point's own plugins are checked first, independent of multiPoint.
    specific: dict[str, None] = {}
    for ref in own.enabled:
        if not _implements(implements, ref.name, point):
            raise ExpansionError(f'plugin "{ref.name}" does not extend {_interface(point)} plugin')
        if ref.name in specific:
            raise _registered_twice(ref.name, point)
        specific[ref.name] = None
    if ALL_PLUGINS in disabled:
        return list(specific)
    overridden = set()
    general: dict[str, None] = {}
    for ref in plugins.multi_point.enabled:
        if not _implements(implements, ref.name, point) or ref.name in disabled:
            continue
        if ref.name in specific:
            overridden.add(ref.name)
        elif ref.name in general:
            raise _registered_twice(ref.name, point)
        else:
            general[ref.name] = None
    first = [name for name in specific if name in overridden]
    last = [name for name in specific if name not in overridden]
    return [*first, *general, *last]


def _implements(implements: Implements, name: str, point: str) -> bool:
    try:
        return implements(name, point)
    except KeyError:
        raise ExpansionError(f'{_interface(point)} "{name}" does not exist') from None


def _weights(point: str, called: str, plugins: Plugins, implements: Implements) -> dict[str, int]:
    """The weight of every scoring plugin: its own point's before multiPoint's, and at least one."""
    weights: dict[str, int] = {}
    total = 0
    for ref in (*plugins.at(point).enabled, *plugins.multi_point.enabled):
        if ref.name in weights or not _implements(implements, ref.name, point):
            continue
        weight = ref.weight or 1
        if weight * MAX_SCORE > _MAX_TOTAL_SCORE - total:
            raise ExpansionError(f"{called} plugins: total score of Score plugins could overflow")
        weights[ref.name] = weight
        total += weight * MAX_SCORE
    return weights


def _registered_twice(name: str, point: str) -> ExpansionError:
    return ExpansionError(f'plugin "{name}" already registered as "{_interface(point)}"')


def _interface(point: str) -> str:
    """kube-scheduler's name of the interface of a point, such as PreFilterPlugin."""
    return point.title().replace("_", "") + "Plugin"
