"""Tests of the operator: no Docker, no network, a cluster of their own for each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import client, config, watch
from replicas_operator import LABEL, reconcile


@pytest.fixture
def api(kube_cluster: Any) -> Iterator[client.ApiClient]:
    with config.new_client_from_config(str(kube_cluster.kubeconfig)) as made:
        yield made


def ask(api: client.ApiClient, name: str, replicas: int) -> None:
    body = {"metadata": {"name": name, "labels": {LABEL: str(replicas)}}}
    client.CoreV1Api(api).create_namespaced_config_map("default", body)


def wait_for_running_pods(api: client.ApiClient, count: int) -> None:
    running = set()
    for event in watch.Watch().stream(
        client.CoreV1Api(api).list_namespaced_pod, "default", timeout_seconds=30
    ):
        if event["object"].status.phase == "Running":
            running.add(event["object"].metadata.name)
        if len(running) == count:
            return
    raise AssertionError(f"{len(running)} of {count} pods run")


def test_a_config_map_gets_its_pods(api: client.ApiClient) -> None:
    ask(api, "web", 2)
    reconcile(api, "default")
    wait_for_running_pods(api, 2)


def test_each_test_has_a_cluster_of_its_own(api: client.ApiClient) -> None:
    assert not client.AppsV1Api(api).list_namespaced_deployment("default").items


@pytest.mark.kube_nodes(5)
def test_the_number_of_nodes_is_up_to_the_test(api: client.ApiClient) -> None:
    assert len(client.CoreV1Api(api).list_node().items) == 5
