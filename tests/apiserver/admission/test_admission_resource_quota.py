"""ResourceQuota: what is refused, and what a quota's status says."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from moorage.api.manifests import Manifest
from moorage_cluster.apiserver.admission.quota.resource_quota import ResourceQuota, plugins, quota_usage
from tests.admission.harness import World, asking, container, named, pod, refused, update, write

NOW = datetime(2026, 5, 1, tzinfo=UTC)
QUOTAS = ResourceQuota(lambda: NOW)


def quota(name: str = "q", *, scopes: list[str] | None = None, selector: Any = None, **hard: str) -> Manifest:
    spec: Manifest = {"hard": {_name(key): text for key, text in hard.items()}}
    if scopes:
        spec["scopes"] = scopes
    if selector:
        spec["scopeSelector"] = {"matchExpressions": [selector]}
    return named(name, "here", spec=spec)


def _name(key: str) -> str:
    return key.replace("__", "/").replace("_", ".")


def running(name: str, *containers: Manifest, phase: str = "Running", **spec: Any) -> Manifest:
    return {**pod(*containers, name=name, **spec), "status": {"phase": phase}}


def one_cpu(name: str = "p", **fields: Any) -> Manifest:
    return running(name, asking("c", cpu="1", limits={"cpu": "2"}), **fields)


def forbidden(harness: World, given: Manifest, storage: str = "/pods") -> str:
    error = refused(QUOTAS.admit, write(given, storage), harness)
    assert error.code == 403
    return error.message.split(" is forbidden: ", 1)[1]


THREE = [one_cpu("a"), one_cpu("b"), one_cpu("c")]


@pytest.mark.parametrize(
    ("hard", "given", "why"),
    [
        ({"cpu": "4"}, one_cpu(), None),
        ({"cpu": "3"}, one_cpu(), "exceeded quota: q, requested: cpu=1, used: cpu=3, limited: cpu=3"),
        (
            {"requests_cpu": "3", "limits_cpu": "7", "pods": "3"},
            one_cpu(),
            "exceeded quota: q, requested: limits.cpu=2,pods=1,requests.cpu=1, "
            "used: limits.cpu=6,pods=3,requests.cpu=3, limited: limits.cpu=7,pods=3,requests.cpu=3",
        ),
        ({"limits_cpu": "100"}, pod(asking("c", cpu="1")), "failed quota: q: must specify limits.cpu for: c"),
        (
            {"limits_cpu": "100", "memory": "100Gi", "requests_memory": "100Gi"},
            pod(asking("b", cpu="1"), container("a"), initContainers=[container("i")]),
            "failed quota: q: must specify limits.cpu for: a,b,i; memory for: a,b,i; "
            "requests.memory for: a,b,i",
        ),
        ({"limits_cpu": "100"}, pod(container(), resources={"limits": {"cpu": "1"}}), None),
        ({"limits_ephemeral-storage": "1Gi", "pods": "9"}, pod(), None),
        (
            {"memory": "1Gi"},
            pod(asking("a", memory="512Mi"), asking("b", memory="1Gi")),
            "exceeded quota: q, requested: memory=1536Mi, used: memory=0, limited: memory=1Gi",
        ),
        (
            {"requests_example.com__gpu": "1"},
            pod(asking("a", **{"example.com/gpu": "2"})),  # type: ignore[arg-type]
            "exceeded quota: q, requested: requests.example.com/gpu=2, "
            "used: requests.example.com/gpu=0, limited: requests.example.com/gpu=1",
        ),
        (
            {"requests_hugepages-2Mi": "1Gi"},
            pod(asking("a", **{"hugepages-2Mi": "2Gi"})),  # type: ignore[arg-type]
            "exceeded quota: q, requested: requests.hugepages-2Mi=2Gi, "
            "used: requests.hugepages-2Mi=0, limited: requests.hugepages-2Mi=1Gi",
        ),
        (
            {"count__pods": "3"},
            pod(),
            "exceeded quota: q, requested: count/pods=1, used: count/pods=3, limited: count/pods=3",
        ),
        (
            {"cpu": "1"},
            pod(asking("c", cpu="-1")),
            "quota usage is negative for resource(s): cpu,requests.cpu",
        ),
        ({"services": "0", "requests_storage": "0"}, one_cpu(), None),
    ],
)
def test_pods_are_charged(hard: dict[str, Any], given: Manifest, why: str | None) -> None:
    harness = World(quotas=[quota(**hard)], pods=THREE)
    if why is None:
        QUOTAS.admit(write(given), harness)
    else:
        assert forbidden(harness, given) == why


def test_every_quota_of_the_namespace_counts_and_no_other() -> None:
    other = quota("other", pods="0")
    other["metadata"]["namespace"] = "elsewhere"
    harness = World(quotas=[quota("wide", pods="9"), quota("narrow", pods="1"), other], pods=[one_cpu("a")])
    assert forbidden(harness, one_cpu()) == (
        "exceeded quota: narrow, requested: pods=1, used: pods=1, limited: pods=1"
    )
    QUOTAS.admit(write(one_cpu()), World(quotas=[other]))


def stuck(name: str, deleted: str) -> Manifest:
    obj = one_cpu(name)
    obj["metadata"] |= {
        "deletionTimestamp": deleted,
        "deletionGracePeriodSeconds": 30,
        "resourceVersion": "9",
    }
    return obj


@pytest.mark.parametrize(
    ("stored", "used"),
    [
        (one_cpu("a", phase="Succeeded"), "0"),
        (one_cpu("a", phase="Failed"), "0"),
        (one_cpu("a", phase="Pending"), "1"),
        (stuck("a", "2026-04-30T23:59:29Z"), "0"),
        (stuck("a", "2026-04-30T23:59:31Z"), "1"),
    ],
)
def test_pods_that_are_over_are_free(stored: Manifest, used: str) -> None:
    expected = {"pods": used, "count/pods": "1", "cpu": used}
    assert (
        quota_usage(quota(pods="9", count__pods="9", cpu="9"), World(pods=[stored]), NOW)["used"] == expected
    )


def test_a_new_pod_cannot_declare_itself_over() -> None:
    harness = World(quotas=[quota(pods="0")])
    given = one_cpu(phase="Succeeded")
    given["metadata"] |= {"deletionTimestamp": "2000-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0}
    assert forbidden(harness, given).startswith("exceeded quota")


PRIORITY = "PriorityClass"


@pytest.mark.parametrize(
    ("limit", "given", "is_meant"),
    [
        (quota(scopes=["BestEffort"], pods="0"), pod(), True),
        (quota(scopes=["BestEffort"], pods="0"), one_cpu(), False),
        (quota(scopes=["NotBestEffort"], pods="0"), pod(), False),
        (quota(scopes=["NotBestEffort"], pods="0"), one_cpu(), True),
        (
            quota(scopes=["BestEffort"], pods="0"),
            pod(asking("c", cpu="1"), resources={"requests": {"cpu": "0"}}),
            True,
        ),
        (quota(scopes=["Terminating"], pods="0"), pod(activeDeadlineSeconds=5), True),
        (quota(scopes=["Terminating"], pods="0"), pod(), False),
        (quota(scopes=["NotTerminating"], pods="0"), pod(activeDeadlineSeconds=5), False),
        (quota(scopes=["NotTerminating"], pods="0"), pod(), True),
        (quota(scopes=["NotTerminating", "BestEffort"], pods="0"), one_cpu(), False),
        (quota(scopes=[PRIORITY], pods="0"), pod(priorityClassName="x"), True),
        (quota(scopes=[PRIORITY], pods="0"), pod(), False),
        (
            quota(selector={"scopeName": PRIORITY, "operator": "In", "values": ["x", "y"]}, pods="0"),
            pod(priorityClassName="x"),
            True,
        ),
        (
            quota(selector={"scopeName": PRIORITY, "operator": "In", "values": ["y"]}, pods="0"),
            pod(priorityClassName="x"),
            False,
        ),
        (
            quota(selector={"scopeName": PRIORITY, "operator": "NotIn", "values": ["y"]}, pods="0"),
            pod(),
            True,
        ),
        (quota(selector={"scopeName": PRIORITY, "operator": "DoesNotExist"}, pods="0"), pod(), True),
        (
            quota(scopes=["CrossNamespacePodAffinity"], pods="0"),
            pod(
                affinity={
                    "podAntiAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [
                            {"weight": 1, "podAffinityTerm": {"topologyKey": "k", "namespaceSelector": {}}}
                        ]
                    }
                }
            ),
            True,
        ),
        (quota(scopes=["CrossNamespacePodAffinity"], pods="0"), pod(), False),
    ],
)
def test_scopes_say_which_pods_are_meant(limit: Manifest, given: Manifest, is_meant: bool) -> None:
    harness = World(quotas=[limit])
    if is_meant:
        assert (
            forbidden(harness, given) == "exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0"
        )
    else:
        QUOTAS.admit(write(given), harness)
    stored = World(pods=[{**given, "status": {"phase": "Running"}}])
    assert quota_usage(limit, stored, NOW)["used"] == {"pods": "1" if is_meant else "0"}


def test_a_pod_that_changes_its_scope_is_charged_to_the_new_one() -> None:
    harness = World(quotas=[quota(scopes=["Terminating"], pods="0")])
    before, after = one_cpu(), one_cpu(activeDeadlineSeconds=5)
    error = refused(QUOTAS.admit_pod_update, update(after, before), harness)
    assert error.message.endswith("exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0")
    QUOTAS.admit_pod_update(update(before, before), World(quotas=[quota(pods="0")]))


def test_a_resize_is_charged_for_the_difference() -> None:
    old, new = one_cpu("a"), running("a", asking("c", cpu="3", limits={"cpu": "3"}))
    attributes = update(new, old, subresource="resize")
    QUOTAS.admit(attributes, World(quotas=[quota(cpu="3")], pods=[old]))
    error = refused(QUOTAS.admit, attributes, World(quotas=[quota(cpu="2")], pods=[old]))
    assert error.message.endswith("exceeded quota: q, requested: cpu=2, used: cpu=1, limited: cpu=2")


def test_what_a_pod_has_been_given_counts_as_well() -> None:
    obj = running("a", asking("c", cpu="1"), overhead={"cpu": "100m", "memory": "1Mi"})
    given = {"requests": {"cpu": "2"}, "limits": {"cpu": "4"}}
    obj["status"]["containerStatuses"] = [
        {"name": "c", "resources": given, "allocatedResources": {"cpu": "3"}}
    ]
    limit = quota(cpu="9", memory="9", limits_cpu="9", limits_memory="9")
    used = quota_usage(limit, World(pods=[obj]), NOW)["used"]
    assert used == {"cpu": "3100m", "memory": "1Mi", "limits.cpu": "4100m", "limits.memory": "0"}
    obj["status"]["conditions"] = [{"type": "PodResizePending", "reason": "Infeasible"}]
    obj["spec"]["containers"] = [asking("c", cpu="8")]
    assert quota_usage(limit, World(pods=[obj]), NOW)["used"]["cpu"] == "3100m"


def claim(name: str = "new", size: str = "1Gi", **spec: Any) -> Manifest:
    return named(name, "here", spec={"resources": {"requests": {"storage": size}}, **spec})


def service(kind: str, *ports: Manifest, **spec: Any) -> Manifest:
    return named("s", "here", spec={"type": kind, "ports": list(ports), **spec})


def devices(*requests: Manifest) -> Manifest:
    return named("d", "here", spec={"devices": {"requests": list(requests)}})


def exactly(count: int, mode: str = "ExactCount") -> Manifest:
    return {"deviceClassName": "gpu", "allocationMode": mode, "count": count}


GOLD = "gold.storageclass.storage.k8s.io"
GPUS = "gpu.deviceclass.resource.k8s.io/devices"


@pytest.mark.parametrize(
    ("storage", "given", "hard", "requested"),
    [
        ("/secrets", named("x", "here"), "secrets", "1"),
        ("/secrets", named("x", "here"), "count/secrets", "1"),
        ("/configmaps", named("x", "here"), "configmaps", "1"),
        ("apps/deployments", named("x", "here"), "count/deployments.apps", "1"),
        ("example.com/widgets", named("x", "here"), "count/widgets.example.com", "1"),
        ("/persistentvolumeclaims", claim(), "persistentvolumeclaims", "1"),
        ("/persistentvolumeclaims", claim(), "count/persistentvolumeclaims", "1"),
        ("/persistentvolumeclaims", claim(size="1500m"), "requests.storage", "2"),
        (
            "/persistentvolumeclaims",
            claim(storageClassName="gold"),
            f"{GOLD}/requests.storage",
            "1Gi",
        ),
        ("/persistentvolumeclaims", claim(storageClassName="gold"), f"{GOLD}/persistentvolumeclaims", "1"),
        ("/services", service("ClusterIP", {}), "services", "1"),
        ("/services", service("NodePort", {}, {}), "services.nodeports", "2"),
        ("/services", service("LoadBalancer", {}, {}), "services.nodeports", "2"),
        (
            "/services",
            service("LoadBalancer", {"nodePort": 30000}, {}, allocateLoadBalancerNodePorts=False),
            "services.nodeports",
            "1",
        ),
        ("/services", service("LoadBalancer", {}), "services.loadbalancers", "1"),
        ("resource.k8s.io/resourceclaims", devices(), "count/resourceclaims.resource.k8s.io", "1"),
        (
            "resource.k8s.io/resourceclaims",
            devices({"exactly": exactly(2)}, {"exactly": exactly(3)}),
            GPUS,
            "5",
        ),
        ("resource.k8s.io/resourceclaims", devices({"exactly": exactly(0, "All")}), GPUS, "32"),
        (
            "resource.k8s.io/resourceclaims",
            devices({"firstAvailable": [exactly(2), exactly(4)]}),
            GPUS,
            "4",
        ),
    ],
)
def test_other_kinds_are_charged(storage: str, given: Manifest, hard: str, requested: str) -> None:
    limit = named("q", "here", spec={"hard": {hard: "0"}})
    why = f"exceeded quota: q, requested: {hard}={requested}, used: {hard}=0, limited: {hard}=0"
    assert forbidden(World(quotas=[limit]), given, storage) == why
    harness = World()
    harness.add(storage, given)
    assert quota_usage(limit, harness, NOW) == {"hard": {hard: "0"}, "used": {hard: requested}}


@pytest.mark.parametrize(
    ("storage", "given"),
    [
        ("/events", named("e", "here")),
        ("/services", service("ClusterIP", {})),
        ("/persistentvolumeclaims", claim()),
    ],
)
def test_what_is_not_limited_is_not_charged(storage: str, given: Manifest) -> None:
    limit = named("q", "here", spec={"hard": {"count/events": "0", "services.nodeports": "0", "pods": "0"}})
    QUOTAS.admit(write(given, storage), World(quotas=[limit]))


def test_quotas_with_scopes_are_not_about_kinds_that_have_none() -> None:
    limit = quota(scopes=["BestEffort"], secrets="0")
    QUOTAS.admit(write(named("x", "here"), "/secrets"), World(quotas=[limit]))


@pytest.mark.parametrize(("class_name", "is_meant"), [("fast", True), ("slow", False), (None, False)])
def test_claims_are_meant_by_their_attributes_class(class_name: str | None, is_meant: bool) -> None:
    selector = {"scopeName": "VolumeAttributesClass", "operator": "In", "values": ["fast"]}
    harness = World(quotas=[quota(selector=selector, persistentvolumeclaims="0")])
    given = claim(volumeAttributesClassName=class_name) if class_name else claim()
    if is_meant:
        assert forbidden(harness, given, "/persistentvolumeclaims").startswith("exceeded quota")
    else:
        QUOTAS.admit(write(given, "/persistentvolumeclaims"), harness)


def test_a_growing_claim_is_charged_for_its_growth() -> None:
    old = claim("c", "1Gi")
    harness = World(quotas=[quota(requests_storage="2Gi", persistentvolumeclaims="1")], claims=[old])
    QUOTAS.admit(update(claim("c", "2Gi"), old, "/persistentvolumeclaims"), harness)
    QUOTAS.admit(update(claim("c", "512Mi"), old, "/persistentvolumeclaims"), harness)
    error = refused(QUOTAS.admit, update(claim("c", "3Gi"), old, "/persistentvolumeclaims"), harness)
    assert error.message.endswith(
        "exceeded quota: q, requested: requests.storage=2Gi, used: requests.storage=1Gi, "
        "limited: requests.storage=2Gi"
    )


def test_allocated_storage_counts_if_it_is_more() -> None:
    obj = {**claim("c", "1Gi"), "status": {"allocatedResources": {"storage": "5Gi"}}}
    usage = quota_usage(quota(requests_storage="9Gi"), World(claims=[obj]), NOW)
    assert usage == {"hard": {"requests.storage": "9Gi"}, "used": {"requests.storage": "5Gi"}}


def test_a_replaced_object_is_charged_again() -> None:
    quotas = ResourceQuota(lambda: NOW)
    harness = World(quotas=[quota(cpu="4")])
    for version, cpu, fits in (("1", "3", True), ("1", "3", True), ("2", "4", False), ("3", "1", True)):
        stored = running("a", asking("c", cpu=cpu))
        stored["metadata"]["resourceVersion"] = version
        harness.add("/pods", stored)
        if fits:
            quotas.admit(write(one_cpu()), harness)
        else:
            assert "used: cpu=4" in refused(quotas.admit, write(one_cpu()), harness).message


def test_unknown_resources_are_in_the_status_but_not_used() -> None:
    assert quota_usage(quota(something="1", pods="1"), World(), NOW) == {
        "hard": {"something": "1", "pods": "1"},
        "used": {"pods": "0"},
    }


def test_what_lives_in_no_namespace_is_never_charged() -> None:
    QUOTAS.admit(write(named("n"), "/nodes", namespaced=False), World(quotas=[quota(count__nodes="0")]))


def test_updates_are_looked_at_where_they_can_cost_more() -> None:
    updates = {call.storage for plugin in plugins() for call in plugin.handles if call.operation == "UPDATE"}
    assert updates == {
        "/pods",
        "/services",
        "/persistentvolumeclaims",
        "resource.k8s.io/resourceclaims",
    }
