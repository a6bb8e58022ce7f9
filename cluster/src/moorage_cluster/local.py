"""A whole cluster in one process: API server, controllers, simulated nodes, scheduler."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, NamedTuple

from moorage.api.manifests import Manifest
from moorage.client.client import Client
from moorage.client.kinds import STORAGE_CLASS
from moorage.client.observed_transport import ObservedTransport
from moorage.client.request_observer import RequestObserver
from moorage.clock import Clock, LoopClock
from moorage.config.load import default_config
from moorage.config.types import SchedulerConfiguration
from moorage.emulation.kubernetes_version import DEFAULT_VERSION, KubernetesVersion
from moorage.framework.loading.registry import Registry
from moorage.http.errors import RequestError
from moorage.plugins import default_registry
from moorage.scheduler.observers import Observer
from moorage.scheduler.scheduler import Scheduler
from moorage_cluster.addons.addon import Addon
from moorage_cluster.apiserver.embedded import EmbeddedServer, Settings
from moorage_cluster.apiserver.resources import APIResource
from moorage_cluster.apiserver.server_version import GENERIC_WORKLOAD, WORKLOAD_WITH_JOB, ServerVersion
from moorage_cluster.controllers.cluster import Cluster
from moorage_cluster.controllers.controller import Controller
from moorage_cluster.controllers.infrastructure_controllers import infrastructure_controllers
from moorage_cluster.controllers.manager import ControllerManager, MakeController
from moorage_cluster.controllers.node_lifecycle import MONITOR_GRACE_SECONDS
from moorage_cluster.controllers.volume_provisioning import default_storage_class
from moorage_cluster.controllers.workload_controllers import workload_controllers
from moorage_cluster.dump import ImportResult, import_objects
from moorage_cluster.manifest_files import FileObject, create_objects
from moorage_cluster.nodes.logs import Logs
from moorage_cluster.nodes.settings import KubeletSettings, NodeTemplate
from moorage_cluster.nodes.simulation import SimulatedNodes
from moorage_cluster.processes.runtime import LocalRuntime

_READ_ONLY: Final = ("get", "list")


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """Settings of a cluster on a laptop."""

    nodes: int = 10
    template: NodeTemplate = field(default_factory=NodeTemplate)
    kubelets: KubeletSettings = field(default_factory=KubeletSettings)
    server: Settings = field(default_factory=Settings)
    config: SchedulerConfiguration = field(default_factory=default_config)
    registry: Registry = field(default_factory=default_registry)
    """The available plugins."""
    schedules: bool = True
    """Whether pods are scheduled in this process; if not, another one does it."""
    run_containers_with: tuple[str, int] | None = None
    """Address and port at which processes reach the API server, if containers run as processes."""
    version: KubernetesVersion = DEFAULT_VERSION
    """The version that the scheduler emulates."""
    node_grace_seconds: float = MONITOR_GRACE_SECONDS
    """Grace period for the heartbeats of a node, in seconds."""
    addons: tuple[Addon, ...] = ()
    """What the cluster has besides Kubernetes itself; the configuration has to name their plugins."""
    observer: Observer | None = None
    """What the scheduler tells of its work; None: nothing."""
    requests: RequestObserver | None = None
    """What observes the scheduler's requests to the API server; None: nothing."""


class PreparedCluster(NamedTuple):
    """The initial objects of a cluster."""

    dump: ImportResult
    refused: list[str]
    """A line for each object of a file that the server rejected."""


def _workload_controllers(version: KubernetesVersion) -> tuple[MakeController, ...]:
    served = ServerVersion.of(version)
    return workload_controllers(
        has_groups=served.enabled(GENERIC_WORKLOAD), groups_of_jobs=served.enabled(WORKLOAD_WITH_JOB)
    )


class LocalCluster:
    """All components of a cluster, connected by its API server."""

    def __init__(
        self,
        settings: LocalSettings,
        *,
        clock: Clock | None = None,
        random: Random | None = None,
    ) -> None:
        self._settings = settings
        clock, random = clock or LoopClock(), random or Random()
        self.server = EmbeddedServer(
            settings.server,
            clock=clock,
            random=random,
            logs=lambda pod, query: self._logs(pod, query),
        )
        self.client = Client(self.server.api, self.server.token, "moorage-up")
        self._runtime = None
        if settings.run_containers_with is not None:
            self._runtime = LocalRuntime(self.client, settings.run_containers_with, clock, random)
        self._logs = Logs(clock.utc_now, self._runtime.read_log if self._runtime is not None else None)
        cluster = Cluster(self.client, clock, random)
        self._manager = ControllerManager(
            cluster,
            (
                *_workload_controllers(settings.server.version),
                *infrastructure_controllers(settings.node_grace_seconds),
                *(controller for addon in settings.addons for controller in addon.controllers),
            ),
        )
        self.nodes = SimulatedNodes(
            cluster, settings.kubelets, seed=random.getrandbits(32), runtime=self._runtime
        )
        self._may_work = asyncio.Event()
        self.scheduler: Scheduler | None = None
        if settings.schedules:
            self.scheduler = Scheduler(
                self._scheduler_client(clock),
                settings.config,
                settings.registry,
                clock,
                random,
                "moorage-up",
                observer=settings.observer,
                version=settings.version,
            )
        self.server.resources.add(_metrics("NodeMetrics", "nodes", False, self._node_metrics))
        self.server.resources.add(_metrics("PodMetrics", "pods", True, self._pod_metrics))

    def _scheduler_client(self, clock: Clock) -> Client:
        observer = self._settings.requests
        if observer is None:
            return self.client
        transport = ObservedTransport(self.server.api, clock, observer)
        return Client(transport, self.server.token, "moorage-up")

    async def prepare(self, files: Iterable[FileObject] = (), dump: Iterable[Any] = ()) -> PreparedCluster:
        """Create the initial objects: of add-ons, of a dump, nodes up to their number, of files.

        Existing objects, from an earlier run with the same data directory, are kept. No component runs before
        the dump is complete: controllers would recreate objects that are still to be imported.
        """
        with suppress(RequestError):
            await self.client.create(STORAGE_CLASS, "", default_storage_class())
        needed = [obj for addon in self._settings.addons for obj in addon.objects()]
        refused = await create_objects(self.client, needed)
        brought = await import_objects(self.client, dump)
        self._may_work.set()
        await self.nodes.ensure(self._settings.template, self._settings.nodes)
        return PreparedCluster(brought, refused + await create_objects(self.client, files))

    async def run(self) -> None:
        """Run all components until cancelled; all but the API server wait for the dump."""
        self.server.start()
        try:
            await self._may_work.wait()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._manager.run())
                tasks.create_task(self.nodes.run())
                if self.scheduler is not None:
                    tasks.create_task(self.scheduler.run())
        finally:
            if self._runtime is not None:
                await self._runtime.close()

    async def reconfigure(self, config: SchedulerConfiguration, registry: Registry) -> None:
        """Continue scheduling with other profiles and plugins; RegistryError if they are invalid."""
        if self.scheduler is not None:
            await self.scheduler.reconfigure(config, registry)

    @property
    def controllers(self) -> Sequence[Controller]:
        """All controllers."""
        return self._manager.controllers

    @property
    def is_idle(self) -> bool:
        """Whether controllers and nodes have nothing to do at this moment."""
        return self.nodes.is_idle and all(controller.is_idle for controller in self._manager.controllers)

    def close(self) -> None:
        """Close the API server and release its data directory."""
        self.server.close()

    # -- metrics

    def _node_metrics(self, namespace: str | None) -> list[Manifest]:
        items: list[Manifest] = self.nodes.node_metrics()["items"]
        return items

    def _pod_metrics(self, namespace: str | None) -> list[Manifest]:
        items: list[Manifest] = self.nodes.pod_metrics(namespace)["items"]
        return items


class _Measured:
    """Objects that a function returns."""

    def __init__(self, measure: Callable[[str | None], list[Manifest]]) -> None:
        self._measure = measure

    def objects(self, namespace: str | None) -> list[Manifest]:
        """All objects as of now."""
        return self._measure(namespace)


def _metrics(
    kind: str, plural: str, namespaced: bool, measure: Callable[[str | None], list[Manifest]]
) -> APIResource:
    return APIResource(
        "metrics.k8s.io", "v1beta1", kind, plural, namespaced, verbs=_READ_ONLY, source=_Measured(measure)
    )
