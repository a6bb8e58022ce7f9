"""The endpoints of the service `kubernetes`: where the server listens."""

from __future__ import annotations

from tests.apiserver.client import Cluster

ENDPOINTS = "/api/v1/namespaces/default/endpoints/kubernetes"
SLICE = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"


def test_the_server_shows_where_it_listens(cluster: Cluster) -> None:
    cluster.server.advertising.advertise("127.0.0.1", 6443)
    ports = [{"name": "https", "port": 6443, "protocol": "TCP"}]
    endpoints, shown = cluster.get(ENDPOINTS), cluster.get(SLICE)
    assert endpoints["subsets"] == [{"addresses": [{"ip": "127.0.0.1"}], "ports": ports}]
    assert endpoints["metadata"]["labels"] == {"endpointslice.kubernetes.io/skip-mirror": "true"}
    assert (shown["addressType"], shown["ports"]) == ("IPv4", ports)
    assert shown["endpoints"] == [{"addresses": ["127.0.0.1"], "conditions": {"ready": True}}]
    assert shown["metadata"]["labels"] == {"kubernetes.io/service-name": "kubernetes"}
    assert shown["metadata"]["generation"] == 1


def test_another_address_takes_the_place_of_the_first(cluster: Cluster) -> None:
    cluster.server.advertising.advertise("127.0.0.1", 6443)
    first = cluster.get(SLICE)["metadata"]["uid"]
    cluster.server.advertising.advertise("127.0.0.1", 6443)
    assert cluster.get(SLICE)["metadata"]["uid"] == first
    cluster.server.advertising.advertise("::1", 6443)
    assert cluster.get(SLICE)["addressType"] == "IPv6"
    assert cluster.get(ENDPOINTS)["subsets"][0]["addresses"] == [{"ip": "::1"}]
