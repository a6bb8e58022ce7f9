"""A decision of one plugin alone, for tests of what is special about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from moorage.api.base import Object
from moorage.api.pod import Pod
from moorage.engine.decision import Decision
from moorage.framework.interface.cycle_state import CycleState
from moorage.sim.cluster import SimulatedCluster
from moorage.testing.stage import recipe_for


def decide_alone(
    plugin: Callable[..., Any],
    pod: Pod,
    objects: Iterable[Object],
    *,
    args: Any = None,
    name: str | None = None,
) -> Decision:
    """Where a pod would go if this plugin alone decided, with every score and every refusal.

    objects: nodes, pods that are on them, and whatever else the plugin looks at.
    """
    recipe = recipe_for(plugin, name, args)
    cluster = SimulatedCluster(objects, recipe.config_alone, recipe.registry)
    return cluster.decide(pod, CycleState())
