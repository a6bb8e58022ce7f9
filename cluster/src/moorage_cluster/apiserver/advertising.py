"""The advertised address of the server: the endpoints of the service `kubernetes`."""

from __future__ import annotations

from ipaddress import ip_address

from moorage.api.manifests import Manifest
from moorage_cluster.apiserver.resources import Resources
from moorage_cluster.apiserver.rest.writes import Writer

_NAMESPACE, _NAME = "default", "kubernetes"


class Advertising:
    """Maintains the endpoints of the service `kubernetes`."""

    def __init__(self, resources: Resources, writer: Writer) -> None:
        self._resources = resources
        self._writer = writer

    def advertise(self, address: str, port: int) -> None:
        """Advertise an address, in place of that of an earlier run."""
        for obj in _endpoints(address, port):
            resource = self._resources.of_kind(obj["apiVersion"], obj["kind"])
            assert resource is not None, obj["kind"]
            found = self._writer.store.find(resource.storage, _NAMESPACE, _NAME) or {}
            if any(found.get(key) != value for key, value in obj.items() if key != "metadata"):
                self._writer.replace_unchecked(resource, _NAMESPACE, obj)


def _endpoints(address: str, port: int) -> tuple[Manifest, Manifest]:
    ports = [{"name": "https", "port": port, "protocol": "TCP"}]
    return (
        {
            "apiVersion": "v1",
            "kind": "Endpoints",
            "metadata": {"name": _NAME, "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
            "subsets": [{"addresses": [{"ip": address}], "ports": ports}],
        },
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"name": _NAME, "labels": {"kubernetes.io/service-name": _NAME}},
            "addressType": f"IPv{ip_address(address).version}",
            "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
            "ports": ports,
        },
    )
