"""What a scheduler does in a cluster, each deed so that it shows whether it could be done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

from moorage.client.kinds import (
    CORE_EVENT,
    DEVICE_CLASS,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    STORAGE_CLASS,
)
from moorage.config.load import parse_config
from moorage.http.transport import Request, Response
from moorage.services.client_certificates import CertificateOptions, ClientCertificates
from moorage.services.delegation import Authentication, Authorization
from moorage.services.leader_election import LeaderElector
from moorage.services.metrics import Metrics
from moorage.services.serving import Endpoints, metric_routes
from moorage_cluster.controllers.volume_provisioning import default_storage_class
from tests.manifests.harness import METRICS_READER, NAMESPACE, RoleHarness, refusal
from tests.manifests.printing import Manifest

Deed = Callable[[RoleHarness, list[Manifest]], Awaitable[bool]]

GPU = "example.com/gpu"
OURS: dict[str, Any] = {"schedulerName": "moorage"}


# -- following


async def schedules(world: RoleHarness, objects: list[Manifest]) -> bool:
    """A pod gets a node, for which everything must be known."""
    world.schedules(objects)
    await world.add_node("n1")
    await world.add_pod("p", **OURS)
    await world.passes(3)
    return await world.node_of("p") == "n1"


async def schedules_where_watches_do_not_list(world: RoleHarness, objects: list[Manifest]) -> bool:
    """The same with an API server that cannot begin a watch with everything there is."""

    async def only_lists(request: Request) -> Response | None:
        return refusal(422, "Invalid") if "sendInitialEvents" in request.query else None

    world.road.meddle = only_lists
    return await schedules(world, objects)


# -- telling


async def tells_where_a_pod_went(world: RoleHarness, objects: list[Manifest]) -> bool:
    return await schedules(world, objects) and len(await world.events("Scheduled")) == 1


async def counts_how_often_a_pod_found_no_place(world: RoleHarness, objects: list[Manifest]) -> bool:
    """The same words about the same pod make a series; the first ones change it by their condition."""
    world.schedules(objects)
    await world.add_node("n1")
    for name in ("a", "b", "c"):
        await world.add_pod(name, **OURS)
    await world.passes(1)
    await world.add_pod("p", cpu="4", **OURS)
    await world.passes(2)
    for name in ("a", "b"):
        await world.delete_pod(name)
        await world.passes(6)
    return any(event.get("series") for event in await world.events("FailedScheduling"))


async def says_why_a_pod_has_no_node(world: RoleHarness, objects: list[Manifest]) -> bool:
    world.schedules(objects)
    await world.add_node("n1")
    await world.add_pod("p", cpu="9", **OURS)
    await world.passes(3)
    condition = await world.condition_or_none("p")
    return condition is not None and "Insufficient cpu" in condition["message"]


async def says_so_of_a_pod_that_others_write_into(world: RoleHarness, objects: list[Manifest]) -> bool:
    async def label_first(request: Request) -> Response | None:
        if request.path.endswith("/p/status"):
            world.road.meddle = _leave_alone
            await world.label("p", {"labels": {"written": "meanwhile"}})
        return None

    world.road.meddle = label_first
    return await says_why_a_pod_has_no_node(world, objects)


async def _leave_alone(request: Request) -> Response | None:
    return None


# -- writing


async def makes_room(world: RoleHarness, objects: list[Manifest]) -> bool:
    world.schedules(objects)
    await world.add_priority("high", 1000)
    await world.add_node("n1")
    await world.add_pod("low", cpu="3", **OURS, terminationGracePeriodSeconds=0)
    await world.passes(2)
    await world.add_pod("high", cpu="3", **OURS, priorityClassName="high")
    await world.passes(5)
    return await world.node_of("high") == "n1"


async def gives_a_volume_to_a_claim(world: RoleHarness, objects: list[Manifest]) -> bool:
    await _add_claim(world, "kubernetes.io/no-provisioner")
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "standard",
        "hostPath": {"path": "/data"},
    }
    body = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": spec}
    await world.client.create(PERSISTENT_VOLUME, "", body)
    free = {"status": {"phase": "Available"}}
    await world.client.patch(PERSISTENT_VOLUME, "", "v", free, "merge", "status")
    world.schedules(objects)
    await _add_pod_with_volume(world)
    volume = await world.client.get(PERSISTENT_VOLUME, "", "v")
    return (volume["spec"].get("claimRef") or {}).get("name") == "data"


async def asks_for_a_volume_where_a_pod_is_going_to_be(world: RoleHarness, objects: list[Manifest]) -> bool:
    await _add_claim(world, "example.com/by-hand")
    world.schedules(objects)
    await _add_pod_with_volume(world)
    claim = await world.client.get(PERSISTENT_VOLUME_CLAIM, "default", "data")
    selected = "volume.kubernetes.io/selected-node"
    return (claim["metadata"].get("annotations") or {}).get(selected) == "n1"


async def _add_claim(world: RoleHarness, provisioner: str) -> None:
    await world.client.create(STORAGE_CLASS, "", default_storage_class() | {"provisioner": provisioner})
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "standard",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    meta = {"name": "data", "namespace": "default"}
    body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}
    await world.client.create(PERSISTENT_VOLUME_CLAIM, "default", body)


async def _add_pod_with_volume(world: RoleHarness) -> None:
    await world.add_node("n1")
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    await world.add_pod("p", **OURS, volumes=volumes)
    await world.passes(3)


# -- devices


async def gives_a_device(world: RoleHarness, objects: list[Manifest]) -> bool:
    world.schedules(objects)
    await _add_device(world)
    body = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "claim", "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "one", "exactly": {"deviceClassName": "gpu"}}]}},
    }
    await world.client.create(RESOURCE_CLAIM, "default", body)
    await world.add_pod("p", **OURS, resourceClaims=[{"name": "it", "resourceClaimName": "claim"}])
    await world.passes(3)
    return await world.node_of("p") == "n1"


async def gives_a_device_of_a_claim_that_others_write_into(
    world: RoleHarness, objects: list[Manifest]
) -> bool:
    """Nobody needs a second attempt for that."""

    async def label_first(request: Request) -> Response | None:
        if request.method == "PATCH" and request.path.endswith("/resourceclaims/claim"):
            world.road.meddle = _leave_alone
            labels = {"metadata": {"labels": {"written": "meanwhile"}}}
            await world.client.patch(RESOURCE_CLAIM, "default", "claim", labels, "merge")
        return None

    world.road.meddle = label_first
    return await gives_a_device(world, objects) and not await world.events("FailedScheduling")


async def gives_a_device_for_a_resource(world: RoleHarness, objects: list[Manifest]) -> bool:
    world.schedules(objects)
    await _add_pod_with_resource(world)
    return await world.node_of("p") == "n1"


async def takes_a_device_back(world: RoleHarness, objects: list[Manifest]) -> bool:
    """A pod that cannot be bound after all leaves no claim of the scheduler's behind."""

    async def refuses_bindings(request: Request) -> Response | None:
        return refusal(403, "Forbidden") if request.path.endswith("/binding") else None

    world.road.meddle = refuses_bindings
    world.schedules(objects)
    await _add_pod_with_resource(world)
    has_failed = "SchedulerError" in (await world.condition("p"))["reason"]
    return has_failed and not await world.client.list(RESOURCE_CLAIM)


async def _add_pod_with_resource(world: RoleHarness) -> None:
    await _add_device(world)
    resources = {"limits": {GPU: "1"}, "requests": {"cpu": "1", GPU: "1"}}
    container = {"name": "main", "image": "registry.example/app:1", "resources": resources}
    await world.add_pod("p", **OURS, containers=[container])
    await world.passes(3)


async def _add_device(world: RoleHarness) -> None:
    """A node with one device, which stands for a resource."""
    await world.add_node("n1")
    group = {"apiVersion": "resource.k8s.io/v1"}
    classes = {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": GPU}}
    await world.client.create(DEVICE_CLASS, "", {**group, "kind": "DeviceClass", **classes})
    spec = {
        "driver": "gpu.example.com",
        "nodeName": "n1",
        "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "d0"}],
    }
    slices = {"metadata": {"name": "n1"}, "spec": spec}
    await world.client.create(RESOURCE_SLICE, "", {**group, "kind": "ResourceSlice", **slices})


# -- leading


async def leads(world: RoleHarness, objects: list[Manifest]) -> bool:
    """Who has the lease still has it after others could have taken it."""
    election = _election(world, objects)
    task = asyncio.ensure_future(election.run(lambda: None, lambda: None))
    await world.passes(40)
    has_led = election.is_leading
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return has_led


async def tells_who_leads(world: RoleHarness, objects: list[Manifest]) -> bool:
    is_leading = await leads(world, objects)
    told = await world.client.list(CORE_EVENT, NAMESPACE)
    return is_leading and [event["reason"] for event in told] == ["LeaderElection"]


def _election(world: RoleHarness, objects: list[Manifest]) -> LeaderElector:
    config = parse_config(world.configuration(objects), "printed").leader_election
    return LeaderElector(world.account, config, world.clock, Random(1), "me", metrics=Metrics())


# -- serving


async def shows_metrics(world: RoleHarness, objects: list[Manifest]) -> bool:
    return await _shows(world, "/metrics")


async def shows_resources(world: RoleHarness, objects: list[Manifest]) -> bool:
    return await _shows(world, "/metrics/resources")


async def _shows(world: RoleHarness, path: str) -> bool:
    """Whether the account for metrics gets an answer."""
    client, metrics = world.account, Metrics()
    endpoints = Endpoints(
        metric_routes(metrics, lambda: [], lambda: True),
        Authentication(client, world.clock, Random(1), metrics),
        Authorization(client, world.clock, Random(1), metrics),
    )
    headers = {"authorization": f"Bearer {METRICS_READER}"}
    asking = world.runs(endpoints.handle(Request("GET", path, headers=headers)))
    await world.passes(15)
    return bool(asking.result().status == 200)


async def knows_authorities(world: RoleHarness, objects: list[Manifest]) -> bool:
    """Client certificates of the cluster's authority are believed."""
    certificates = ClientCertificates(CertificateOptions(), Metrics().client_certificate_seconds)
    await certificates.load_authorities(world.account)
    return bool(certificates.authorities)
