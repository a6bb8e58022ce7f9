"""A plugin in a cluster, ready to be called: instantiated as by a profile, with as few others as possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from random import Random
from typing import Any, Final

import msgspec

from moorage.api.base import Object
from moorage.clock import VirtualClock
from moorage.cluster.cache import Cache
from moorage.config.load import parse_profiles
from moorage.config.types import SchedulerConfiguration
from moorage.framework.interface.extension_points import Plugin, implements
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.nodes import Nodes
from moorage.framework.loading.registry import Factory, Registry, RegistryError
from moorage.framework.runtime.framework import Framework
from moorage.framework.runtime.plugin_call import PluginCall
from moorage.plugins import default_registry
from moorage.sim.cache_effects import CacheEffects

_REFUSES_LARGE_PODS: Final = "NodeResourcesFit"


class Recipe:
    """How to instantiate the plugin, any number of times, each for its own cluster."""

    def __init__(self, name: str, factory: Factory, args: Any = None) -> None:
        self.name = name
        self.factory = factory
        self.args = msgspec.to_builtins(args) if isinstance(args, msgspec.Struct) else args

    def stage(self, objects: Sequence[Object]) -> Stage:
        """A new plugin in a new cluster; RegistryError or ConfigError if it cannot be instantiated."""
        return Stage(self, objects)

    @cached_property
    def registry(self) -> Registry:
        """All in-tree plugins and this one, which may be one of them."""
        registry = default_registry()
        if registry.get(self.name) is not self.factory:
            registry.register(self.name, self.factory)
        return registry

    @cached_property
    def config_alone(self) -> SchedulerConfiguration:
        """A configuration in which no other plugin filters or scores."""
        return self._config(())

    @cached_property
    def config(self) -> SchedulerConfiguration:
        """A configuration in which some pods are unschedulable, so that post-filters are called."""
        return self._config((_REFUSES_LARGE_PODS,))

    def _config(self, others: Sequence[str]) -> SchedulerConfiguration:
        needed = (
            ("DefaultBinder",)
            if implements(self.factory, "queue_sort")
            else ("PrioritySort", "DefaultBinder")
        )
        names = dict.fromkeys((*needed, *others, self.name))
        plugins = {
            "disabled": [{"name": "*"}],
            "enabled": [{"name": name} for name in names],
        }
        args = [] if self.args is None else [{"name": self.name, "args": self.args}]
        return parse_profiles([{"plugins": {"multiPoint": plugins}, "pluginConfig": args}])


class Stage:
    """One plugin, one cluster."""

    def __init__(self, recipe: Recipe, objects: Sequence[Object]) -> None:
        self.recipe = recipe
        self.objects = objects
        self.cache = Cache(objects)
        handle = Handle(
            objects=self.cache.objects,
            effects=CacheEffects(self.cache),
            clock=VirtualClock(),
            random=Random(0),
            nominations=self.cache.nominations,
            snapshot=self.cache.snapshot,
            follow_pods=self.cache.follow_pods,
            pods_on=self.cache.pods_on,
        )
        (profile,) = recipe.config.profiles
        self.framework = Framework(profile, recipe.registry, handle)
        self.plugin: Plugin = self.framework.plugins[recipe.name]

    @property
    def nodes(self) -> Nodes:
        """All nodes in their current state."""
        return Nodes(self.cache.snapshot())

    def has(self, method: str) -> bool:
        """Whether the plugin has a method."""
        return callable(getattr(self.plugin, method, None))

    def step(self, point: str) -> PluginCall | None:
        """The plugin's call at an extension point for all nodes; None if it has none."""
        steps = self.framework.at(point)
        return next((step for step in steps if step.plugin == self.recipe.name), None)

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the plugin; an exception becomes the cause of a PluginError."""
        return PluginCall(self.recipe.name, method, getattr(self.plugin, method))(*arguments)


def recipe_for(factory: Callable[..., Any], name: str | None, args: Any) -> Recipe:
    """The recipe of a plugin, given by its class or a function; RegistryError if it has no name."""
    known = name or getattr(factory, "name", None)
    if not isinstance(known, str) or not known:
        called = getattr(factory, "__name__", repr(factory))
        raise RegistryError(f'plugin {called} has no name; give its class one: name = "{called}"')
    return Recipe(known, factory, args)
