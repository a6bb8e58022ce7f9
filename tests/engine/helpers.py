"""Frameworks of a few plugins, and plugins that do as they are told."""

from __future__ import annotations

import numpy as np

from moorage.config.defaults import ALL_PLUGINS, default_profile
from moorage.config.types import PluginRef, Plugins, PluginSet, Profile
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.filter_result import FilterResult
from moorage.framework.interface.nodes import Nodes
from moorage.framework.runtime.framework import Framework
from moorage.plugins import default_registry


def framework_of(*plugins: object, percentage: int | None = None) -> Framework:
    registry = default_registry()
    names = ["PrioritySort", "DefaultBinder"]
    for plugin in plugins:
        registry.register(plugin.name, lambda plugin=plugin: plugin)  # type: ignore[attr-defined]
        names.append(plugin.name)  # type: ignore[attr-defined]
    chosen = PluginSet(
        enabled=tuple(PluginRef(name=name) for name in names), disabled=(PluginRef(name=ALL_PLUGINS),)
    )
    profile = Profile(plugins=Plugins(multi_point=chosen), percentage_of_nodes_to_score=percentage)
    return Framework(default_profile(profile), registry)


class Only:
    name = "Only"

    def __init__(self, *wanted: str) -> None:
        self.wanted = wanted
        self.asked: list[list[str]] = []

    def filter(self, cycle: CycleState, pod: object, nodes: Nodes) -> FilterResult:
        self.asked.append(nodes.names)
        keep = np.array([name in self.wanted for name in nodes.names])
        return keep.view(type(nodes.unschedulable)).otherwise("not wanted")
