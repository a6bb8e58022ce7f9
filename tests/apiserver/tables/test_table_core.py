from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.tables.table_rows import an_object, before, row, shown


def service(status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return an_object(spec=spec, status=status or {})


def balanced(*ingress: dict[str, str]) -> dict[str, Any]:
    return {"loadBalancer": {"ingress": list(ingress)}}


def subset(addresses: list[str], *ports: int) -> dict[str, Any]:
    return {"addresses": [{"ip": ip} for ip in addresses], "ports": [{"port": port} for port in ports]}


ROWS: dict[str, tuple[str, str, dict[str, Any], list[Any]]] = {
    "namespace": ("", "Namespace", an_object(status={"phase": "Active"}), ["x", "Active", "5m"]),
    "config map": (
        "",
        "ConfigMap",
        an_object(data={"a": "1", "b": "2"}, binaryData={"c": "Yw=="}),
        ["x", 3, "5m"],
    ),
    "config map, empty": ("", "ConfigMap", an_object(), ["x", 0, "5m"]),
    "secret": ("", "Secret", an_object(type="Opaque", data={"a": "MQ=="}), ["x", "Opaque", 1, "5m"]),
    "service account": ("", "ServiceAccount", an_object(secrets=[{"name": "s"}]), ["x", "5m"]),
    "limit range": ("", "LimitRange", an_object(), ["x", "2026-03-14T11:55:00Z"]),
    "limit range without a time": (
        "",
        "LimitRange",
        {"metadata": {"name": "x"}},
        ["x", "0001-01-01T00:00:00Z"],
    ),
    "quota": (
        "",
        "ResourceQuota",
        an_object(
            status={
                "hard": {
                    "requests.cpu": "4",
                    "limits.memory": "8Gi",
                    "limits.cpu": "8",
                    "limits": "1",
                    "pods": "10",
                },
                "used": {"requests.cpu": "500m", "limits.memory": "1Gi", "pods": "3"},
            }
        ),
        [
            "x",
            "limits: 0/1, pods: 3/10, requests.cpu: 500m/4",
            "limits.cpu: 0/8, limits.memory: 1Gi/8Gi",
            "5m",
        ],
    ),
    "quota, not counted yet": (
        "",
        "ResourceQuota",
        an_object(spec={"hard": {"pods": "1"}}),
        ["x", "", "", "5m"],
    ),
    "service": (
        "",
        "Service",
        service(
            type="ClusterIP",
            clusterIP="10.0.0.1",
            clusterIPs=["10.0.0.1", "fd00::1"],
            ports=[{"port": 80, "protocol": "TCP"}, {"port": 53, "protocol": "UDP", "nodePort": 30053}],
            selector={"b": "2", "a": "1"},
        ),
        ["x", "ClusterIP", "10.0.0.1", "<none>", "80/TCP,53:30053/UDP", "5m", "a=1,b=2"],
    ),
    "service, bare": ("", "Service", service(), ["x", "", "<none>", "<unknown>", "<none>", "5m", "<none>"]),
    "endpoints": (
        "",
        "Endpoints",
        an_object(subsets=[subset(["10.0.0.1", "fd00::1"], 80)]),
        ["x", "10.0.0.1:80,[fd00::1]:80", "5m"],
    ),
    "endpoints, many": (
        "",
        "Endpoints",
        an_object(subsets=[subset(["10.0.0.1", "10.0.0.2"], 80, 443), subset(["10.0.0.3"])]),
        ["x", "10.0.0.1:80,10.0.0.2:80,10.0.0.1:443 + 2 more...", "5m"],
    ),
    "endpoints, one too many": (
        "",
        "Endpoints",
        an_object(subsets=[subset(["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"], 80)]),
        ["x", "10.0.0.1:80,10.0.0.2:80,10.0.0.3:80 + 1 more...", "5m"],
    ),
    "endpoints, without ports": (
        "",
        "Endpoints",
        an_object(subsets=[subset(["10.0.0.3"])]),
        ["x", "10.0.0.3", "5m"],
    ),
    "endpoints, none ready": ("", "Endpoints", an_object(subsets=[subset([], 80)]), ["x", "", "5m"]),
    "endpoints, none": ("", "Endpoints", an_object(), ["x", "<none>", "5m"]),
    "role": ("rbac.authorization.k8s.io", "Role", an_object(), ["x", "2026-03-14T11:55:00Z"]),
    "cluster role": ("rbac.authorization.k8s.io", "ClusterRole", an_object(), ["x", "2026-03-14T11:55:00Z"]),
    "definition": (
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        an_object("widgets.example.com"),
        ["widgets.example.com", "2026-03-14T11:55:00Z"],
    ),
    "role binding": (
        "rbac.authorization.k8s.io",
        "RoleBinding",
        an_object(
            roleRef={"kind": "Role", "name": "reader"},
            subjects=[
                {"kind": "User", "name": "ann"},
                {"kind": "User", "name": "bob"},
                {"kind": "Group", "name": "ops"},
                {"kind": "ServiceAccount", "name": "robot", "namespace": "kube-system"},
            ],
        ),
        ["x", "Role/reader", "5m", "ann, bob", "ops", "kube-system/robot"],
    ),
    "cluster role binding of nobody": (
        "rbac.authorization.k8s.io",
        "ClusterRoleBinding",
        an_object(roleRef={"kind": "ClusterRole", "name": "admin"}),
        ["x", "ClusterRole/admin", "5m", "", "", ""],
    ),
    "a kind that nobody knows": ("example.com", "Widget", an_object(), ["x", "5m"]),
}


@pytest.mark.parametrize(("group", "kind", "obj", "expected"), ROWS.values(), ids=ROWS)
def test_row(group: str, kind: str, obj: dict[str, Any], expected: list[Any]) -> None:
    assert row(group, kind, obj) == expected


EXTERNAL_IPS = {
    "cluster ip": (service(type="ClusterIP", externalIPs=["1.1.1.1", "2.2.2.2"]), "1.1.1.1,2.2.2.2"),
    "node port": (service(type="NodePort"), "<none>"),
    "external name": (service(type="ExternalName", externalName="example.com"), "example.com"),
    "balancer, pending": (service(type="LoadBalancer"), "<pending>"),
    "balancer, long names are not cut": (
        service(
            balanced({"hostname": "a-very-long-name.example.com"}, {"ip": "3.3.3.3"}), type="LoadBalancer"
        ),
        "3.3.3.3,a-very-long-name.example.com",
    ),
    "balancer, and more": (
        service(balanced({"ip": "3.3.3.3"}), type="LoadBalancer", externalIPs=["1.1.1.1"]),
        "3.3.3.3,1.1.1.1",
    ),
    "balancer, only more": (service(type="LoadBalancer", externalIPs=["1.1.1.1"]), "1.1.1.1"),
}


@pytest.mark.parametrize(("obj", "expected"), EXTERNAL_IPS.values(), ids=EXTERNAL_IPS)
def test_external_addresses_of_a_service(obj: dict[str, Any], expected: str) -> None:
    assert shown("", "Service", obj)["External-IP"] == expected


CORE_EVENT = an_object(
    "web.17",
    involvedObject={"kind": "Pod", "name": "web", "fieldPath": "spec.containers{main}"},
    type="Warning",
    reason="BackOff",
    message="  Back-off restarting  \n",
    firstTimestamp=before(hours=3),
    lastTimestamp=before(minutes=2),
    count=7,
    source={"component": "kubelet", "host": "n1"},
)
NEW_EVENT = an_object(
    "web.18",
    involvedObject={"kind": "Pod", "name": "web"},
    type="Normal",
    reason="Scheduled",
    message="Successfully assigned",
    eventTime="2026-03-14T11:59:30.123456Z",
    reportingComponent="default-scheduler",
    reportingInstance="default-scheduler-host",
)
SAME_IN_ITS_OWN_GROUP = an_object(
    "web.18",
    regarding={"kind": "Pod", "name": "web"},
    type="Normal",
    reason="Scheduled",
    note="Successfully assigned",
    eventTime="2026-03-14T11:59:30.123456Z",
    reportingController="default-scheduler",
    reportingInstance="default-scheduler-host",
)
OLD_IN_ITS_OWN_GROUP = an_object(
    "web.17",
    regarding={"kind": "Pod", "name": "web", "fieldPath": "spec.containers{main}"},
    type="Warning",
    reason="BackOff",
    note="Back-off restarting",
    deprecatedFirstTimestamp=before(hours=3),
    deprecatedLastTimestamp=before(minutes=2),
    deprecatedCount=7,
    deprecatedSource={"component": "kubelet", "host": "n1"},
)
OLD_ROW = [
    "2m",
    "Warning",
    "BackOff",
    "pod/web",
    "spec.containers{main}",
    "kubelet, n1",
    "Back-off restarting",
    "3h",
    7,
    "web.17",
]
NEW_ROW = [
    "29s",
    "Normal",
    "Scheduled",
    "pod/web",
    "",
    "default-scheduler, default-scheduler-host",
    "Successfully assigned",
    "29s",
    1,
    "web.18",
]
SERIES = {"series": {"count": 12, "lastObservedTime": "2026-03-14T11:59:50.000000Z"}}

EVENTS = {
    "with times and counts": ("", CORE_EVENT, OLD_ROW),
    "with an event time": ("", NEW_EVENT, NEW_ROW),
    "its own group": ("events.k8s.io", SAME_IN_ITS_OWN_GROUP, NEW_ROW),
    "its own group, with times and counts": ("events.k8s.io", OLD_IN_ITS_OWN_GROUP, OLD_ROW),
    "series": ("", {**NEW_EVENT, **SERIES}, ["10s", *NEW_ROW[1:8], 12, "web.18"]),
    "bare": (
        "",
        an_object(involvedObject={"kind": "Node"}, source={"component": "c"}),
        ["<unknown>", "", "", "node", "", "c", "", "<unknown>", 1, "x"],
    ),
}


@pytest.mark.parametrize(("group", "obj", "expected"), EVENTS.values(), ids=EVENTS)
def test_event(group: str, obj: dict[str, Any], expected: list[Any]) -> None:
    assert row(group, "Event", obj) == expected
