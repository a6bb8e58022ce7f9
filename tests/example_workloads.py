"""The workloads under examples/, each with the cluster it is meant for, and clusters in which they run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple

from typer.testing import CliRunner

from moorage.api.files import load_manifests
from moorage.cli.main import app
from moorage.config.load import default_config, load_config
from moorage.config.types import SchedulerConfiguration
from moorage.emulation.kubernetes_version import V1_37, KubernetesVersion
from moorage.framework.loading.plugin_discovery import DiscoveredPlugins, enabled_everywhere, find_plugins
from moorage.plugins import default_registry
from moorage.scheduler.scheduler import Scheduler
from moorage_cluster.addons import AddonName
from moorage_cluster.addons.addon import ADDONS
from moorage_cluster.apiserver.embedded import Settings
from moorage_cluster.local import LocalSettings
from moorage_cluster.manifest_files import FileObject, create_objects
from tests.up.harness import ClusterHarness

FOLDER = Path(__file__).parent.parent / "examples"
GENERIC = ("GenericWorkload",)
TOPOLOGY = (*GENERIC, "TopologyAwareWorkloadScheduling")
COMPOSITE = (*TOPOLOGY, "CompositePodGroup")


class Example(NamedTuple):
    """A workload. cluster: a file with nodes; without one there are ten nodes, as in `moorage up`."""

    workload: str
    cluster: str = ""
    gates: tuple[str, ...] = ()
    config: str = ""
    plugin: str = ""
    addons: tuple[AddonName, ...] = ()

    def __str__(self) -> str:
        return "-on-".join(Path(each).stem for each in (self.workload, self.cluster) if each)

    @property
    def version(self) -> KubernetesVersion:
        return V1_37.with_gates(dict.fromkeys(self.gates, True))

    @property
    def has_groups(self) -> bool:
        return bool(self.gates or self.addons)

    def found(self, folder: Path) -> DiscoveredPlugins:
        """The configuration and the plugins; old formats are converted into a file in the folder."""
        config = self._config(folder)
        for addon in self.addons:
            for plugin in ADDONS[addon].plugins:
                config = enabled_everywhere(config, plugin)
        files = [FOLDER / self.plugin] if self.plugin else []
        return find_plugins(config, default_registry(), files)

    def _config(self, folder: Path) -> SchedulerConfiguration:
        if not self.config:
            return default_config(self.version)
        if "old" not in self.config:
            return load_config(FOLDER / self.config, self.version)
        converted = folder / "converted.yaml"
        arguments = ["config", "convert", str(FOLDER / self.config), "-o", str(converted)]
        assert CliRunner().invoke(app, arguments).exit_code == 0
        return load_config(converted, self.version)


EXAMPLES = [
    Example("pod.yaml", "cluster.yaml"),
    Example("pending.yaml", "cluster.yaml"),
    Example("demo.yaml"),
    Example("training_job.yaml", addons=(AddonName.POD_GROUPS,)),
    Example(
        "sample_plugin/deployment.yaml",
        "sample_plugin/nodes.yaml",
        config="sample_plugin/old-config.yaml",
        plugin="sample_plugin/sample_plugin.py",
    ),
    Example("groups/gang.yaml", "groups/four-slots.yaml", GENERIC),
    Example("groups/gang.yaml", "groups/two-slots.yaml", TOPOLOGY),
    Example("groups/two-gangs.yaml", "groups/eight-slots.yaml", GENERIC),
    Example("groups/topology.yaml", "groups/racks.yaml", TOPOLOGY),
    Example("groups/composite.yaml", "groups/racks.yaml", COMPOSITE),
    Example("groups/urgent-gang.yaml", "groups/busy.yaml", GENERIC),
    Example(
        "groups/pair.yaml",
        "groups/row.yaml",
        TOPOLOGY,
        config="groups/neighbours-config.yaml",
        plugin="groups/neighbours.py",
    ),
    Example(
        "groups/gang.yaml",
        "groups/row.yaml",
        TOPOLOGY,
        config="groups/neighbours-config.yaml",
        plugin="groups/neighbours.py",
    ),
]
"""Every YAML file under examples/ is one of these workloads, clusters or configurations."""


def objects_in(file: str) -> list[FileObject]:
    return [FileObject(manifest, file) for manifest, _ in load_manifests(FOLDER / file)]


class ExampleCluster(ClusterHarness):
    """The cluster of an example, with its controllers and kubelets, and schedulers that a test makes."""

    def __init__(self, example: Example) -> None:
        self._example = example
        self._schedulers: list[asyncio.Task[None]] = []
        super().__init__(
            LocalSettings(
                nodes=0 if example.cluster else 10,
                server=Settings(version=example.version),
                schedules=False,
                version=example.version,
                addons=tuple(ADDONS[each] for each in example.addons),
            )
        )

    async def _begin(self) -> None:
        self._task = asyncio.create_task(self.local.run())
        objects = objects_in(self._example.cluster) if self._example.cluster else []
        await self.local.prepare(dump=[each.manifest for each in objects])
        await self._settled()

    def starts(self, make: Callable[..., Scheduler], found: DiscoveredPlugins, seed: int = 1) -> None:
        """Start a scheduler."""

        async def start() -> None:
            scheduler = make(
                self.client,
                found.config,
                found.registry,
                self.clock,
                Random(seed),
                "host",
                plugin_threads=0,
                version=self._example.version,
            )
            self._schedulers.append(asyncio.create_task(scheduler.run()))
            await self._settled()

        self._await(start())

    async def _end(self) -> None:
        for task in self._schedulers:
            task.cancel()
        await asyncio.gather(*self._schedulers, return_exceptions=True)
        await super()._end()

    def applies_workload(self) -> None:
        """Create the example's objects, in order, and wait until nothing happens any more."""
        refused = self._await(create_objects(self.client, objects_in(self._example.workload)))
        assert refused == []
        self.advance(90)
        for task in self._schedulers:
            if task.done():
                task.result()
