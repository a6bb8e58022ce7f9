"""Plugins by name, and how one is made.

A registry maps names to factories: usually the plugin's class. The factory is called with `args` (the
plugin's arguments from the configuration) and `handle`, each only if it takes a parameter of that name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from moorage.api.decode import InputError, convert
from moorage.framework.handle import Handle
from moorage.framework.points import POINTS, Plugin, implements

Factory = Callable[..., Plugin]

_PARAMETERS = {
    "pre_enqueue": 1,
    "queue_sort": 1,
    "pre_filter": 3,
    "add_pod": 4,
    "remove_pod": 4,
    "filter": 3,
    "filter_node": 3,
    "post_filter": 4,
    "pre_score": 3,
    "score": 3,
    "score_node": 3,
    "normalize_score": 4,
    "reserve": 3,
    "unreserve": 3,
    "permit": 3,
    "pre_bind": 3,
    "bind": 3,
    "post_bind": 3,
}
"""How many arguments each method is called with."""


class RegistryError(Exception):
    """A plugin that cannot be used; the message says what to do."""


class Registry(Mapping[str, Factory]):
    """Factories by plugin name; a name can be taken only once."""

    def __init__(self, factories: Mapping[str, Factory] | None = None) -> None:
        self._factories: dict[str, Factory] = dict(factories or {})

    def register(self, name: str, factory: Factory) -> None:
        """Add a plugin."""
        if name in self._factories:
            raise RegistryError(f"a plugin named {name} exists already; give yours another name")
        self._factories[name] = factory

    def __getitem__(self, name: str) -> Factory:
        return self._factories[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._factories)

    def __len__(self) -> int:
        return len(self._factories)

    def make(self, name: str, args: Any, handle: Handle) -> Plugin:
        """A plugin, checked."""
        plugin = _call(name, self._factories[name], args, handle)
        check_plugin(name, plugin)
        return plugin


def _call(name: str, factory: Factory, args: Any, handle: Handle) -> Plugin:
    try:
        wanted = inspect.signature(factory, eval_str=True).parameters
    except NameError as error:
        raise RegistryError(f"plugin {name}: the type of its args cannot be found: {error}") from None
    given: dict[str, Any] = {}
    if "handle" in wanted:
        given["handle"] = handle
    if "args" in wanted:
        given["args"] = _typed(name, args, wanted["args"].annotation)
    elif isinstance(args, Mapping) and args:
        raise RegistryError(f"plugin {name} takes no arguments; remove its pluginConfig")
    required = [
        p.name
        for p in wanted.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    ]
    if missing := [parameter for parameter in required if parameter not in given]:
        raise RegistryError(
            f"plugin {name} wants {', '.join(missing)}; a plugin can be given args and handle only"
        )
    return factory(**given)


def _typed(name: str, args: Any, annotation: Any) -> Any:
    if not (isinstance(annotation, type) and issubclass(annotation, msgspec.Struct)):
        return args
    if isinstance(args, annotation):
        return args
    try:
        return convert({} if args is None else args, annotation, f"args of plugin {name}")
    except InputError as error:
        raise RegistryError(str(error)) from None


def check_plugin(name: str, plugin: Plugin) -> None:
    """Whether an object can be a plugin: its name, its methods and their signatures. RegistryError if not."""
    actual = getattr(plugin, "name", None)
    if actual != name:
        raise RegistryError(f'plugin {name}: its class says name = {actual!r}; make it name = "{name}"')
    if not any(implements(plugin, point) for point in POINTS):
        raise RegistryError(f"plugin {name} has none of the extension points: {', '.join(POINTS)}")
    for method, count in _PARAMETERS.items():
        bound = getattr(plugin, method, None)
        if bound is None:
            continue
        try:
            inspect.signature(bound).bind(*range(count))
        except TypeError:
            raise RegistryError(
                f"plugin {name}: {method} must take {count} arguments beside self (see moorage.framework)"
            ) from None
