"""One question: where would this pod go?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moorage.api.base import Object
from moorage.api.pod import Pod
from moorage.config.load import default_config
from moorage.config.types import SchedulerConfiguration
from moorage.engine.decision import Decision
from moorage.framework.cycle import CycleState
from moorage.framework.finding import enabled_everywhere
from moorage.plugins import default_registry
from moorage.sim.cluster import SimulatedCluster


def decide(
    pod: Pod,
    objects: Iterable[Object],
    plugins: Iterable[type[Any]] = (),
    config: SchedulerConfiguration | None = None,
    seed: int = 0,
) -> Decision:
    """Where a pod would go in a cluster of these objects, and why; nothing is changed.

    plugins: classes that have a say besides the default plugins, in every profile, at all points they have.
    seed: chooses among nodes that are equally good.
    """
    registry = default_registry()
    config = default_config() if config is None else config
    for plugin in plugins:
        registry.register(plugin.name, plugin)
        config = enabled_everywhere(config, plugin)
    return SimulatedCluster(objects, config, registry, seed).decide(pod, CycleState())
