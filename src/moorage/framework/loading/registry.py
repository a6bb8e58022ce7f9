"""Plugins by name, and how one is made.

A registry maps names to factories: usually the plugin's class. The factory is called with `args` (the
plugin's arguments from the configuration) and `handle`, each only if it takes a parameter of that name.
Plugins that do not come with moorage are found by `plugin_discovery`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from moorage.client.declared_kinds import object_type
from moorage.client.kinds import Kind
from moorage.client.permissions import Permission
from moorage.framework.interface.arguments import ArgumentsError, typed_arguments
from moorage.framework.interface.extension_points import (
    ASYNC_POINTS,
    METHODS,
    POINTS,
    ListingPlugin,
    Plugin,
    ReplacingPlugin,
    SubQueuesPlugin,
    WatchingPlugin,
    WritingPlugin,
    implements,
    methods_of,
)
from moorage.framework.interface.handle import Handle
from moorage.framework.runtime.error_location import described, location_in_plugin

Factory = Callable[..., Plugin]

_OWN_PACKAGE: Final = "moorage.plugins."
_KEPT_SIGNATURES: Final = 1024
"""Number of signatures that are kept: the same classes are made plugins again for every profile."""


class RegistryError(Exception):
    """A plugin that cannot be used; the message contains the remedy."""


class NamedPlugin(NamedTuple):
    """A plugin to be registered."""

    name: str
    factory: Factory


def with_plugin(name: str, factory: Factory) -> NamedPlugin:
    """A plugin for `scheduler_command`: its name, and its class or a function that makes it."""
    return NamedPlugin(name, factory)


class _Entry(NamedTuple):
    """How to load a factory, and its origin."""

    load: Callable[[], Factory]
    origin: str


class Registry(Mapping[str, Factory]):
    """Factories by plugin name; names are unique."""

    def __init__(self, factories: Mapping[str, Factory] | None = None) -> None:
        self._entries: dict[str, _Entry] = {}
        for name, factory in (factories or {}).items():
            self.register(name, factory, "moorage itself")

    def register(self, name: str, factory: Factory, origin: str = "") -> None:
        """Add a plugin; `origin` is its source, for messages."""
        self.register_later(name, lambda: factory, origin)

    def register_later(self, name: str, load: Callable[[], Factory], origin: str) -> None:
        """Add a plugin whose factory is loaded on first use."""
        if (taken := self._entries.get(name)) is not None:
            there = f" in {taken.origin}" if taken.origin else ""
            yours = f"the one in {origin}" if origin else "yours"
            raise RegistryError(f"a plugin named {name} exists already{there}; give {yours} another name")
        self._entries[name] = _Entry(load, origin)

    def replacing(self, name: str, factory: Factory) -> Registry:
        """A copy in which a plugin is made by another factory."""
        changed = Registry()
        changed._entries = {**self._entries, name: _Entry(lambda: factory, "")}
        return changed

    def __getitem__(self, name: str) -> Factory:
        return self._entries[name].load()

    def __contains__(self, name: object) -> bool:
        return name in self._entries  # Without loading it.

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def make(self, name: str, args: Any, handle: Handle) -> Plugin:
        """Make a plugin and validate it."""
        plugin = _call(name, self[name], args, handle)
        check_plugin(name, plugin)
        return plugin


def is_from_moorage(plugin: Plugin) -> bool:
    """Whether a plugin is one of those that come with moorage."""
    return type(plugin).__module__.startswith(_OWN_PACKAGE)


def _call(name: str, factory: Factory, args: Any, handle: Handle) -> Plugin:
    if not callable(factory):
        raise RegistryError(f"plugin {name}: register its class, or a function that makes it")
    try:
        wanted = _class_parameters(factory) if isinstance(factory, type) else _parameters(factory)
    except NameError as error:
        raise RegistryError(f"plugin {name}: the type of its args cannot be found: {error}") from None
    given: dict[str, Any] = {}
    if "handle" in wanted:
        given["handle"] = handle
    if "args" in wanted:
        try:
            given["args"] = typed_arguments(args, wanted["args"].annotation)
        except ArgumentsError as error:
            raise RegistryError(f"plugin {name}: {error}") from None
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    required = [p.name for p in wanted.values() if p.default is p.empty and p.kind in kinds]
    if missing := [parameter for parameter in required if parameter not in given]:
        raise RegistryError(
            f"plugin {name} wants {', '.join(missing)}; a plugin can be given args and handle only"
        )
    if "args" not in wanted and isinstance(args, Mapping) and args:
        raise RegistryError(f"plugin {name} takes no arguments; remove its pluginConfig")
    try:
        return factory(**given)
    except Exception as error:
        place = location_in_plugin(error)
        where = "" if place is None else f" ({place})"
        raise RegistryError(f"plugin {name} cannot be made: {described(error)}{where}") from error


def _parameters(factory: Factory) -> Mapping[str, inspect.Parameter]:
    """The parameters of a factory, by name; NameError if the type of one cannot be found."""
    return inspect.signature(factory, eval_str=True).parameters


_class_parameters = lru_cache(_KEPT_SIGNATURES)(_parameters)


def check_plugin(name: str, plugin: Plugin) -> None:
    """Whether an object can be a plugin: its name, its methods and their signatures. RegistryError if not."""
    actual = getattr(plugin, "name", None)
    if actual != name:
        raise RegistryError(f'plugin {name}: its class says name = {actual!r}; make it name = "{name}"')
    if not any(implements(plugin, point) for point in POINTS):
        raise RegistryError(f"plugin {name} has none of the extension points: {', '.join(POINTS)}")
    if isinstance(plugin, WatchingPlugin):
        _check_watched(name, "watched_kinds", plugin.watched_kinds)
    if isinstance(plugin, ListingPlugin):
        _check_watched(name, "listed_kinds", plugin.listed_kinds)
    if isinstance(plugin, WritingPlugin):
        _check_written(name, plugin.write_permissions)
    if isinstance(plugin, ReplacingPlugin):
        _check_replaces(name, plugin.replaces)
    _check_sub_queues(name, plugin)
    for method, parameters in METHODS.items():
        if hasattr(plugin, method):
            _check_method(name, method, getattr(plugin, method), parameters)


def _check_sub_queues(name: str, plugin: Plugin) -> None:
    methods = methods_of(SubQueuesPlugin)
    missing = [method for method in methods if not hasattr(plugin, method)]
    if missing and len(missing) < len(methods):
        raise RegistryError(f"plugin {name}: sub-queues need {' and '.join(missing)}, too")


def _check_watched(name: str, attribute: str, watched: Any) -> None:
    if not isinstance(watched, tuple) or not all(isinstance(kind, Kind) for kind in watched):
        raise RegistryError(
            f"plugin {name}: {attribute} must be a tuple of kinds, such as (kinds.NAMESPACE,)"
        )
    if unknown := [kind.name for kind in watched if object_type(kind) is None]:
        raise RegistryError(
            f"plugin {name}: {attribute}: no plugin can read {', '.join(unknown)}; "
            "moorage.declare_kind makes a kind that can be read"
        )


def _check_written(name: str, written: Any) -> None:
    if not isinstance(written, Mapping) or not all(
        isinstance(each, tuple) and all(isinstance(one, Permission) for one in each)
        for each in written.values()
    ):
        raise RegistryError(
            f"plugin {name}: write_permissions must map extension points to permissions, "
            'such as {"pre_bind": Permission.on(kinds.POD, "patch")}'
        )
    _check_points(name, "write_permissions", written)


def _check_replaces(name: str, replaces: Any) -> None:
    if not isinstance(replaces, Mapping) or not all(isinstance(each, tuple) for each in replaces.values()):
        raise RegistryError(
            f"plugin {name}: replaces must map extension points to names of plugins, "
            'such as {"post_filter": ("DefaultPreemption",)}'
        )
    _check_points(name, "replaces", replaces)


def _check_points(name: str, attribute: str, by_point: Mapping[Any, Any]) -> None:
    if unknown := [str(point) for point in by_point if point not in POINTS]:
        raise RegistryError(f"plugin {name}: {attribute}: no extension points: {', '.join(unknown)}")


def _check_method(name: str, method: str, bound: Any, parameters: tuple[str, ...]) -> None:
    if inspect.ismethod(bound) and inspect.isfunction(bound.__func__):
        fits = _function_takes(bound.__func__, ("self", *parameters))
    else:
        fits = _takes(bound, parameters)
    if not fits:
        written = ", ".join(("self", *parameters))
        raise RegistryError(f"plugin {name}: write def {method}({written})")
    if inspect.iscoroutinefunction(bound) and method not in ASYNC_POINTS:
        raise RegistryError(f"plugin {name}: {method} cannot be async; the scheduling cycle does not wait")


def _takes(method: Callable[..., Any], arguments: tuple[str, ...]) -> bool:
    """Whether something can be called with arguments."""
    try:
        inspect.signature(method).bind(*arguments)
    except (TypeError, ValueError):
        return False
    return True


_function_takes = lru_cache(_KEPT_SIGNATURES)(_takes)
