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
    POD_GROUP,
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

Operation = Callable[[RoleHarness, list[Manifest]], Awaitable[bool]]

GPU = "example.com/gpu"
OURS: dict[str, Any] = {"schedulerName": "moorage"}


# -- following


async def schedules(harness: RoleHarness, objects: list[Manifest]) -> bool:
    """A pod gets a node, for which everything must be known."""
    harness.schedules(objects)
    await harness.add_node("n1")
    await harness.add_pod("p", **OURS)
    await harness.passes(3)
    return await harness.node_of("p") == "n1"


async def schedules_where_watches_do_not_list(harness: RoleHarness, objects: list[Manifest]) -> bool:
    """The same with an API server that cannot begin a watch with everything there is."""

    async def only_lists(request: Request) -> Response | None:
        return refusal(422, "Invalid") if "sendInitialEvents" in request.query else None

    harness.transport.intercept = only_lists
    return await schedules(harness, objects)


# -- telling


async def records_scheduled_event(harness: RoleHarness, objects: list[Manifest]) -> bool:
    return await schedules(harness, objects) and len(await harness.events("Scheduled")) == 1


async def warns_on_ignored_groups(harness: RoleHarness, objects: list[Manifest]) -> bool:
    """A group that is not scheduled as one says so."""
    harness.schedules(objects)
    group = {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"basic": {}}}}
    group |= {"apiVersion": POD_GROUP.api_version, "kind": POD_GROUP.name}
    await harness.client.create(POD_GROUP, "default", group)
    await harness.add_node("n1")
    await harness.add_pod("p", schedulingGroup={"podGroupName": "g"}, **OURS)
    await harness.passes(3)
    told = await harness.events("PodGroupIgnored")
    return any(event["involvedObject"]["kind"] == "PodGroup" for event in told)


async def counts_failed_attempts(harness: RoleHarness, objects: list[Manifest]) -> bool:
    """The same words about the same pod make a series; the first ones change it by their condition."""
    harness.schedules(objects)
    await harness.add_node("n1")
    for name in ("a", "b", "c"):
        await harness.add_pod(name, **OURS)
    await harness.passes(1)
    await harness.add_pod("p", cpu="4", **OURS)
    await harness.passes(2)
    for name in ("a", "b"):
        await harness.delete_pod(name)
        await harness.passes(6)
    return any(event.get("series") for event in await harness.events("FailedScheduling"))


async def writes_unschedulable_condition(harness: RoleHarness, objects: list[Manifest]) -> bool:
    harness.schedules(objects)
    await harness.add_node("n1")
    await harness.add_pod("p", cpu="9", **OURS)
    await harness.passes(3)
    condition = await harness.condition_or_none("p")
    return condition is not None and "Insufficient cpu" in condition["message"]


async def writes_condition_after_conflict(harness: RoleHarness, objects: list[Manifest]) -> bool:
    async def label_first(request: Request) -> Response | None:
        if request.path.endswith("/p/status"):
            harness.transport.intercept = _leave_alone
            await harness.label("p", {"labels": {"written": "meanwhile"}})
        return None

    harness.transport.intercept = label_first
    return await writes_unschedulable_condition(harness, objects)


async def _leave_alone(request: Request) -> Response | None:
    return None


# -- writing


async def preempts_pods(harness: RoleHarness, objects: list[Manifest]) -> bool:
    harness.schedules(objects)
    await harness.add_priority("high", 1000)
    await harness.add_node("n1")
    await harness.add_pod("low", cpu="3", **OURS, terminationGracePeriodSeconds=0)
    await harness.passes(2)
    await harness.add_pod("high", cpu="3", **OURS, priorityClassName="high")
    await harness.passes(5)
    return await harness.node_of("high") == "n1"


async def gives_a_volume_to_a_claim(harness: RoleHarness, objects: list[Manifest]) -> bool:
    await _add_claim(harness, "kubernetes.io/no-provisioner")
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "standard",
        "hostPath": {"path": "/data"},
    }
    body = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": spec}
    await harness.client.create(PERSISTENT_VOLUME, "", body)
    free = {"status": {"phase": "Available"}}
    await harness.client.patch(PERSISTENT_VOLUME, "", "v", free, "merge", "status")
    harness.schedules(objects)
    await _add_pod_with_volume(harness)
    volume = await harness.client.get(PERSISTENT_VOLUME, "", "v")
    return (volume["spec"].get("claimRef") or {}).get("name") == "data"


async def selects_node_for_volume(harness: RoleHarness, objects: list[Manifest]) -> bool:
    await _add_claim(harness, "example.com/by-hand")
    harness.schedules(objects)
    await _add_pod_with_volume(harness)
    claim = await harness.client.get(PERSISTENT_VOLUME_CLAIM, "default", "data")
    selected = "volume.kubernetes.io/selected-node"
    return (claim["metadata"].get("annotations") or {}).get(selected) == "n1"


async def _add_claim(harness: RoleHarness, provisioner: str) -> None:
    await harness.client.create(STORAGE_CLASS, "", default_storage_class() | {"provisioner": provisioner})
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "standard",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    meta = {"name": "data", "namespace": "default"}
    body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}
    await harness.client.create(PERSISTENT_VOLUME_CLAIM, "default", body)


async def _add_pod_with_volume(harness: RoleHarness) -> None:
    await harness.add_node("n1")
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    await harness.add_pod("p", **OURS, volumes=volumes)
    await harness.passes(3)


# -- devices


async def gives_a_device(harness: RoleHarness, objects: list[Manifest]) -> bool:
    harness.schedules(objects)
    await _add_device(harness)
    body = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "claim", "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "one", "exactly": {"deviceClassName": "gpu"}}]}},
    }
    await harness.client.create(RESOURCE_CLAIM, "default", body)
    await harness.add_pod("p", **OURS, resourceClaims=[{"name": "it", "resourceClaimName": "claim"}])
    await harness.passes(3)
    return await harness.node_of("p") == "n1"


async def gives_a_device_of_a_claim_that_others_write_into(
    harness: RoleHarness, objects: list[Manifest]
) -> bool:
    """Nobody needs a second attempt for that."""

    async def label_first(request: Request) -> Response | None:
        if request.method == "PATCH" and request.path.endswith("/resourceclaims/claim"):
            harness.transport.intercept = _leave_alone
            labels = {"metadata": {"labels": {"written": "meanwhile"}}}
            await harness.client.patch(RESOURCE_CLAIM, "default", "claim", labels, "merge")
        return None

    harness.transport.intercept = label_first
    return await gives_a_device(harness, objects) and not await harness.events("FailedScheduling")


async def gives_a_device_for_a_resource(harness: RoleHarness, objects: list[Manifest]) -> bool:
    harness.schedules(objects)
    await _add_pod_with_resource(harness)
    return await harness.node_of("p") == "n1"


async def deallocates_device(harness: RoleHarness, objects: list[Manifest]) -> bool:
    """A pod that cannot be bound after all leaves no claim of the scheduler's behind."""

    async def refuses_bindings(request: Request) -> Response | None:
        return refusal(403, "Forbidden") if request.path.endswith("/binding") else None

    harness.transport.intercept = refuses_bindings
    harness.schedules(objects)
    await _add_pod_with_resource(harness)
    has_failed = "SchedulerError" in (await harness.condition("p"))["reason"]
    return has_failed and not await harness.client.list(RESOURCE_CLAIM)


async def _add_pod_with_resource(harness: RoleHarness) -> None:
    await _add_device(harness)
    resources = {"limits": {GPU: "1"}, "requests": {"cpu": "1", GPU: "1"}}
    container = {"name": "main", "image": "registry.example/app:1", "resources": resources}
    await harness.add_pod("p", **OURS, containers=[container])
    await harness.passes(3)


async def _add_device(harness: RoleHarness) -> None:
    """A node with one device, which stands for a resource."""
    await harness.add_node("n1")
    group = {"apiVersion": "resource.k8s.io/v1"}
    classes = {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": GPU}}
    await harness.client.create(DEVICE_CLASS, "", {**group, "kind": "DeviceClass", **classes})
    spec = {
        "driver": "gpu.example.com",
        "nodeName": "n1",
        "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "d0"}],
    }
    slices = {"metadata": {"name": "n1"}, "spec": spec}
    await harness.client.create(RESOURCE_SLICE, "", {**group, "kind": "ResourceSlice", **slices})


# -- leading


async def leads(harness: RoleHarness, objects: list[Manifest]) -> bool:
    """Who has the lease still has it after others could have taken it."""
    election = _election(harness, objects)
    task = asyncio.ensure_future(election.run(lambda: None, lambda: None))
    await harness.passes(40)
    has_led = election.is_leading
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return has_led


async def records_leader_event(harness: RoleHarness, objects: list[Manifest]) -> bool:
    is_leading = await leads(harness, objects)
    events = await harness.client.list(CORE_EVENT, NAMESPACE)
    return is_leading and [event["reason"] for event in events] == ["LeaderElection"]


def _election(harness: RoleHarness, objects: list[Manifest]) -> LeaderElector:
    config = parse_config(harness.configuration(objects), "printed").leader_election
    return LeaderElector(harness.account, config, harness.clock, Random(1), "me", metrics=Metrics())


# -- serving


async def shows_metrics(harness: RoleHarness, objects: list[Manifest]) -> bool:
    return await _shows(harness, "/metrics")


async def shows_resources(harness: RoleHarness, objects: list[Manifest]) -> bool:
    return await _shows(harness, "/metrics/resources")


async def _shows(harness: RoleHarness, path: str) -> bool:
    """Whether the account for metrics gets an answer."""
    client, metrics = harness.account, Metrics()
    endpoints = Endpoints(
        metric_routes(metrics, lambda: [], lambda: True),
        Authentication(client, harness.clock, Random(1), metrics),
        Authorization(client, harness.clock, Random(1), metrics),
    )
    headers = {"authorization": f"Bearer {METRICS_READER}"}
    asking = harness.runs(endpoints.handle(Request("GET", path, headers=headers)))
    await harness.passes(15)
    return bool(asking.result().status == 200)


async def knows_authorities(harness: RoleHarness, objects: list[Manifest]) -> bool:
    """Client certificates of the cluster's authority are believed."""
    certificates = ClientCertificates(CertificateOptions(), Metrics().client_certificate_seconds)
    await certificates.load_authorities(harness.account)
    return bool(certificates.authorities)
