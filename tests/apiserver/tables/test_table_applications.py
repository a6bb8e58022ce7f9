from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.tables.table_rows import an_object, row

CERTIFICATES, NETWORKING, ADMISSION, REGISTRATION = (
    "certificates.k8s.io",
    "networking.k8s.io",
    "admissionregistration.k8s.io",
    "apiregistration.k8s.io",
)


def hosts(*names: str) -> list[dict[str, str]]:
    return [{"host": name} if name else {} for name in names]


def a_metric(kind: str, current: dict[str, Any] | None = None, **target: Any) -> tuple[Any, Any]:
    source = kind[0].lower() + kind[1:]
    metric = {"type": kind, source: {"name": "cpu", "target": target}}
    return metric, {} if current is None else {"type": kind, source: {"current": current}}


def an_autoscaler(*metrics: tuple[Any, Any], **parts: Any) -> dict[str, Any]:
    spec = {
        "maxReplicas": 5,
        "minReplicas": 2,
        "scaleTargetRef": {"kind": "Deployment", "name": "web"},
        "metrics": [metric for metric, _ in metrics],
    }
    status = {"currentReplicas": 3, "currentMetrics": [status for _, status in metrics]}
    return an_object(spec=spec, status=status, **parts)


ROWS: dict[str, tuple[str, str, dict[str, Any], list[Any]]] = {
    "ingress": (
        NETWORKING,
        "Ingress",
        an_object(
            spec={"ingressClassName": "nginx", "rules": hosts("a", "", "b"), "tls": [{}]},
            status={"loadBalancer": {"ingress": [{"ip": "2.2.2.2"}, {"hostname": "h"}, {"ip": "1.1.1.1"}]}},
        ),
        ["x", "nginx", "a,b", "1.1.1.1,2.2.2.2,h", "80, 443", "5m"],
    ),
    "ingress, many hosts": (
        NETWORKING,
        "Ingress",
        an_object(spec={"rules": hosts("a", "", "b", "c", "d")}),
        ["x", "<none>", "a,b,c + 2 more...", "", "80", "5m"],
    ),
    "ingress, three hosts": (
        NETWORKING,
        "Ingress",
        an_object(spec={"rules": hosts("a", "b", "c")}),
        ["x", "<none>", "a,b,c", "", "80", "5m"],
    ),
    "ingress, bare": (NETWORKING, "Ingress", an_object(), ["x", "<none>", "*", "", "80", "5m"]),
    "ingress class": (
        NETWORKING,
        "IngressClass",
        an_object(
            _metadata={"annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}},
            spec={"controller": "a.b/c", "parameters": {"apiGroup": "g.io", "kind": "Kind", "name": "n"}},
        ),
        ["x (default)", "a.b/c", "Kind.g.io/n", "5m"],
    ),
    "ingress class, core parameters": (
        NETWORKING,
        "IngressClass",
        an_object(spec={"controller": "a.b/c", "parameters": {"kind": "Kind", "name": "n"}}),
        ["x", "a.b/c", "Kind/n", "5m"],
    ),
    "ingress class, bare": (NETWORKING, "IngressClass", an_object(), ["x", "", "<none>", "5m"]),
    "network policy": (
        NETWORKING,
        "NetworkPolicy",
        an_object(spec={"podSelector": {"matchLabels": {"app": "web"}}}),
        ["x", "app=web", "5m"],
    ),
    "network policy for all": (
        NETWORKING,
        "NetworkPolicy",
        an_object(spec={"podSelector": {}}),
        ["x", "<none>", "5m"],
    ),
    "endpoint slice": (
        "discovery.k8s.io",
        "EndpointSlice",
        an_object(
            addressType="IPv4",
            ports=[{"port": 80}, {"name": "http"}, {"port": 1}, {"port": 2}],
            endpoints=[{"addresses": ["1", "2"]}, {"addresses": ["3"]}, {"addresses": ["4"]}],
        ),
        ["x", "IPv4", "80,http,1 + 1 more...", "1,2,3 + 1 more...", "5m"],
    ),
    "endpoint slice, empty": (
        "discovery.k8s.io",
        "EndpointSlice",
        an_object(addressType="IPv4", ports=[], endpoints=[]),
        ["x", "IPv4", "<unset>", "<unset>", "5m"],
    ),
    "autoscaler": (
        "autoscaling",
        "HorizontalPodAutoscaler",
        an_autoscaler(
            a_metric("Resource", {"averageUtilization": 7}, averageUtilization=80),
            a_metric("ContainerResource", averageUtilization=50),
        ),
        ["x", "Deployment/web", "cpu: 7%/80%, cpu: <unknown>/50%", "2", 5, 3, "5m"],
    ),
    "autoscaler by amounts": (
        "autoscaling",
        "HorizontalPodAutoscaler",
        an_autoscaler(
            a_metric("Pods", {"averageValue": "3"}, averageValue="5"),
            a_metric("External", {"averageValue": "3"}, averageValue="5"),
            a_metric("Object", value="5"),
        ),
        ["x", "Deployment/web", "3/5, 3/5 (avg) + 1 more...", "2", 5, 3, "5m"],
    ),
    "autoscaler by values": (
        "autoscaling",
        "HorizontalPodAutoscaler",
        an_autoscaler(a_metric("Object", {"value": "3"}, value="5"), a_metric("Resource", averageValue="5")),
        ["x", "Deployment/web", "3/5, cpu: <unknown>/5", "2", 5, 3, "5m"],
    ),
    "autoscaler, bare": (
        "autoscaling",
        "HorizontalPodAutoscaler",
        an_object(),
        ["x", "/", "<none>", "<unset>", 0, 0, "5m"],
    ),
    "webhooks": (
        ADMISSION,
        "ValidatingWebhookConfiguration",
        an_object(webhooks=[{}, {}]),
        ["x", 2, "5m"],
    ),
    "no webhooks": (ADMISSION, "MutatingWebhookConfiguration", an_object(), ["x", 0, "5m"]),
    "validating policy": (
        ADMISSION,
        "ValidatingAdmissionPolicy",
        an_object(spec={"validations": [{}], "paramKind": {"apiVersion": "a/v1", "kind": "K"}}),
        ["x", 1, "a/v1/K", "5m"],
    ),
    "mutating policy": (
        ADMISSION,
        "MutatingAdmissionPolicy",
        an_object(spec={"mutations": [{}]}),
        ["x", 1, "<unset>", "5m"],
    ),
    "binding": (
        ADMISSION,
        "ValidatingAdmissionPolicyBinding",
        an_object(spec={"policyName": "p", "paramRef": {"name": "n"}}),
        ["x", "p", "*/n", "5m"],
    ),
    "binding with a selector": (
        ADMISSION,
        "MutatingAdmissionPolicyBinding",
        an_object(
            spec={
                "policyName": "p",
                "paramRef": {
                    "selector": {
                        "matchLabels": {"a": "b", "c": "d"},
                        "matchExpressions": [{"key": "a", "operator": "In", "values": ["b", "c"]}],
                    }
                },
            }
        ),
        [
            "x",
            "p",
            "&LabelSelector{MatchLabels:map[string]string{a: b,c: d,},"
            "MatchExpressions:[]LabelSelectorRequirement{"
            "LabelSelectorRequirement{Key:a,Operator:In,Values:[b c],},},}",
            "5m",
        ],
    ),
    "API service": (
        REGISTRATION,
        "APIService",
        an_object(
            spec={"service": {"namespace": "a", "name": "b"}},
            status={"conditions": [{"type": "Available", "status": "False", "reason": "Gone"}]},
        ),
        ["x", "a/b", "False (Gone)", "5m"],
    ),
    "API service, local": (
        REGISTRATION,
        "APIService",
        an_object(
            spec={}, status={"conditions": [{"type": "Available", "status": "True", "reason": "Local"}]}
        ),
        ["x", "Local", "True", "5m"],
    ),
    "certificate request": (
        CERTIFICATES,
        "CertificateSigningRequest",
        an_object(
            spec={"signerName": "example.com/a", "username": "bob", "expirationSeconds": 600},
            status={"conditions": [{"type": "Approved"}, {"type": "Failed"}], "certificate": "AAAA"},
        ),
        ["x", "5m", "example.com/a", "bob", "10m", "Approved,Failed,Issued"],
    ),
    "certificate request, bare": (
        CERTIFICATES,
        "CertificateSigningRequest",
        an_object(),
        ["x", "5m", "<none>", "", "<none>", "Pending"],
    ),
    "API service, bare": (REGISTRATION, "APIService", an_object(), ["x", "Local", "Unknown", "5m"]),
}


@pytest.mark.parametrize(("group", "kind", "obj", "cells"), ROWS.values(), ids=ROWS)
def test_rows(group: str, kind: str, obj: dict[str, Any], cells: list[Any]) -> None:
    assert row(group, kind, obj) == cells
