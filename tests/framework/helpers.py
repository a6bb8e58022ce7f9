"""Frameworks of a few plugins, and plugins with fixed answers."""

from __future__ import annotations

from typing import Any

from moorage.cluster.cache import Cache
from moorage.config.defaults import ALL_PLUGINS, default_profile
from moorage.config.types import PluginRef, Plugins, PluginSet, Profile
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.nodes import Nodes
from moorage.framework.runtime.framework import Framework
from moorage.plugins import default_registry
from tests.builders import make_node, make_pod

POD = make_pod("p", uid="p")


def framework_of(*plugins: Any, handle: Handle | None = None, **points: Any) -> Framework:
    registry = default_registry()
    names = ["PrioritySort"]
    for plugin in plugins:
        registry.register(plugin.name, lambda plugin=plugin: plugin)
        names.append(plugin.name)
    names += [] if any(hasattr(plugin, "bind") for plugin in plugins) else ["DefaultBinder"]
    chosen = PluginSet(
        enabled=tuple(PluginRef(name=name) for name in names), disabled=(PluginRef(name=ALL_PLUGINS),)
    )
    return Framework(
        default_profile(Profile(plugins=Plugins(multi_point=chosen, **points))), registry, handle
    )


class Log(list[str]):
    """What was called, in order."""


def recorder(name: str, log: Log, **answers: Any) -> Any:
    """A plugin that notes every call and gives fixed answers."""

    def method(point: str, answer: Any) -> Any:
        def call(self: Any, *arguments: Any) -> Any:
            log.append(f"{name}.{point}")
            if isinstance(answer, Exception):
                raise answer
            return answer

        # The checks look at how many arguments a method takes.
        counts = {"pre_enqueue": 1, "post_filter": 4, "normalize_score": 4}
        parameters = ", ".join("abcd"[: counts.get(point, 3)])
        scope: dict[str, Any] = {"call": call}
        exec(f"def {point}(self, {parameters}): return call(self, {parameters})", scope)
        return scope[point]

    return type(
        name, (), {"name": name, **{point: method(point, answer) for point, answer in answers.items()}}
    )()


def nodes(*names: str) -> Nodes:
    return Nodes(Cache(make_node(name) for name in names).snapshot())
