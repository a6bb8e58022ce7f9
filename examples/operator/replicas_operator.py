"""A small operator: keeps a Deployment for every ConfigMap that asks for one."""

from __future__ import annotations

from typing import Any

from kubernetes import client

LABEL = "example.com/replicas"


def reconcile(api: client.ApiClient, namespace: str) -> None:
    """Make Deployments as ConfigMaps with the label ask for them, and remove those that none asks for."""
    core, apps = client.CoreV1Api(api), client.AppsV1Api(api)
    asked = {each.metadata.name: each.metadata.labels[LABEL] for each in
             core.list_namespaced_config_map(namespace, label_selector=LABEL).items}  # fmt: skip
    there = {each.metadata.name: each for each in
             apps.list_namespaced_deployment(namespace, label_selector=LABEL).items}  # fmt: skip
    for name, replicas in asked.items():
        if name not in there:
            apps.create_namespaced_deployment(namespace, deployment(name, replicas))
        elif there[name].spec.replicas != int(replicas):
            apps.patch_namespaced_deployment(name, namespace, {"spec": {"replicas": int(replicas)}})
    for name in there.keys() - asked.keys():
        apps.delete_namespaced_deployment(name, namespace)


def deployment(name: str, replicas: str) -> dict[str, Any]:
    """The Deployment that a ConfigMap asks for."""
    labels = {"app": name, LABEL: replicas}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": int(replicas),
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "app", "image": "registry.example/app:1"}]},
            },
        },
    }
