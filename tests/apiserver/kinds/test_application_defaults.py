"""What applications bring beside their workloads: what is filled in, and what is warned about."""

from __future__ import annotations

import pytest

from moorage.api.manifests import Manifest
from moorage_cluster.apiserver.strategy import Strategy
from tests.apiserver.kinds.applications import (
    API_SERVICE,
    BACKEND,
    CLASS,
    CPU,
    EVERYTHING,
    INGRESS,
    MUTATING,
    POLICY,
    SCALER,
    SCALER_V1,
    SLICE,
    VALIDATING,
    VALIDATING_BINDING,
    VALIDATING_POLICY,
    a_policy,
    a_webhook,
    an_api_service,
)
from tests.apiserver.kinds.object_builders import an_object, created

DEFAULTS: dict[str, tuple[Strategy, Manifest, Manifest]] = {
    "network policy": (POLICY, {"spec": {}}, {"spec": {"podSelector": {}, "policyTypes": ["Ingress"]}}),
    "network policy for both ways": (
        POLICY,
        {"spec": {"ingress": [{"ports": [{"port": 80}]}], "egress": [{}]}},
        {
            "spec": {
                "podSelector": {},
                "policyTypes": ["Ingress", "Egress"],
                "ingress": [{"ports": [{"port": 80, "protocol": "TCP"}]}],
                "egress": [{}],
            }
        },
    ),
    "ingress": (
        INGRESS,
        {"spec": {"defaultBackend": BACKEND}, "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}},
        {"spec": {"defaultBackend": BACKEND}, "status": {"loadBalancer": {}}},
    ),
    "ingress class": (
        CLASS,
        {"spec": {"controller": "a.b/c", "parameters": {"kind": "A", "name": "a"}}},
        {"spec": {"controller": "a.b/c", "parameters": {"kind": "A", "name": "a", "scope": "Cluster"}}},
    ),
    "endpoint slice": (
        SLICE,
        {
            "addressType": "IPv4",
            "ports": [{"port": 80}],
            "endpoints": [{"addresses": ["10.0.0.1"], "deprecatedTopology": {"a": "b"}}],
        },
        {
            "addressType": "IPv4",
            "ports": [{"port": 80, "name": "", "protocol": "TCP"}],
            "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {}}],
        },
    ),
    "autoscaler": (
        SCALER,
        {"spec": {"maxReplicas": 3}},
        {
            "spec": {"maxReplicas": 3, "minReplicas": 1, "metrics": [CPU]},
            "status": {"currentMetrics": [], "desiredReplicas": 0},
        },
    ),
    "autoscaler with behavior": (
        SCALER,
        {"spec": {"metrics": [CPU], "behavior": {"scaleUp": {"selectPolicy": "Min"}}}},
        {
            "spec": {
                "minReplicas": 1,
                "metrics": [CPU],
                "behavior": {
                    "scaleUp": {
                        "stabilizationWindowSeconds": 0,
                        "selectPolicy": "Min",
                        "policies": [
                            {"type": "Pods", "value": 4, "periodSeconds": 15},
                            {"type": "Percent", "value": 100, "periodSeconds": 15},
                        ],
                    },
                    "scaleDown": {
                        "selectPolicy": "Max",
                        "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
                    },
                },
            },
            "status": {"currentMetrics": [], "desiredReplicas": 0},
        },
    ),
    "autoscaler of autoscaling/v1": (
        SCALER_V1,
        {"spec": {"maxReplicas": 3}},
        {
            "apiVersion": "autoscaling/v1",
            "spec": {"maxReplicas": 3, "minReplicas": 1, "targetCPUUtilizationPercentage": 80},
            "status": {"currentReplicas": 0, "desiredReplicas": 0},
        },
    ),
    "validating webhook": (
        VALIDATING,
        {"webhooks": [{"name": "a", "clientConfig": {"service": {"name": "a"}}, "rules": [{}]}]},
        {
            "webhooks": [
                {
                    "name": "a",
                    "clientConfig": {"service": {"name": "a", "port": 443}},
                    "failurePolicy": "Fail",
                    "timeoutSeconds": 10,
                    "rules": [{"scope": "*"}],
                    **EVERYTHING,
                }
            ]
        },
    ),
    "mutating webhook": (
        MUTATING,
        {"webhooks": [{"name": "a"}]},
        {
            "webhooks": [
                {
                    "name": "a",
                    "clientConfig": {},
                    "failurePolicy": "Fail",
                    "timeoutSeconds": 10,
                    "reinvocationPolicy": "Never",
                    **EVERYTHING,
                }
            ]
        },
    ),
    "validating policy": (
        VALIDATING_POLICY,
        {"spec": {"matchConstraints": {"resourceRules": [{}]}}},
        {
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": [{"scope": "*"}], **EVERYTHING},
            },
            "status": {},
        },
    ),
    "binding of a policy": (
        VALIDATING_BINDING,
        {"spec": {"policyName": "a", "matchResources": {}}},
        {"spec": {"policyName": "a", "matchResources": EVERYTHING}},
    ),
    "API service": (
        API_SERVICE,
        {"spec": {"service": {"name": "a"}}},
        {"spec": {"service": {"name": "a", "port": 443}}, "status": {}},
    ),
}


@pytest.mark.parametrize(("strategy", "sent", "wanted"), DEFAULTS.values(), ids=DEFAULTS)
def test_what_is_left_out_is_filled_in(strategy: Strategy, sent: Manifest, wanted: Manifest) -> None:
    new = created(strategy, {"metadata": {"name": "a"}, **sent})
    metadata = new.pop("metadata")
    assert new == wanted
    assert metadata == {"name": "a", **({"generation": 1} if strategy.has_generation else {})}


WARNED: dict[str, tuple[Strategy, Manifest, list[str]]] = {
    "webhooks": (
        VALIDATING, a_webhook(), ["admission webhooks are stored but not called by this server"],
    ),
    "no webhooks": (VALIDATING, an_object(), []),
    "a policy": (
        VALIDATING_POLICY,
        a_policy(),
        ["admission policies are stored but not evaluated by this server"],
    ),
    "an API service": (
        API_SERVICE,
        an_api_service(service={"name": "a", "namespace": "b"}),
        ["API services are stored but no request is passed on to them by this server"],
    ),
    "an ingress with the old annotation": (
        INGRESS,
        an_object({"defaultBackend": BACKEND}, meta={"annotations": {"kubernetes.io/ingress.class": "b"}}),
        [
            "annotation \"kubernetes.io/ingress.class\" is deprecated, please use 'spec.ingressClassName' "
            "instead"
        ],
    ),
    "host names": (SLICE, an_object(addressType="FQDN"), ["spec.addressType: FQDN endpoints are deprecated"]),
}  # fmt: skip


@pytest.mark.parametrize(("strategy", "obj", "warnings"), WARNED.values(), ids=WARNED)
def test_what_will_not_do_as_expected_is_warned_about(
    strategy: Strategy, obj: Manifest, warnings: list[str]
) -> None:
    assert strategy.warnings(created(strategy, obj), None) == warnings
