"""EndpointSlices: the addresses of the pods that a service selects, a hundred to a slice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from moorage.api.conditions import is_ready
from moorage.api.manifests import Manifest, annotations_of, copy, labels_of
from moorage.client.kinds import ENDPOINT_SLICE, NODE
from moorage_cluster.controllers.cluster import Cluster, owner_reference
from moorage_cluster.controllers.pods import is_deleted, is_finished
from moorage_cluster.controllers.service_pods import (
    HEADLESS,
    Port,
    ServiceEndpointsController,
    address_of,
    endpoint_port,
    has_endpoints,
    hostname_of,
    is_headless,
    ports_of,
    target_reference,
)

MAX_ENDPOINTS: Final = 100
MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
_MANAGER: Final = "endpointslice-controller.k8s.io"
SERVICE_NAME: Final = "kubernetes.io/service-name"
_ZONE: Final = "topology.kubernetes.io/zone"


class SliceWriter:
    """Updates the slices that an object owns and that this controller manages."""

    def __init__(self, cluster: Cluster, manager: str) -> None:
        self._cluster = cluster
        self._slices = cluster.owned(ENDPOINT_SLICE)
        self._manager = manager

    async def bring(self, owner: Manifest, wanted: list[Manifest]) -> None:
        """Create, update and delete slices to match the wanted ones."""
        known = [each for each in self._slices.get(owner["metadata"]["uid"]) if self._is_managed(each)]
        known.sort(key=lambda each: str(each["metadata"]["name"]))
        for new in wanted:
            old = next((each for each in known if _has_place(each, new)), None)
            if old is None:
                await self._cluster.create(ENDPOINT_SLICE, owner["metadata"]["namespace"], new)
                continue
            known.remove(old)
            await self._update(old, new)
        for old in known:
            await self._cluster.delete(ENDPOINT_SLICE, old)

    def _is_managed(self, endpoint_slice: Manifest) -> bool:
        return labels_of(endpoint_slice).get(MANAGED_BY) == self._manager

    async def _update(self, old: Manifest, new: Manifest) -> None:
        changed = copy(old) | {key: new[key] for key in ("endpoints", "ports")}
        meta = new["metadata"]
        changed["metadata"]["labels"] = meta["labels"]
        if meta.get("annotations", annotations_of(old)) != annotations_of(old):
            changed["metadata"]["annotations"] = meta["annotations"]
        if changed != old:
            await self._cluster.update(ENDPOINT_SLICE, changed)


class EndpointSliceController(ServiceEndpointsController):
    """Reconciles services that select pods."""

    name = "endpointslice-controller"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._slices = SliceWriter(cluster, _MANAGER)
        self._nodes = cluster.informer(NODE)
        self.watch_owned(ENDPOINT_SLICE, "Service")

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Bring the slices of one service up to date; those of a deleted service are garbage collected."""
        service = self._services.get(namespace, name)
        if service is None or is_deleted(service) or not has_endpoints(service):
            return None
        await self._slices.bring(service, list(self._wanted(service)))
        return None

    def _wanted(self, service: Manifest) -> Iterator[Manifest]:
        """A slice for each hundred endpoints with the same ports; an empty one for a service without pods."""
        for family in service["spec"].get("ipFamilies") or ("IPv4",):
            by_ports: dict[tuple[Port, ...], list[Manifest]] = {}
            for pod in self._pods_behind(service):
                address = address_of(pod, family)
                if address is not None and not is_finished(pod):
                    ports = tuple(ports_of(service, pod))
                    by_ports.setdefault(ports, []).append(self._endpoint(service, pod, address))
            for ports, endpoints in by_ports.items():
                for start in range(0, len(endpoints), MAX_ENDPOINTS):
                    yield _slice(service, family, ports, endpoints[start : start + MAX_ENDPOINTS])
            if not by_ports:
                yield _slice(service, family, (), [])

    def _endpoint(self, service: Manifest, pod: Manifest, address: str) -> Manifest:
        serving, terminating = is_ready(pod), is_deleted(pod)
        ready = bool(service["spec"].get("publishNotReadyAddresses")) or (serving and not terminating)
        endpoint: Manifest = {
            "addresses": [address],
            "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
            "targetRef": target_reference(pod),
        }
        node = pod["spec"].get("nodeName")
        zone = labels_of(self._nodes.get("", node) or {}).get(_ZONE) if node else None
        more = {"nodeName": node, "zone": zone, "hostname": hostname_of(service, pod)}
        return endpoint | {key: value for key, value in more.items() if value}


def _has_place(endpoint_slice: Manifest, new: Manifest) -> bool:
    """Whether a slice can get other endpoints: its address type cannot change, its ports should not."""
    same_ports = endpoint_slice["ports"] == new["ports"] or not endpoint_slice["ports"]
    return endpoint_slice["addressType"] == new["addressType"] and same_ports


def _slice(service: Manifest, family: str, ports: tuple[Port, ...], endpoints: list[Manifest]) -> Manifest:
    name = service["metadata"]["name"]
    labels = {key: value for key, value in labels_of(service).items() if key != HEADLESS}
    if is_headless(service):
        labels[HEADLESS] = ""
    return {
        "apiVersion": ENDPOINT_SLICE.api_version,
        "kind": ENDPOINT_SLICE.name,
        "metadata": {
            "generateName": f"{name}-",
            "labels": {**labels, SERVICE_NAME: name, MANAGED_BY: _MANAGER},
            "ownerReferences": [owner_reference(service)],
        },
        "addressType": family,
        "endpoints": endpoints,
        "ports": slice_ports(ports),
    }


def slice_ports(ports: Iterable[Port]) -> list[Manifest]:
    """Ports in the form of slices."""
    return [{"name": "", **endpoint_port(port)} for port in ports]
