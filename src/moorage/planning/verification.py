"""Whether the scheduler places all pods on some nodes: a simulation says so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace as changed
from typing import NamedTuple

from msgspec.structs import replace

from moorage.api.base import Object
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.config.types import PluginRef, PluginSet, SchedulerConfiguration
from moorage.planning.trial import pending_pods, successor
from moorage.simulation.records import Outcome
from moorage.simulation.run import run_simulation
from moorage.simulation.scenario import Scenario
from moorage.simulation.settings import Settings
from moorage.simulation.workload import DURATION, Arrival


class Verification(NamedTuple):
    """What became of the pods."""

    placed: dict[str, str]
    """The node of each pod, by namespace and name."""
    pending: dict[str, str]
    """What the scheduler says of the others."""


class Verifier:
    """Simulates the arrival of all pods at once in a cluster; they run without end, and none is preempted."""

    def __init__(self, cluster: Iterable[Object], pods: Sequence[Pod], settings: Settings) -> None:
        cluster = list(cluster)
        self.pods = [*pending_pods(cluster), *map(successor, pods)]
        """All pods that are to be placed."""
        self.cluster = [
            _endless(each) for each in cluster if not isinstance(each, Pod) or each.spec.node_name
        ]
        self._settings = changed(settings, config=_without_preemption(settings.config), until_seconds=None)

    def verify(self, nodes: Iterable[Node], pods: Sequence[Pod] | None = None) -> Verification:
        """Simulate with more nodes; pods: others than all."""
        arriving = [Arrival(0.0, pod, None) for pod in (self.pods if pods is None else pods)]
        scenario = Scenario([*self.cluster, *nodes], lambda seed: arriving, len(arriving))
        records = run_simulation(scenario, self._settings).result.placements
        return Verification(
            {_key(each.namespace, each.name): each.node for each in records if _runs(each.outcome)},
            {_key(each.namespace, each.name): each.message for each in records if not _runs(each.outcome)},
        )


def _runs(outcome: Outcome) -> bool:
    return outcome is Outcome.RUNNING


def _key(namespace: str, name: str) -> str:
    return f"{namespace}/{name}"


def _endless(item: Object) -> Object:
    """A pod that runs without end; other objects as they are."""
    if not isinstance(item, Pod) or DURATION not in item.metadata.annotations:
        return item
    annotations = {key: value for key, value in item.metadata.annotations.items() if key != DURATION}
    return replace(item, metadata=replace(item.metadata, annotations=annotations))


def _without_preemption(config: SchedulerConfiguration) -> SchedulerConfiguration:
    """A configuration without post-filters: where pods fit, these are never asked."""
    nothing = PluginSet(disabled=(PluginRef(name="*"),))
    profiles = tuple(
        replace(
            profile,
            plugins=replace(profile.plugins, post_filter=nothing, pod_group_post_filter=nothing),
        )
        for profile in config.profiles
    )
    return replace(config, profiles=profiles)
