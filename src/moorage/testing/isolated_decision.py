"""A decision of one plugin alone, for tests of its own behaviour."""

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
    """The decision for a pod if this plugin alone decided, with every score and every rejection.

    objects: nodes, the pods on them, and any other objects that the plugin reads.
    """
    recipe = recipe_for(plugin, name, args)
    cluster = SimulatedCluster(objects, recipe.config_alone, recipe.registry)
    return cluster.decide(pod, CycleState())
