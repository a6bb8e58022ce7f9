"""A pod that is created without a server is what a server stores, or is refused as by a server."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from moorage.admission.plugin import PODS, Call
from moorage.admission.pod_creation import POD_PLUGINS, PodCreation
from moorage.api.decode import InputError
from moorage.api.manifests import Manifest
from moorage.http.api_error import ApiError
from moorage_cluster.apiserver.admission.default_plugins import default_plugins
from tests.apiserver.client import Cluster
from tests.builders import container, pod, pod_term, spread

CLUSTER: dict[str, Manifest] = {
    "/api/v1/namespaces/default/limitranges": {
        "kind": "LimitRange",
        "metadata": {"name": "bounds", "namespace": "default"},
        "spec": {"limits": [{"type": "Container", "max": {"memory": "2Gi"}, "min": {"cpu": "10m"}}]},
    },
    "/apis/scheduling.k8s.io/v1/priorityclasses": {
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 1000,
    },
    "/apis/node.k8s.io/v1/runtimeclasses": {
        "kind": "RuntimeClass",
        "metadata": {"name": "vm"},
        "handler": "vm",
        "overhead": {"podFixed": {"cpu": "250m"}},
        "scheduling": {
            "nodeSelector": {"runtime": "vm"},
            "tolerations": [{"key": "vm", "operator": "Exists"}],
        },
    },
    "/api/v1/nodes": {
        "kind": "Node",
        "metadata": {"name": "a", "labels": {"topology.kubernetes.io/zone": "z"}},
    },
}
OF_SERVICE_ACCOUNTS = ("serviceAccount", "serviceAccountName")
LEFT_OUT = ("ServiceAccount", "ResourceQuota")
SELECTED = {"matchLabels": {"app": "x"}}


def new_pod(*, resources: Manifest | None = None, ports: Any = None, **spec: Any) -> Manifest:
    """A pod as users write it, without the volume of a service account's token."""
    main = container(name="main", image="registry.example/x", resources=resources, ports=ports)
    made = pod("p", containers=[main], automount_service_account_token=False, **spec)
    del made["status"]
    return made


ACCEPTED = {
    "nothing asked for": new_pod(),
    "limits": new_pod(resources={"limits": {"cpu": "12500u", "memory": "1Gi"}}),
    "priority": new_pod(priority_class_name="high", node_selector={"disk": "ssd"}),
    "system priority": new_pod(priority_class_name="system-node-critical"),
    "runtime": new_pod(runtime_class_name="vm"),
    "on a node": new_pod(on="a", labels={"app": "x"}),
    "tolerations": new_pod(tolerations=[{"operator": "Exists", "effect": "NoExecute"}]),
    "host network": new_pod(host_network=True, ports=[{"containerPort": 80}]),
    "label keys": new_pod(
        labels={"app": "x", "version": "2"},
        topology_spread_constraints=[spread("zone", SELECTED, match_label_keys=["version"])],
        affinity={
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    pod_term("zone", SELECTED, mismatch_label_keys=["version"])
                ]
            }
        },
    ),
    "volumes": new_pod(
        volumes=[
            {"name": "config", "configMap": {"name": "c"}},
            {
                "name": "scratch",
                "ephemeral": {
                    "volumeClaimTemplate": {
                        "spec": {
                            "accessModes": ["ReadWriteOnce"],
                            "resources": {"requests": {"storage": "1Gi"}},
                        }
                    }
                },
            },
        ]
    ),
}
REFUSED = {
    "no containers": pod("p", containers=[]),
    "bad name": {**new_pod(), "metadata": {"name": "P", "namespace": "default"}},
    "bad label": new_pod(labels={"a b": "c"}),
    "unknown field": new_pod(node_selektor={"a": "b"}),
    "wrong type": new_pod(host_network="yes"),
    "too much": new_pod(resources={"limits": {"memory": "3Gi"}}),
    "unknown class": new_pod(priority_class_name="none"),
    "unknown runtime": new_pod(runtime_class_name="none"),
    "no such namespace": {**new_pod(), "metadata": {"name": "p", "namespace": "none"}},
}


@pytest.fixture(scope="module")
def server() -> Iterator[Cluster]:
    """A server with the objects of the cluster."""
    cluster = Cluster()
    for path, manifest in CLUSTER.items():
        cluster.create(path, manifest)
    yield cluster
    cluster.close()


def creation() -> PodCreation:
    known = {"kind": "Namespace", "metadata": {"name": "default"}}
    return PodCreation([(manifest, "") for manifest in (*CLUSTER.values(), known)])


def path_of(manifest: Manifest) -> str:
    return f"/api/v1/namespaces/{manifest['metadata']['namespace']}/pods"


@pytest.mark.parametrize("manifest", ACCEPTED.values(), ids=ACCEPTED)
def test_it_is_what_a_server_stores(manifest: Manifest, server: Cluster) -> None:
    stored = server.post(path_of(manifest), manifest, dryRun="All", fieldValidation="Strict").json
    spec = {key: value for key, value in stored["spec"].items() if key not in OF_SERVICE_ACCOUNTS}
    made = creation().created(manifest)
    assert made["spec"] == spec
    for key in ("labels", "annotations", "name", "namespace"):
        assert made["metadata"].get(key) == stored["metadata"].get(key)


@pytest.mark.parametrize("manifest", REFUSED.values(), ids=REFUSED)
def test_it_is_refused_as_by_a_server(manifest: Manifest, server: Cluster) -> None:
    answer = server.post(path_of(manifest), manifest, dryRun="All", fieldValidation="Strict")
    with pytest.raises(ApiError) as refused:
        creation().created(manifest)
    assert (refused.value.code, refused.value.message) == (answer.code, answer.message)


def test_the_plugins_are_those_of_a_server_in_its_order() -> None:
    """But for those that no decision depends on."""
    new = Call("CREATE", PODS)
    plugins = [each for each in default_plugins(Random(1)) if any(call.covers(new) for call in each.handles)]
    mine = [each for each in POD_PLUGINS if any(call.covers(new) for call in each.handles)]
    assert mine == [each for each in plugins if each.name not in LEFT_OUT]


def test_a_manifest_is_not_changed_and_metadata_of_servers_is_dropped() -> None:
    manifest = new_pod()
    manifest["metadata"] |= {
        "generation": 7,
        "managedFields": [],
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    before = repr(manifest)
    assert set(creation().created(manifest)["metadata"]) <= {"name", "namespace", "annotations"}
    assert repr(manifest) == before


@pytest.mark.parametrize(
    "manifest", [None, 5, [], {}, {"kind": ["Node"]}, {"kind": "Node", "apiVersion": "v2"}]
)
def test_what_admission_does_not_read_is_ignored(manifest: Any) -> None:
    assert PodCreation([(manifest, "")]).created(new_pod(on="a"))["spec"]["nodeName"] == "a"


def test_an_object_that_cannot_be_read_is_named() -> None:
    wrong = {"kind": "PriorityClass", "metadata": {"name": "high"}, "value": "much"}
    with pytest.raises(InputError, match=r'^cluster\.yaml: PriorityClass in version "v1" cannot be handled'):
        PodCreation([(wrong, "cluster.yaml")])
