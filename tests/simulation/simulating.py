"""Small simulations for tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from moorage.api.base import Object
from moorage.config.load import default_config
from moorage.emulation.kubernetes_version import DEFAULT_VERSION, KubernetesVersion
from moorage.plugins import default_registry
from moorage.sim.admission import Admission
from moorage.simulation.records import PodRecord
from moorage.simulation.script import ScriptEvent
from moorage.simulation.settings import Settings
from moorage.simulation.shapes import NodeShape, nodes_of
from moorage.simulation.simulator import Simulation
from moorage.simulation.virtual_loop import run_in_virtual_time
from moorage.simulation.workload import Arrival, arrivals_of


def settings(version: KubernetesVersion = DEFAULT_VERSION, **given: Any) -> Settings:
    return Settings(default_config(version), default_registry(), version, **given)


def nodes(count: int, cpu: str = "4", name: str = "node") -> list[Object]:
    return [*nodes_of([NodeShape(name, count, resources={"cpu": cpu, "memory": "32Gi"})])]


def manifest(name: str, cpu: str = "1", *, at: str = "0s", duration: str = "", **spec: Any) -> Any:
    annotations = {"moorage.io/arrival": at} | ({"moorage.io/duration": duration} if duration else {})
    container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {"containers": [container], **spec},
    }


def arrivals(*manifests: Any) -> list[Arrival]:
    located = [(each, "test") for each in manifests]
    return arrivals_of(Admission(located).objects(located))


def simulated(
    cluster: Sequence[Object],
    workload: Iterable[Arrival],
    script: Sequence[ScriptEvent] = (),
    **given: Any,
) -> Simulation:
    """A simulation that has run to its end."""

    async def run() -> Simulation:
        simulation = Simulation(cluster, workload, settings(**given), script)
        await simulation.run()
        return simulation

    return run_in_virtual_time(run())


def by_name(simulation: Simulation) -> dict[str, PodRecord]:
    return {each.name: each for each in simulation.records.pods}
