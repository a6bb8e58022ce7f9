"""EndpointSlices of services without selectors: mirrors of the Endpoints that users write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from moorage.api.manifests import Manifest, annotations_of, labels_of
from moorage.client.kinds import ENDPOINT_SLICE, SERVICE
from moorage_cluster.controllers.cluster import Cluster, owner_reference
from moorage_cluster.controllers.controller import Controller
from moorage_cluster.controllers.endpoint_slices import MANAGED_BY, SERVICE_NAME, SliceWriter, slice_ports
from moorage_cluster.controllers.endpoints import ENDPOINTS
from moorage_cluster.controllers.pods import is_deleted
from moorage_cluster.controllers.service_pods import Port, family_of

MAX_ENDPOINTS: Final = 1000
_MANAGER: Final = "endpointslicemirroring-controller.k8s.io"
_NOT_MIRRORED: Final = "endpointslice.kubernetes.io/skip-mirror"
_LEADER: Final = "control-plane.alpha.kubernetes.io/leader"
_ANNOTATIONS_LEFT_OUT: Final = (
    "endpoints.kubernetes.io/last-change-trigger-time",
    "kubectl.kubernetes.io/last-applied-configuration",
)


class EndpointSliceMirroringController(Controller):
    """Reconciles Endpoints with the services of the same name."""

    name = "endpointslice-mirroring-controller"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._endpoints = cluster.informer(ENDPOINTS)
        self._services = cluster.informer(SERVICE)
        self._slices = SliceWriter(cluster, _MANAGER)
        self.watch(ENDPOINTS)
        self.watch(SERVICE)
        self.watch_owned(ENDPOINT_SLICE, "Endpoints")

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Bring the slices of one Endpoints up to date; those of a deleted one are garbage collected."""
        endpoints = self._endpoints.get(namespace, name)
        if endpoints is None or is_deleted(endpoints):
            return None
        service = self._services.get(namespace, name)
        is_mirrored = (
            service is not None and not service["spec"].get("selector") and _is_for_mirrors(endpoints)
        )
        await self._slices.bring(endpoints, list(_wanted(endpoints)) if is_mirrored else [])
        return None


def _is_for_mirrors(endpoints: Manifest) -> bool:
    return labels_of(endpoints).get(_NOT_MIRRORED) != "true" and _LEADER not in annotations_of(endpoints)


def _wanted(endpoints: Manifest) -> Iterator[Manifest]:
    """A slice for each set of ports and address type; each is truncated to a thousand addresses."""
    groups: dict[tuple[str, tuple[Port, ...]], list[Manifest]] = {}
    for endpoint, ports in _by_address(endpoints):
        key = (family_of(endpoint["addresses"][0]), tuple(sorted(ports)))
        groups.setdefault(key, []).append(endpoint)
    for (family, shared), found in groups.items():
        yield _slice(endpoints, family, shared, found[:MAX_ENDPOINTS])


def _by_address(endpoints: Manifest) -> list[tuple[Manifest, set[Port]]]:
    """Every address once, with the ports that it has in all subsets."""
    found: dict[tuple[str, str, bool], tuple[Manifest, set[Port]]] = {}
    for subset in endpoints.get("subsets") or ():
        ports = [_port(each) for each in subset.get("ports") or ()]
        for key, ready in (("addresses", True), ("notReadyAddresses", False)):
            for address in subset.get(key) or ():
                target = (address.get("targetRef") or {}).get("uid", "")
                same = (address["ip"], target, ready)
                found.setdefault(same, (_endpoint(address, ready), set()))[1].update(ports)
    return list(found.values())


def _port(port: Manifest) -> Port:
    return port.get("name", ""), port["port"], port.get("protocol", "TCP"), port.get("appProtocol", "")


def _endpoint(address: Manifest, ready: bool) -> Manifest:
    endpoint: Manifest = {"addresses": [address["ip"]], "conditions": {"ready": ready}}
    return endpoint | {key: address[key] for key in ("hostname", "nodeName", "targetRef") if key in address}


def _slice(endpoints: Manifest, family: str, ports: tuple[Port, ...], found: list[Manifest]) -> Manifest:
    name, annotations = endpoints["metadata"]["name"], annotations_of(endpoints)
    return {
        "apiVersion": ENDPOINT_SLICE.api_version,
        "kind": ENDPOINT_SLICE.name,
        "metadata": {
            "generateName": f"{name}-",
            "labels": {**labels_of(endpoints), SERVICE_NAME: name, MANAGED_BY: _MANAGER},
            "annotations": {
                key: value for key, value in annotations.items() if key not in _ANNOTATIONS_LEFT_OUT
            },
            "ownerReferences": [owner_reference(endpoints)],
        },
        "addressType": family,
        "endpoints": found,
        "ports": slice_ports(ports),
    }
