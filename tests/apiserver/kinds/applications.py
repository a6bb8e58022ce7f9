"""The kinds that applications bring beside their workloads: strategies, and the smallest valid objects."""

from __future__ import annotations

from typing import Any

from moorage.api.manifests import Manifest
from moorage_cluster.apiserver.kinds.admission_policies import (
    MutatingAdmissionPolicyBindingStrategy,
    MutatingAdmissionPolicyStrategy,
    ValidatingAdmissionPolicyBindingStrategy,
    ValidatingAdmissionPolicyStrategy,
)
from moorage_cluster.apiserver.kinds.admission_webhooks import (
    MutatingWebhookConfigurationStrategy,
    ValidatingWebhookConfigurationStrategy,
)
from moorage_cluster.apiserver.kinds.api_services import APIServiceStrategy
from moorage_cluster.apiserver.kinds.autoscalers import AutoscalerStrategy, AutoscalerV1Strategy
from moorage_cluster.apiserver.kinds.endpoint_slices import EndpointSliceStrategy
from moorage_cluster.apiserver.kinds.ingresses import IngressClassStrategy, IngressStrategy
from moorage_cluster.apiserver.kinds.network_policies import NetworkPolicyStrategy
from tests.apiserver.kinds.object_builders import an_object

POLICY, INGRESS, CLASS, SLICE = (
    NetworkPolicyStrategy(),
    IngressStrategy(),
    IngressClassStrategy(),
    EndpointSliceStrategy(),
)
SCALER, SCALER_V1 = AutoscalerStrategy(), AutoscalerV1Strategy()
VALIDATING, MUTATING = ValidatingWebhookConfigurationStrategy(), MutatingWebhookConfigurationStrategy()
VALIDATING_POLICY, MUTATING_POLICY = ValidatingAdmissionPolicyStrategy(), MutatingAdmissionPolicyStrategy()
VALIDATING_BINDING, MUTATING_BINDING = (
    ValidatingAdmissionPolicyBindingStrategy(),
    MutatingAdmissionPolicyBindingStrategy(),
)
API_SERVICE = APIServiceStrategy()
BACKEND = {"service": {"name": "web", "port": {"number": 80}}}
DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
RULE = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
CONSTRAINTS = {"resourceRules": [RULE]}
EVERYTHING = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}
CPU = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}


def a_scaler(**spec: Any) -> Manifest:
    return an_object({"maxReplicas": 3, "scaleTargetRef": DEPLOYMENT, **spec})


def a_metric(kind: str, **source: Any) -> Manifest:
    return a_scaler(metrics=[{"type": kind, kind[0].lower() + kind[1:]: source}])


def a_webhook(**fields: Any) -> Manifest:
    hook = {
        "name": "a.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"url": "https://example.com/a"},
        **fields,
    }
    return an_object(webhooks=[{key: value for key, value in hook.items() if value is not None}])


def a_policy(**spec: Any) -> Manifest:
    return an_object({"matchConstraints": CONSTRAINTS, "validations": [{"expression": "true"}], **spec})


def a_mutation(*mutations: Manifest, **spec: Any) -> Manifest:
    patch = {"patchType": "JSONPatch", "jsonPatch": {"expression": "[]"}}
    return an_object(
        {
            "matchConstraints": CONSTRAINTS,
            "reinvocationPolicy": "Never",
            "mutations": list(mutations) or [patch],
            **spec,
        }
    )


def an_api_service(name: str = "v1.example.com", **spec: Any) -> Manifest:
    whole = {"group": "example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1, **spec}
    return an_object(whole, meta={"name": name})
