"""What applications bring beside their workloads, as the server stores, shows, patches and deletes it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.apiserver.client import Cluster

AUTOSCALERS = "/apis/autoscaling/{}/namespaces/default/horizontalpodautoscalers"
V1, V2 = AUTOSCALERS.format("v1"), AUTOSCALERS.format("v2")
METRICS = "autoscaling.alpha.kubernetes.io/metrics"
BEHAVIOR = "autoscaling.alpha.kubernetes.io/behavior"
STATUSES = "autoscaling.alpha.kubernetes.io/current-metrics"
CONDITIONS = "autoscaling.alpha.kubernetes.io/conditions"
INGRESSES = "/apis/networking.k8s.io/v1/namespaces/default/ingresses"
CLASSES = "/apis/networking.k8s.io/v1/ingressclasses"
POLICIES = "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies"
BACKEND = {"service": {"name": "web", "port": {"number": 80}}}


def cpu(percent: int) -> dict[str, Any]:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def an_autoscaler(annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    meta = {"name": "web", "annotations": annotations} if annotations else {"name": "web"}
    return {"metadata": meta, "spec": {"maxReplicas": 3, "scaleTargetRef": target, **spec}}


# Each source in the form of autoscaling/v2, and as the annotation of autoscaling/v1 has it.
SOURCES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "pods": (
        {
            "type": "Pods",
            "pods": {"metric": {"name": "a"}, "target": {"type": "AverageValue", "averageValue": "5"}},
        },
        {"type": "Pods", "pods": {"metricName": "a", "targetAverageValue": "5"}},
    ),
    "resource": (
        {
            "type": "Resource",
            "resource": {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 50}},
        },
        {"type": "Resource", "resource": {"name": "memory", "targetAverageUtilization": 50}},
    ),
    "container": (
        {
            "type": "ContainerResource",
            "containerResource": {
                "name": "cpu",
                "container": "main",
                "target": {"type": "AverageValue", "averageValue": "5"},
            },
        },
        {
            "type": "ContainerResource",
            "containerResource": {"name": "cpu", "container": "main", "targetAverageValue": "5"},
        },
    ),
    "object": (
        {
            "type": "Object",
            "object": {
                "describedObject": {"kind": "Service", "name": "web", "apiVersion": "v1"},
                "metric": {"name": "a", "selector": {"matchLabels": {"a": "b"}}},
                "target": {"type": "AverageValue", "averageValue": "5"},
            },
        },
        {
            "type": "Object",
            "object": {
                "target": {"kind": "Service", "name": "web", "apiVersion": "v1"},
                "metricName": "a",
                "selector": {"matchLabels": {"a": "b"}},
                "targetValue": "0",
                "averageValue": "5",
            },
        },
    ),
    "external": (
        {
            "type": "External",
            "external": {"metric": {"name": "a"}, "target": {"type": "Value", "value": "5"}},
        },
        {"type": "External", "external": {"metricName": "a", "targetValue": "5"}},
    ),
}


@pytest.mark.parametrize(("new", "old"), SOURCES.values(), ids=SOURCES)
def test_metrics_have_a_form_in_both_versions(cluster: Cluster, new: Any, old: Any) -> None:
    cluster.create(V2, an_autoscaler(metrics=[new, cpu(40)]))
    shown = cluster.get(f"{V1}/web").json
    assert shown["spec"]["targetCPUUtilizationPercentage"] == 40
    assert json.loads(shown["metadata"]["annotations"][METRICS]) == [old]
    cluster.delete(f"{V2}/web")
    cluster.create(V1, an_autoscaler({METRICS: json.dumps([old])}, targetCPUUtilizationPercentage=40))
    assert cluster.get(f"{V2}/web").json["spec"]["metrics"] == [new, cpu(40)]


def test_the_older_version_keeps_the_rest_in_annotations(cluster: Cluster) -> None:
    policy = {"type": "Pods", "value": 4, "periodSeconds": 15}
    cluster.create(V2, an_autoscaler(behavior={"scaleUp": {"policies": [policy]}}))
    status = {
        "currentReplicas": 2,
        "desiredReplicas": 3,
        "conditions": [{"type": "AbleToScale", "status": "True"}],
        "currentMetrics": [
            {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 7}}}
        ],
    }
    before = cluster.patch(f"{V2}/web/status", "merge", {"status": status}).json
    shown = cluster.get(f"{V1}/web").json
    assert shown["status"] == {
        "currentReplicas": 2,
        "desiredReplicas": 3,
        "currentCPUUtilizationPercentage": 7,
    }
    texts = {key: json.loads(text) for key, text in shown["metadata"]["annotations"].items()}
    assert texts[CONDITIONS] == status["conditions"]
    assert texts[STATUSES] == [
        {
            "type": "Resource",
            "resource": {"name": "cpu", "currentAverageUtilization": 7, "currentAverageValue": "0"},
        }
    ]
    assert texts[BEHAVIOR]["ScaleUp"] == {
        "StabilizationWindowSeconds": 0,
        "SelectPolicy": "Max",
        "Policies": [{"Type": "Pods", "Value": 4, "PeriodSeconds": 15}],
        "Tolerance": None,
    }
    answer = cluster.patch(f"{V1}/web", "merge", {"spec": {"maxReplicas": 5}})
    assert answer["metadata"]["annotations"].keys() == shown["metadata"]["annotations"].keys()
    after = cluster.get(f"{V2}/web").json
    assert answer["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]
    assert "annotations" not in after["metadata"]
    assert after["spec"] == {**before["spec"], "maxReplicas": 5}


@pytest.mark.parametrize("text", ["{", "5", '[{"pods": 5}]', '[{"pods": {"metricName": 5}}]', "[" * 100_000])
def test_annotations_that_say_nothing_are_ignored(cluster: Cluster, text: str) -> None:
    cluster.create(V1, an_autoscaler({METRICS: text, BEHAVIOR: text, STATUSES: text, CONDITIONS: text}))
    assert cluster.get(f"{V2}/web").json["spec"]["metrics"] == [cpu(80)]


def test_both_versions_show_the_same_table(cluster: Cluster) -> None:
    cluster.create(V2, an_autoscaler(metrics=[SOURCES["pods"][0], SOURCES["external"][0], cpu(40)]))
    accept = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    rows = [cluster.request("GET", path, headers=accept)["rows"][0]["cells"] for path in (V1, V2)]
    assert rows[0][:-1] == ["web", "Deployment/web", "<unknown>/5, <unknown>/5 + 1 more...", "1", 3, 0]
    assert rows[0] == rows[1]


def test_an_ingress_without_a_class_gets_the_newest_default(cluster: Cluster) -> None:
    default = {"ingressclass.kubernetes.io/is-default-class": "true"}
    for name, notes in (("old", default), ("new", default), ("other", {})):
        meta = {"name": name, "annotations": notes}
        cluster.create(CLASSES, {"metadata": meta, "spec": {"controller": "example.com/a"}})
        cluster.advance(2)

    def class_of(name: str, notes: dict[str, str], **spec: Any) -> str | None:
        meta = {"name": name, "annotations": notes}
        made = cluster.create(INGRESSES, {"metadata": meta, "spec": {"defaultBackend": BACKEND, **spec}})
        found: str | None = made["spec"].get("ingressClassName")
        return found

    assert class_of("a", {}) == "new"
    assert class_of("b", {}, ingressClassName="other") == "other"
    assert class_of("c", {"kubernetes.io/ingress.class": "x"}) is None


def test_the_generation_counts_changes_of_what_is_wanted(cluster: Cluster) -> None:
    made = cluster.create(POLICIES.format("default"), {"metadata": {"name": "a"}, "spec": {}})
    path = f"{POLICIES.format('default')}/a"
    assert made["metadata"]["generation"] == 1
    assert cluster.patch(path, "merge", {"metadata": {"labels": {"a": "b"}}})["metadata"]["generation"] == 1
    patched = cluster.patch(path, "merge", {"spec": {"policyTypes": ["Egress"]}})
    assert patched["metadata"]["generation"] == 2
    assert patched["spec"] == {"podSelector": {}, "policyTypes": ["Egress"]}


def test_what_is_applied_again_is_not_written_though_defaults_are_filled_in(cluster: Cluster) -> None:
    path = f"{POLICIES.format('default')}/a"
    ingress = [{"ports": [{"port": 80}]}]
    policy = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "spec": {"ingress": ingress}}
    made = cluster.patch(path, "apply", policy, fieldManager="me").json
    assert made["spec"]["ingress"] == [{"ports": [{"port": 80, "protocol": "TCP"}]}]
    cluster.advance(5)
    assert cluster.patch(path, "apply", policy, fieldManager="me").json == made


def test_webhooks_are_merged_by_name(cluster: Cluster) -> None:
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"

    def hook(name: str, url: str) -> dict[str, Any]:
        return {
            "name": name,
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "clientConfig": {"url": url},
        }

    hooks = [hook("a.b.c", "https://a"), hook("d.e.f", "https://d")]
    answer = cluster.post(path, {"metadata": {"name": "x"}, "webhooks": hooks})
    warning = '299 - "admission webhooks are stored but not called by this server"'
    assert warning in answer.headers["Warning"]
    change = {"webhooks": [{"name": "d.e.f", "timeoutSeconds": 5}]}
    patched = cluster.patch(f"{path}/x", "strategic", change)
    assert [each["timeoutSeconds"] for each in patched["webhooks"]] == [10, 5]
    applied = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "webhooks": [{**hooks[1], "failurePolicy": "Ignore"}],
    }
    patched = cluster.patch(f"{path}/x", "apply", applied, fieldManager="me", force="true")
    assert [each["failurePolicy"] for each in patched["webhooks"]] == ["Fail", "Ignore"]


def test_an_api_service_changes_nothing_that_is_served(cluster: Cluster) -> None:
    before = cluster.get("/apis").raw
    service = {"name": "metrics-server", "namespace": "kube-system"}
    for name, more in (("v1beta1.metrics.k8s.io", {"service": service}), ("v1.apps", {})):
        version, _, group = name.partition(".")
        spec = {"group": group, "version": version, "groupPriorityMinimum": 1, "versionPriority": 1, **more}
        made = cluster.create(
            "/apis/apiregistration.k8s.io/v1/apiservices", {"metadata": {"name": name}, "spec": spec}
        )
        reasons = [each["reason"] for each in made["status"].get("conditions") or ()]
        assert reasons == ([] if more else ["Local"])
    assert cluster.get("/apis").raw == before
    assert cluster.get("/apis/apps/v1/deployments").code == 200


def test_they_go_with_their_namespace_and_their_owner(cluster: Cluster) -> None:
    cluster.create("/api/v1/namespaces", {"metadata": {"name": "team"}})
    cluster.create(POLICIES.format("team"), {"metadata": {"name": "a"}, "spec": {}})
    cluster.create(V2.replace("default", "team"), an_autoscaler())
    cluster.delete("/api/v1/namespaces/team")
    cluster.advance(1)
    assert not cluster.exists("/api/v1/namespaces/team")
    owner = cluster.create("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a"}})
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": owner["metadata"]["uid"]}
    policy = {"metadata": {"name": "a", "ownerReferences": [reference]}, "spec": {}}
    cluster.create(POLICIES.format("default"), policy)
    cluster.delete("/api/v1/namespaces/default/configmaps/a")
    cluster.advance(1)
    assert not cluster.exists(f"{POLICIES.format('default')}/a")


def test_quotas_count_them(cluster: Cluster) -> None:
    hard = {"count/networkpolicies.networking.k8s.io": "1", "count/horizontalpodautoscalers.autoscaling": "1"}
    cluster.create(
        "/api/v1/namespaces/default/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": hard}}
    )
    cluster.create(POLICIES.format("default"), {"metadata": {"name": "a"}, "spec": {}})
    refused = cluster.post(POLICIES.format("default"), {"metadata": {"name": "b"}, "spec": {}})
    assert (refused.code, "exceeded quota: q" in refused.message) == (403, True)
    cluster.create(V1, an_autoscaler())
    assert cluster.post(V2, {**an_autoscaler(), "metadata": {"name": "b"}}).code == 403
