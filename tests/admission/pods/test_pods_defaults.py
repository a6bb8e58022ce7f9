from __future__ import annotations

from typing import Any

import pytest

from moorage.admission.pods.defaults import default_pod, default_pod_template, pull_policy
from moorage.api.manifests import Manifest, copy
from tests.apiserver.pods.pod_builders import a_container, a_pod, defaulted

MINIMAL = {
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "securityContext": {},
    "terminationGracePeriodSeconds": 30,
    "enableServiceLinks": True,
    "containers": [
        {
            "name": "main",
            "image": "registry.k8s.io/pause:3.10",
            "imagePullPolicy": "IfNotPresent",
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            "resources": {},
        }
    ],
}


def test_a_minimal_pod_gets_everything() -> None:
    assert defaulted(a_pod())["spec"] == MINIMAL


def test_a_template_gets_less() -> None:
    container = a_container(resources={"limits": {"cpu": "1"}}, ports=[{"containerPort": 80}])
    template: Manifest = {"spec": {"containers": [container], "hostNetwork": True}}
    default_pod_template(template)
    assert template["metadata"] == {}
    assert "enableServiceLinks" not in template["spec"]
    assert template["spec"]["dnsPolicy"] == "ClusterFirst"
    assert template["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "1"}}
    assert template["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "protocol": "TCP"}]


def test_defaults_are_idempotent() -> None:
    container = a_container(
        ports=[{"containerPort": 80}],
        readinessProbe={"httpGet": {"port": 80}},
        resources={"limits": {"cpu": "1"}},
    )
    volumes = [
        {"name": "a"},
        {"name": "b", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
    ]
    once = defaulted(a_pod(container, volumes=volumes, hostNetwork=True))
    twice = copy(once)
    default_pod(twice)
    assert twice == once


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1.27", "IfNotPresent"),
        ("localhost:5000/nginx", "Always"),
        ("localhost:5000/team/nginx:v1", "IfNotPresent"),
        ("nginx@sha256:" + "a" * 64, "IfNotPresent"),
        ("nginx:latest@sha256:" + "a" * 64, "Always"),
        ("NotAnImage", "IfNotPresent"),
        ("", "IfNotPresent"),
    ],
)
def test_pull_policy_depends_on_the_tag(image: str, policy: str) -> None:
    assert pull_policy(image) == policy


PARTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "limits become requests": (
        {"resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}},
        {
            "resources": {
                "limits": {"cpu": "1", "memory": "1Gi"},
                "requests": {"cpu": "500m", "memory": "1Gi"},
            }
        },
    ),
    "nothing finer than a thousandth": (
        {"resources": {"requests": {"cpu": "1500u", "memory": "999999999n"}}},
        {"resources": {"requests": {"cpu": "2m", "memory": "1"}}},
    ),
    "probes": (
        {"livenessProbe": {"httpGet": {"port": 80}}, "startupProbe": {"grpc": {"port": 81}}},
        {
            "livenessProbe": {
                "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
                "timeoutSeconds": 1,
                "periodSeconds": 10,
                "successThreshold": 1,
                "failureThreshold": 3,
            },
            "startupProbe": {
                "grpc": {"port": 81, "service": ""},
                "timeoutSeconds": 1,
                "periodSeconds": 10,
                "successThreshold": 1,
                "failureThreshold": 3,
            },
        },
    ),
    "hooks": (
        {"lifecycle": {"preStop": {"httpGet": {"port": "web", "path": "/bye"}}}},
        {"lifecycle": {"preStop": {"httpGet": {"port": "web", "path": "/bye", "scheme": "HTTP"}}}},
    ),
    "variables": (
        {
            "env": [
                {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "B", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
                {"name": "C", "valueFrom": {"fileKeyRef": {"key": "k", "path": "p", "volumeName": "v"}}},
            ]
        },
        {
            "env": [
                {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name", "apiVersion": "v1"}}},
                {"name": "B", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "0"}}},
                {
                    "name": "C",
                    "valueFrom": {
                        "fileKeyRef": {"key": "k", "path": "p", "volumeName": "v", "optional": False}
                    },
                },
            ]
        },
    ),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts_of_containers(name: str) -> None:
    given, expected = PARTS[name]
    container = defaulted(a_pod(a_container(**given)))["spec"]["containers"][0]
    assert {key: container[key] for key in expected} == expected


VOLUMES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "none is an empty directory": ({}, {"emptyDir": {}}),
    "host path": ({"hostPath": {"path": "/x"}}, {"hostPath": {"path": "/x", "type": ""}}),
    "secret": ({"secret": {"secretName": "s"}}, {"secret": {"secretName": "s", "defaultMode": 420}}),
    "config map": ({"configMap": {"defaultMode": 0}}, {"configMap": {"defaultMode": 0}}),
    "downward API": (
        {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}]}},
        {
            "downwardAPI": {
                "items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name", "apiVersion": "v1"}}],
                "defaultMode": 420,
            }
        },
    ),
    "projected token": (
        {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
        {
            "projected": {
                "sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}}],
                "defaultMode": 420,
            }
        },
    ),
    "claim template": (
        {"ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}},
        {
            "ephemeral": {
                "volumeClaimTemplate": {
                    "metadata": {},
                    "spec": {"accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem", "resources": {}},
                }
            }
        },
    ),
    "image": ({"image": {"reference": "a/b"}}, {"image": {"reference": "a/b", "pullPolicy": "Always"}}),
    "azure disk": (
        {"azureDisk": {"diskName": "d", "diskURI": "u", "readOnly": True}},
        {
            "azureDisk": {
                "diskName": "d",
                "diskURI": "u",
                "readOnly": True,
                "cachingMode": "ReadWrite",
                "fsType": "ext4",
                "kind": "Shared",
            }
        },
    ),
}


@pytest.mark.parametrize("name", VOLUMES)
def test_volumes(name: str) -> None:
    given, expected = VOLUMES[name]
    pod = defaulted(a_pod(volumes=[{"name": "v", **given}]))
    assert pod["spec"]["volumes"] == [{"name": "v", **expected}]


def test_host_network_opens_the_ports_on_the_host() -> None:
    container = a_container(ports=[{"containerPort": 80}, {"containerPort": 81, "hostPort": 8081}])
    ports = defaulted(a_pod(container, hostNetwork=True))["spec"]["containers"][0]["ports"]
    assert [port["hostPort"] for port in ports] == [80, 8081]


@pytest.mark.parametrize("key", ["serviceAccount", "serviceAccountName"])
def test_both_names_of_the_service_account_agree(key: str) -> None:
    pod = a_pod()
    pod["spec"][key] = "robot"
    spec = defaulted(pod)["spec"]
    assert spec["serviceAccount"] == spec["serviceAccountName"] == "robot"


def test_pod_level_resources_come_from_limits_and_containers() -> None:
    first = a_container(resources={"requests": {"cpu": "500m", "memory": "64Mi"}})
    second = a_container(name="other", resources={"requests": {"cpu": "600m", "memory": "64Mi"}})
    limits = {"cpu": "2", "memory": "1Gi", "hugepages-2Mi": "4Mi"}
    spec = defaulted(a_pod(first, second, resources={"limits": limits}))["spec"]
    assert spec["resources"]["requests"] == {"cpu": "1100m", "memory": "128Mi", "hugepages-2Mi": "4Mi"}
    assert spec["resources"]["limits"] == limits


def test_pod_level_resources_count_the_peak_of_init_containers_and_sidecars() -> None:
    inits = [
        a_container(name="side", restartPolicy="Always", resources={"requests": {"cpu": "1"}}),
        a_container(name="once", resources={"requests": {"cpu": "5"}}),
    ]
    main = a_container(resources={"requests": {"cpu": "2"}})
    spec = defaulted(a_pod(main, initContainers=inits, resources={"limits": {"cpu": "8"}}))["spec"]
    assert spec["resources"]["requests"] == {"cpu": "6"}


def test_status_gets_both_spellings_of_addresses_and_whole_container_statuses() -> None:
    pod = a_pod()
    pod["status"] = {"podIP": "10.0.0.1", "hostIP": "10.1.0.1", "containerStatuses": [{"name": "main"}]}
    status = defaulted(pod)["status"]
    assert status["podIPs"] == [{"ip": "10.0.0.1"}]
    assert status["containerStatuses"] == [
        {
            "name": "main",
            "state": {},
            "lastState": {},
            "ready": False,
            "restartCount": 0,
            "image": "",
            "imageID": "",
        }
    ]
