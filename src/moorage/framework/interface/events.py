"""The events that plugins register: those that may make the pods they rejected schedulable.

The vocabulary (`on`, `Resource`, `Action`) is the queue's; a plugin's `events` is made of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from moorage.framework.interface.extension_points import EventsPlugin, Plugin, implements
from moorage.framework.loading.registry import RegistryError
from moorage.framework.runtime.error_location import described, location_in_plugin
from moorage.queue.cluster_events import (
    EVERYTHING,
    Action,
    ClusterEvent,
    EventIndex,
    Hint,
    Interest,
    Resource,
    Subjects,
    on,
)

__all__ = [
    "EXTENDER",
    "Action",
    "ClusterEvent",
    "EventIndex",
    "Hint",
    "Interest",
    "Resource",
    "Subjects",
    "interests_of",
    "on",
]

EXTENDER = "Extender"
"""Name of all extenders together among the plugins that rejected a pod."""

_REFUSING_POINTS = ("pre_enqueue", "pre_filter", "filter", "reserve", "permit")
"""Extension points where a rejected pod waits for events; elsewhere it is an error, retried after backoff."""


def interests_of(
    plugins: Mapping[str, Plugin], *, extenders: bool = False
) -> dict[str, tuple[Interest, ...]]:
    """By plugin, the events that may help pods that it rejected; all events for one that registers none.

    extenders: whether extenders may reject nodes, too; they cannot register events.
    """
    interests = {
        name: _interests(name, plugin)
        for name, plugin in plugins.items()
        if any(implements(plugin, point) for point in _REFUSING_POINTS)
    }
    return {**interests, EXTENDER: EVERYTHING} if extenders else interests


def _interests(name: str, plugin: Plugin) -> tuple[Interest, ...]:
    if not isinstance(plugin, EventsPlugin):
        return EVERYTHING
    try:
        answer: Any = plugin.events()
        interests = tuple(answer) if isinstance(answer, Iterable) else (answer,)
    except Exception as error:
        place = location_in_plugin(error)
        where = "" if place is None else f" ({place})"
        raise RegistryError(f"plugin {name}: events failed: {described(error)}{where}") from error
    for each in interests:
        if not isinstance(each, Interest):
            raise RegistryError(
                f"plugin {name}: events returned {each!r}; "
                "return a tuple of on(...), such as on(Resource.NODE, Action.ADD)"
            )
    return interests
