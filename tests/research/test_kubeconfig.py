"""Clusters that are read from an API server, which is left as it is."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from moorage import Cluster, InputError
from moorage.client.client import Client
from moorage.client.connect import connected
from moorage.client.credentials import find_access
from moorage.client.kinds import NAMESPACE, NODE, POD, PRIORITY_CLASS
from moorage_cluster.background import Endpoint
from tests.builders import node
from tests.research.making import Manifest, pod

URGENT = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "urgent"},
    "value": 1000,
}


def with_client(endpoint: Endpoint, use: Any) -> Any:
    async def run() -> Any:
        async with connected(find_access(endpoint.kubeconfig)) as client:
            return await use(client)

    return asyncio.run(run())


async def fill(client: Client) -> None:
    created = [
        client.create(NODE, "", {"apiVersion": "v1", **node("big")}),
        client.create(NODE, "", {"apiVersion": "v1", **node("tainted", taints=["team=a:NoSchedule"])}),
        client.create(PRIORITY_CLASS, "", URGENT),
        client.create(POD, "default", {"apiVersion": "v1", **pod("low", "3", on="big")}),
        client.create(POD, "default", {"apiVersion": "v1", **pod("waiting", "2")}),
    ]
    for each in created:
        await each
    # New nodes have a taint until their kubelet is ready.
    await client.patch(NODE, "", "big", {"spec": {"taints": None}}, "merge")


async def content(client: Client) -> list[Manifest]:
    return [item for kind in (NODE, POD, NAMESPACE, PRIORITY_CLASS) for item in await client.list(kind)]


def test_a_live_cluster_is_asked_and_left_as_it_is(kube_apiserver: Endpoint) -> None:
    with_client(kube_apiserver, fill)
    before = with_client(kube_apiserver, content)

    async def notebook() -> Cluster:
        return Cluster.from_kubeconfig(kube_apiserver.kubeconfig)

    there = asyncio.run(notebook())
    assert repr(there) == "cluster of 2 nodes with 1 pods, and 1 pending"
    assert there.notes == []
    assert "request 1 less cpu (2 now, 1 then)" in repr(there.explain("waiting"))
    made = there.schedule(pod("high", "2", priority_class_name="urgent"))
    assert (made.node, made.nominated, made.victims) == (None, "big", ("default/low",))
    outcomes = {each.name: each.outcome for each in there.simulate(until="1h").placements}
    assert outcomes == {"waiting": "Running", "high": "Running"}
    assert with_client(kube_apiserver, content) == before


def test_a_cluster_that_does_not_answer_is_one_line(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(
        """
apiVersion: v1
kind: Config
current-context: gone
contexts: [{name: gone, context: {cluster: gone, user: gone}}]
clusters: [{name: gone, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: gone, user: {}}]
"""
    )
    with pytest.raises(InputError, match="the API server does not answer: "):
        Cluster.from_kubeconfig(config)
