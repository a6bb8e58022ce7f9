from __future__ import annotations

from typing import Any

from kubernetes import client

from tests.apiserver.python_client.client_objects import deployment, done, pod, refused


def bind(core: client.CoreV1Api, namespace: str, name: str, node: str = "n") -> None:
    body = {"metadata": {"name": name}, "target": {"apiVersion": "v1", "kind": "Node", "name": node}}
    # The client would read the answer, a Status, as a Binding and fail: a known fault of its own.
    done(core.create_namespaced_pod_binding(name, namespace, body, _preload_content=False))


def test_binding(core: client.CoreV1Api, namespace: str) -> None:
    core.create_namespaced_pod(namespace, pod("a"))
    bind(core, namespace, "a")
    bound = core.read_namespaced_pod("a", namespace)
    assert bound.spec.node_name == "n"
    assert [(one.type, one.status) for one in bound.status.conditions] == [("PodScheduled", "True")]
    with refused(409, "Conflict") as refusal:
        bind(core, namespace, "a", "other")
    assert refusal.message == (
        'Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "n"'
    )
    with refused(404, "NotFound"):
        bind(core, namespace, "absent")
    core.delete_namespaced_pod("a", namespace, grace_period_seconds=0)


def test_gated_pod_is_not_bound(core: client.CoreV1Api, namespace: str) -> None:
    core.create_namespaced_pod(namespace, pod("a", schedulingGates=[{"name": "example.com/wait"}]))
    with refused(409, "Conflict"):
        bind(core, namespace, "a")
    core.patch_namespaced_pod(
        "a", namespace, [{"op": "remove", "path": "/spec/schedulingGates"}],
        _content_type="application/json-patch+json",
    )  # fmt: skip
    bind(core, namespace, "a")
    core.delete_namespaced_pod("a", namespace, grace_period_seconds=0)


def test_eviction_asks_the_budget(api: client.ApiClient, namespace: str) -> None:
    core, policy = client.CoreV1Api(api), client.PolicyV1Api(api)
    core.create_namespaced_pod(namespace, pod("a", nodeName="n"))
    core.patch_namespaced_pod_status("a", namespace, {"status": {"phase": "Running"}})
    budget = {
        "metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}},
    }
    policy.create_namespaced_pod_disruption_budget(namespace, budget)
    eviction: dict[str, Any] = {"metadata": {"name": "a", "namespace": namespace}}
    with refused(429, "TooManyRequests") as refusal:
        core.create_namespaced_pod_eviction("a", namespace, eviction)
    assert refusal.message == "Cannot evict pod as it would violate the pod's disruption budget."
    policy.delete_namespaced_pod_disruption_budget("b", namespace)
    assert done(core.create_namespaced_pod_eviction("a", namespace, eviction, _preload_content=False)) == 201
    evicted = core.read_namespaced_pod("a", namespace)
    assert evicted.metadata.deletion_timestamp
    assert "DisruptionTarget" in [one.type for one in evicted.status.conditions]
    core.delete_namespaced_pod("a", namespace, grace_period_seconds=0)


def test_status(core: client.CoreV1Api, namespace: str) -> None:
    core.create_namespaced_pod(namespace, pod("a"))
    patch = {"spec": {"schedulerName": "other"}, "status": {"phase": "Running", "podIP": "10.0.0.1"}}
    written = core.patch_namespaced_pod_status("a", namespace, patch)
    assert (written.status.phase, written.status.pod_ip) == ("Running", "10.0.0.1")
    assert written.spec.scheduler_name == "default-scheduler"
    assert core.read_namespaced_pod_status("a", namespace).status.phase == "Running"


def test_scale(api: client.ApiClient, namespace: str) -> None:
    apps = client.AppsV1Api(api)
    apps.create_namespaced_deployment(namespace, deployment("a", replicas=2))
    scale = apps.read_namespaced_deployment_scale("a", namespace)
    assert (scale.kind, scale.spec.replicas, scale.status.selector) == ("Scale", 2, "app=a")
    scale.spec.replicas = 5
    assert apps.replace_namespaced_deployment_scale("a", namespace, scale).spec.replicas == 5
    with refused(409, "Conflict"):
        apps.replace_namespaced_deployment_scale("a", namespace, scale)
    apps.patch_namespaced_deployment_scale("a", namespace, {"spec": {"replicas": 7}})
    scaled = apps.read_namespaced_deployment("a", namespace)
    assert (scaled.spec.replicas, scaled.metadata.generation) == (7, 3)
    with refused(422, "Invalid"):
        apps.patch_namespaced_deployment_scale("a", namespace, {"spec": {"replicas": -1}})


def test_ephemeral_containers(core: client.CoreV1Api, namespace: str) -> None:
    core.create_namespaced_pod(namespace, pod("a"))
    debugger = {"name": "debug", "image": "registry.example/debug:1"}
    made = core.patch_namespaced_pod_ephemeralcontainers(
        "a", namespace, {"spec": {"ephemeralContainers": [debugger]}}
    )
    assert [one.name for one in made.spec.ephemeral_containers] == ["debug"]
    with refused(422, "Invalid"):
        core.patch_namespaced_pod(
            "a", namespace, {"spec": {"ephemeralContainers": [{**debugger, "name": "x"}]}}
        )


def test_resize(core: client.CoreV1Api, namespace: str) -> None:
    body = pod("a")
    body["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}
    core.create_namespaced_pod(namespace, body)
    bigger = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1500m"}}}]}}
    with refused(422, "Invalid"):
        core.patch_namespaced_pod("a", namespace, bigger)
    made = core.patch_namespaced_pod_resize("a", namespace, bigger)
    assert made.spec.containers[0].resources.requests == {"cpu": "1500m"}


def test_log_of_a_pod_without_a_kubelet(core: client.CoreV1Api, namespace: str) -> None:
    core.create_namespaced_pod(namespace, pod("a"))
    with refused(400, "BadRequest") as refusal:
        core.read_namespaced_pod_log("a", namespace)
    assert 'container "main" in pod "a" is waiting to start' in refusal.message
    with refused(404, "NotFound"):
        core.read_namespaced_pod_log("absent", namespace)


def test_token(core: client.CoreV1Api, namespace: str) -> None:
    issued = core.create_namespaced_service_account_token("default", namespace, {"spec": {}})
    assert issued.status.token.count(".") == 2
