"""The decision for one pod."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from moorage.api.base import Object
from moorage.api.decode import InputError
from moorage.api.manifests import Manifest
from moorage.api.pod import Pod
from moorage.config.load import default_config
from moorage.config.types import SchedulerConfiguration
from moorage.emulation.kubernetes_version import DEFAULT_VERSION, KubernetesVersion
from moorage.engine.decision import Decision
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.loading.plugin_discovery import (
    DiscoveredPlugins,
    enabled_everywhere,
    load_enabled,
)
from moorage.plugins import default_registry
from moorage.sim.admission import Admission
from moorage.sim.cluster import SimulatedCluster


def decide(
    pod: Pod | Manifest,
    objects: Iterable[Object | Manifest],
    plugins: Iterable[type[Any]] = (),
    config: SchedulerConfiguration | None = None,
    seed: int = 0,
    version: KubernetesVersion = DEFAULT_VERSION,
    now: datetime | None = None,
) -> Decision:
    """The decision for a pod in a cluster of these objects, with its reasons; nothing is changed.

    pod, objects: manifests are read as `moorage decide` reads files: a pod without a uid gets the defaulting
    and admission of an API server with these objects (LimitRanges, PriorityClasses, RuntimeClasses among
    them), or an InputError with the reason for its rejection. A `Pod` is used as if already stored by an API
    server. A pod that is on a node is removed from it first, and its `spec.nodeName` is ignored.
    plugins: classes enabled besides the default plugins, in every profile, at all their extension points.
    seed: seed for the choice among nodes with equal scores.
    version: the version of Kubernetes to emulate; `config` should have been read for the same one.
    now: the wall time to decide at, for plugins that read it; by default the present.
    """
    config, registry = with_classes(default_config(version) if config is None else config, plugins)
    objects = list(objects)
    manifests = [(item, "") for item in objects if not isinstance(item, Object)]
    admission = Admission(manifests)
    known = [item for item in objects if isinstance(item, Object)]
    stored = [*known, *admission.objects(manifests)]
    cluster = SimulatedCluster(stored, config, registry, seed, version=version, now=now)
    asked = _pod_of(pod, admission)
    return cluster.decide(cluster.take_out(asked), CycleState())


def with_classes(config: SchedulerConfiguration, plugins: Iterable[type[Any]]) -> DiscoveredPlugins:
    """A configuration with classes enabled besides the default plugins, at all their extension points."""
    registry = default_registry()
    for plugin in plugins:
        registry.register(plugin.name, plugin)
        config = enabled_everywhere(config, plugin)
    load_enabled(config, registry)  # Before objects are read: plugins may declare their kinds.
    return DiscoveredPlugins(config, registry)


def _pod_of(pod: Pod | Manifest, admission: Admission) -> Pod:
    if isinstance(pod, Pod):
        return pod
    for item in admission.objects([(pod, "")]):
        if isinstance(item, Pod):
            return item
    raise InputError("pod", "not the manifest of a Pod")
