"""Endpoints: the addresses of the pods that a service selects, ready and not ready."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from moorage.api.conditions import is_ready
from moorage.api.manifests import Manifest, annotations_of, copy, labels_of
from moorage.client.kinds import Kind
from moorage_cluster.controllers.cluster import Cluster
from moorage_cluster.controllers.pods import is_finished
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

ENDPOINTS: Final = Kind("", "v1", "Endpoints", "endpoints")
CAPACITY: Final = 1000
"""Maximum number of addresses; the rest is truncated."""

_MANAGED_BY: Final = "endpoints.kubernetes.io/managed-by"
_OVER_CAPACITY: Final = "endpoints.kubernetes.io/over-capacity"


class EndpointsController(ServiceEndpointsController):
    """Reconciles services that select pods."""

    name = "endpoint-controller"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._endpoints = cluster.informer(ENDPOINTS)

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Bring the addresses of one service up to date."""
        service = self._services.get(namespace, name)
        known = self._endpoints.get(namespace, name)
        if service is None:
            if known is not None and labels_of(known).get(_MANAGED_BY) == self.name:
                await self.cluster.delete(ENDPOINTS, known)
            return None
        if not has_endpoints(service):
            return None
        wanted = self._wanted(service, self._pods_behind(service), known)
        if known is None:
            await self.cluster.create(ENDPOINTS, namespace, wanted)
        elif wanted != known:
            await self.cluster.update(ENDPOINTS, wanted)
        return None

    def _wanted(self, service: Manifest, pods: Iterable[Manifest], known: Manifest | None) -> Manifest:
        subsets, is_cut = _within_capacity(_subsets(service, pods))
        labels = {**labels_of(service), _MANAGED_BY: self.name}
        if is_headless(service):
            labels[HEADLESS] = ""
        annotations = {
            key: value for key, value in annotations_of(known or {}).items() if key != _OVER_CAPACITY
        }
        if is_cut:
            annotations[_OVER_CAPACITY] = "truncated"
        new: Manifest = (
            copy(known)
            if known
            else {
                "apiVersion": "v1",
                "kind": "Endpoints",
                "metadata": {"name": service["metadata"]["name"]},
            }
        )
        new["metadata"]["labels"] = labels
        for place, key, value in ((new["metadata"], "annotations", annotations), (new, "subsets", subsets)):
            if value:
                place[key] = value
            else:
                place.pop(key, None)
        return new


def _subsets(service: Manifest, pods: Iterable[Manifest]) -> list[Manifest]:
    """Addresses with their ports; ports with the same pods are in one subset."""
    publish_not_ready = bool(service["spec"].get("publishNotReadyAddresses"))
    addresses: dict[str, tuple[Manifest, bool]] = {}
    by_port: dict[Port | None, list[str]] = {}
    for pod in pods:
        address = _address(service, pod)
        is_terminating = "deletionTimestamp" in pod["metadata"]
        if address is None or is_finished(pod) or (is_terminating and not publish_not_ready):
            continue
        uid = pod["metadata"]["uid"]
        addresses[uid] = (address, publish_not_ready or is_ready(pod))
        for port in _ports(service, pod):
            by_port.setdefault(port, []).append(uid)
    together: dict[tuple[str, ...], list[Port | None]] = {}
    for port, uids in by_port.items():
        together.setdefault(tuple(uids), []).append(port)
    subsets = [
        _subset([addresses[uid] for uid in uids], [port for port in ports if port is not None])
        for uids, ports in together.items()
    ]
    return sorted(subsets, key=lambda subset: [each["port"] for each in subset.get("ports", ())])


def _subset(addresses: list[tuple[Manifest, bool]], ports: list[Port]) -> Manifest:
    subset: Manifest = {}
    for key, wanted in (("addresses", True), ("notReadyAddresses", False)):
        found = [address for address, ready in addresses if ready == wanted]
        if found:
            subset[key] = sorted(found, key=lambda each: str(each["ip"]))
    if ports:
        subset["ports"] = [endpoint_port(port) for port in sorted(ports)]
    return subset


def _address(service: Manifest, pod: Manifest) -> Manifest | None:
    """A pod's address of the service's family, if it has one."""
    families = service["spec"].get("ipFamilies") or (None,)
    found = address_of(pod, families[0])
    if found is None:
        return None
    address: Manifest = {"ip": found, "targetRef": target_reference(pod)}
    if pod["spec"].get("nodeName"):
        address["nodeName"] = pod["spec"]["nodeName"]
    if hostname := hostname_of(service, pod):
        address["hostname"] = hostname
    return address


def _ports(service: Manifest, pod: Manifest) -> list[Port] | list[None]:
    """The ports of a service that a pod has; None alone: a headless service without ports."""
    is_bare = not service["spec"].get("ports") and service["spec"].get("clusterIP") == "None"
    return [None] if is_bare else ports_of(service, pod)


def _within_capacity(subsets: list[Manifest]) -> tuple[list[Manifest], bool]:
    """Subsets within the capacity, ready addresses first, and whether some were truncated."""
    left, is_cut = CAPACITY, False
    for key in ("addresses", "notReadyAddresses"):
        for subset in subsets:
            found = subset.pop(key, [])
            if found[:left]:
                subset[key] = found[:left]
            is_cut = is_cut or len(found) > left
            left -= min(left, len(found))
    return [subset for subset in subsets if "addresses" in subset or "notReadyAddresses" in subset], is_cut
