"""Lists of pods: decoded as any other object, with the specs of a template shared."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from moorage.api.decode import convert
from moorage.api.pod import Pod
from moorage.client.client import Client
from moorage.cluster.pod_table import PodInfo
from moorage.explain.cluster_reader import read_cluster
from moorage.explain.pod_list import PodInfos, PodListReader
from moorage.http.transport import Request, Response
from tests.builders import REQUIRED, Manifest, node, pod, pod_term


def copy_of(number: int, **fields: Any) -> Manifest:
    """A pod of a template as an API server sends it, with a token's volume."""
    name = f"kube-api-access-{number:05}"
    volumes = [{"name": name, "projected": {"sources": []}}]
    mounts = [{"name": name, "mountPath": "/token"}]
    container = {"name": "main", "resources": {"requests": {"cpu": "1"}}, "volumeMounts": mounts}
    fields = {"containers": [container], "volumes": volumes, **fields}
    return pod(f"copy-{number}", uid=f"u{number}", on=f"node-{number}", labels={"app": "web"}, **fields)


def read(*pods: Manifest) -> list[Pod]:
    reader = PodListReader()
    return list(reader.pods(reader.page(json.dumps({"items": pods}, separators=(",", ":")).encode())))


EPHEMERAL = [{"name": "kube-api-access-aaaaa", "ephemeral": {}}]
ODD_PODS = {
    "no node": pod("p", requests={"cpu": "1"}),
    "a node selector with the key nodeName": pod("p", node_selector={"nodeName": "x", "b": "c"}),
    "a node, and such a node selector": pod("p", on="n", node_selector={"nodeName": "n", "b": "c"}),
    "an ephemeral volume that is named like a token's": pod("p", on="n", volumes=EPHEMERAL),
    "a null in the spec": {**pod("p"), "spec": {"nodeName": "n", "tolerations": None, "containers": []}},
    "a null in the status": {**pod("p", on="n"), "status": {"conditions": None}},
}


@pytest.mark.parametrize("manifest", ODD_PODS.values(), ids=ODD_PODS.keys())
def test_odd_pods_are_decoded_as_any_other_object(manifest: Manifest) -> None:
    (decoded,) = read(manifest)
    expected = convert(manifest, Pod)
    assert (decoded.metadata, decoded.spec, decoded.status) == (
        expected.metadata,
        expected.spec,
        expected.status,
    )


def test_copies_of_a_template_share_parts_and_what_is_computed() -> None:
    first, second, other = read(copy_of(1), copy_of(2), copy_of(3, priority=7))
    assert (first.spec.node_name, second.spec.node_name) == ("node-1", "node-2")
    assert first.spec.containers is second.spec.containers
    assert first.spec.containers is not other.spec.containers
    infos = PodInfos()
    one, two, three = map(infos.of, (first, second, other))
    assert two.pod is second
    assert one.load is two.load
    assert one.load is not three.load


def test_what_the_kubelet_reports_counts_for_each_pod() -> None:
    def given(number: int, cpu: str) -> Manifest:
        resources = {"requests": {"cpu": cpu}}
        status = {"containerStatuses": [{"name": "main", "resources": resources}]}
        return {**copy_of(number), "status": status}

    infos = PodInfos()
    loads = [infos.of(each).load for each in read(copy_of(1), given(2, "1"), given(3, "3"), given(4, "3"))]
    assert [each.amounts["cpu"] for each in loads] == [1000, 1000, 3000, 3000]
    assert loads[2] is loads[3]


def test_infos_equal_those_that_are_computed_for_each_pod() -> None:
    term = pod_term("zone", {"matchLabels": {"app": "web"}})
    terms = {"affinity": {"podAntiAffinity": {REQUIRED: [term]}}}
    deleted = copy_of(4)
    deleted["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    infos = PodInfos()
    for each in read(copy_of(1), copy_of(2), copy_of(3, **terms), deleted, copy_of(5, hostNetwork=True)):
        shared, own = infos.of(each), PodInfo(each)
        for value in ("load", "pod_class", "terms", "claims", "disks", "host_ports", "holds"):
            assert getattr(shared, value) == getattr(own, value), value


class Server:
    """Serves three pods in pages; a continue token may have expired."""

    def __init__(self, *, expires: bool) -> None:
        self._expires = expires
        self.queries: list[str] = []

    async def handle(self, request: Request) -> Response:
        items: list[Manifest] = []
        metadata = {}
        if request.path == "/api/v1/nodes":
            items = [node("n")]
        elif request.path == "/api/v1/pods":
            self.queries.append(request.query)
            if "continue=" in request.query and self._expires:
                return Response(410, b'{"kind":"Status","code":410,"reason":"Expired","message":"too old"}')
            is_first = "limit=" in request.query and "continue=" not in request.query
            numbers = (1, 2) if is_first else (3,) if "limit=" in request.query else (1, 2, 3)
            items = [copy_of(number) for number in numbers]
            metadata = {"continue": "rest"} if is_first else {}
        return Response(200, json.dumps({"metadata": metadata, "items": items}).encode())


@pytest.mark.parametrize("expires", [False, True])
def test_all_pages_are_read_and_again_at_once_if_a_token_has_expired(expires: bool) -> None:
    server = Server(expires=expires)
    content = asyncio.run(read_cluster(Client(server), []))
    names = [each.name for each in content.objects if isinstance(each, Pod)]
    assert names == ["copy-1", "copy-2", "copy-3"]
    assert len(server.queries) == (3 if expires else 2)
