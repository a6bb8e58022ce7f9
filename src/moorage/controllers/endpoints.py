"""Endpoints: the addresses of the pods that a service selects, of ready ones and of others."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address
from typing import Final

from moorage.api.conditions import is_ready
from moorage.api.manifests import Manifest, annotations_of, copy, labels_of
from moorage.client.informer import EventType
from moorage.client.kinds import POD, SERVICE, Kind
from moorage.controllers.cluster import Cluster
from moorage.controllers.controller import Controller
from moorage.controllers.pods import is_finished

ENDPOINTS: Final = Kind("", "v1", "Endpoints", "endpoints")
BATCH_SECONDS: Final = 0.5
"""Changes of pods are gathered for so long: a rollout of many pods is then some writes, not thousands."""
CAPACITY: Final = 1000
"""More addresses than this are cut off."""

_MANAGED_BY: Final = "endpoints.kubernetes.io/managed-by"
_HEADLESS: Final = "service.kubernetes.io/headless"
_OVER_CAPACITY: Final = "endpoints.kubernetes.io/over-capacity"

Port = tuple[str, int, str, str]
"""Name, number, protocol and application protocol."""


class EndpointsController(Controller):
    """Looks at services that select pods."""

    name = "endpoint-controller"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._services = cluster.informer(SERVICE)
        self._services_of = cluster.within(SERVICE)
        self._pods_of = cluster.within(POD)
        self._endpoints = cluster.informer(ENDPOINTS)
        self.follow(SERVICE)
        self.follow(POD, self._pod_changed)

    def _pod_changed(self, type: EventType, pod: Manifest, before: Manifest | None) -> None:
        states = [each for each in (pod, before) if each]
        for service in self._services_of.get(pod["metadata"]["namespace"]):
            if any(_selects(service, each) for each in states):
                meta = service["metadata"]
                self.look_after(meta["namespace"], meta["name"], BATCH_SECONDS)

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Bring the addresses of one service up to date."""
        service = self._services.get(namespace, name)
        known = self._endpoints.get(namespace, name)
        if service is None:
            if known is not None and labels_of(known).get(_MANAGED_BY) == self.name:
                await self.cluster.delete(ENDPOINTS, known)
            return None
        spec = service["spec"]
        if spec.get("type") == "ExternalName" or not spec.get("selector"):
            return None
        pods = [pod for pod in self._pods_of.get(namespace) if _selects(service, pod)]
        wanted = self._wanted(service, pods, known)
        if known is None:
            await self.cluster.create(ENDPOINTS, namespace, wanted)
        elif wanted != known:
            await self.cluster.update(ENDPOINTS, wanted)
        return None

    def _wanted(self, service: Manifest, pods: Iterable[Manifest], known: Manifest | None) -> Manifest:
        subsets, is_cut = _within_capacity(_subsets(service, pods))
        labels = {**labels_of(service), _MANAGED_BY: self.name}
        if service["spec"].get("clusterIP") in (None, "", "None"):
            labels[_HEADLESS] = ""
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


def _selects(service: Manifest, pod: Manifest) -> bool:
    selector: dict[str, str] = service["spec"].get("selector") or {}
    return bool(selector) and selector.items() <= labels_of(pod).items()


def _subsets(service: Manifest, pods: Iterable[Manifest]) -> list[Manifest]:
    """Addresses with the ports they offer; ports that the same pods offer are named together."""
    everybody = bool(service["spec"].get("publishNotReadyAddresses"))
    addresses: dict[str, tuple[Manifest, bool]] = {}
    by_port: dict[Port | None, list[str]] = {}
    for pod in sorted(pods, key=lambda each: str(each["metadata"]["name"])):
        address = _address(service, pod)
        is_going = "deletionTimestamp" in pod["metadata"]
        if address is None or is_finished(pod) or (is_going and not everybody):
            continue
        uid = pod["metadata"]["uid"]
        addresses[uid] = (address, everybody or is_ready(pod))
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
        subset["ports"] = [_endpoint_port(port) for port in sorted(ports)]
    return subset


def _endpoint_port(port: Port) -> Manifest:
    name, number, protocol, application = port
    found: Manifest = {"port": number, "protocol": protocol}
    if name:
        found["name"] = name
    if application:
        found["appProtocol"] = application
    return found


def _address(service: Manifest, pod: Manifest) -> Manifest | None:
    """A pod's address of the service's family, if it has one."""
    status, meta, spec = pod.get("status") or {}, pod["metadata"], service["spec"]
    addresses = [each["ip"] for each in status.get("podIPs") or ()] or [status.get("podIP") or ""]
    families = spec.get("ipFamilies") or ()
    version = None if not families else 6 if families[0] == "IPv6" else 4
    found = next((each for each in addresses if each and version in (None, ip_address(each).version)), None)
    if found is None:
        return None
    address: Manifest = {
        "ip": found,
        "targetRef": {
            "kind": "Pod",
            "namespace": meta["namespace"],
            "name": meta["name"],
            "uid": meta["uid"],
        },
    }
    if pod["spec"].get("nodeName"):
        address["nodeName"] = pod["spec"]["nodeName"]
    if pod["spec"].get("hostname") and pod["spec"].get("subdomain") == service["metadata"]["name"]:
        address["hostname"] = pod["spec"]["hostname"]
    return address


def _ports(service: Manifest, pod: Manifest) -> list[Port | None]:
    """The ports of a service that a pod has; None alone: a headless service that names no ports."""
    wanted = service["spec"].get("ports") or ()
    if not wanted:
        return [None] if service["spec"].get("clusterIP") == "None" else []
    found: list[Port | None] = []
    for port in wanted:
        protocol = port.get("protocol") or "TCP"
        number = _number(port, protocol, pod)
        if number is not None:
            found.append((port.get("name") or "", number, protocol, port.get("appProtocol") or ""))
    return found


def _number(port: Manifest, protocol: str, pod: Manifest) -> int | None:
    target = port.get("targetPort") or port["port"]
    if isinstance(target, int):
        return target
    sidecars = (
        each for each in pod["spec"].get("initContainers") or () if each.get("restartPolicy") == "Always"
    )
    for container in (*pod["spec"]["containers"], *sidecars):
        for offered in container.get("ports") or ():
            if offered.get("name") == target and (offered.get("protocol") or "TCP") == protocol:
                number: int = offered["containerPort"]
                return number
    return None


def _within_capacity(subsets: list[Manifest]) -> tuple[list[Manifest], bool]:
    """Subsets of not too many addresses, ready ones before others, and whether some were cut off."""
    left, is_cut = CAPACITY, False
    for key in ("addresses", "notReadyAddresses"):
        for subset in subsets:
            found = subset.pop(key, [])
            if found[:left]:
                subset[key] = found[:left]
            is_cut = is_cut or len(found) > left
            left -= min(left, len(found))
    return [subset for subset in subsets if "addresses" in subset or "notReadyAddresses" in subset], is_cut
