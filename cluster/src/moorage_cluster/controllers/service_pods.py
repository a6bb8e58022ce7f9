"""Services and the pods behind them, for Endpoints and EndpointSlices."""

from __future__ import annotations

from abc import ABC
from ipaddress import ip_address
from typing import Final

from moorage.api.manifests import Manifest, labels_of
from moorage.client.informer import EventType
from moorage.client.kinds import POD, SERVICE
from moorage_cluster.controllers.cluster import Cluster
from moorage_cluster.controllers.controller import Controller

BATCH_SECONDS: Final = 0.5
"""Batching period for changes of pods, in seconds: a large rollout is then some writes, not thousands."""
HEADLESS: Final = "service.kubernetes.io/headless"

Port = tuple[str, int, str, str]
"""Name, number, protocol and application protocol."""


class ServiceEndpointsController(Controller, ABC):
    """Reconciles a service when it or one of its pods changes."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._services = cluster.informer(SERVICE)
        self._services_of = cluster.within(SERVICE)
        self._pods_of = cluster.within(POD)
        self.watch(SERVICE)
        self.watch(POD, self._pod_changed)

    def _pod_changed(self, type: EventType, pod: Manifest, before: Manifest | None) -> None:
        states = [each for each in (pod, before) if each]
        for service in self._services_of.get(pod["metadata"]["namespace"]):
            if any(_selects(service, each) for each in states):
                meta = service["metadata"]
                self.enqueue_after(meta["namespace"], meta["name"], BATCH_SECONDS)

    def _pods_behind(self, service: Manifest) -> list[Manifest]:
        """The pods that a service selects, by name."""
        pods = self._pods_of.get(service["metadata"]["namespace"])
        return sorted(
            (pod for pod in pods if _selects(service, pod)), key=lambda pod: str(pod["metadata"]["name"])
        )


def has_endpoints(service: Manifest) -> bool:
    """Whether the endpoints of a service are derived from pods, not written by users."""
    spec = service["spec"]
    return spec.get("type") != "ExternalName" and bool(spec.get("selector"))


def is_headless(service: Manifest) -> bool:
    """Whether a service has no cluster IP."""
    return service["spec"].get("clusterIP") in (None, "", "None")


def address_of(pod: Manifest, family: str | None) -> str | None:
    """A pod's address of a family (or of any), if it has one."""
    status = pod.get("status") or {}
    addresses = [each["ip"] for each in status.get("podIPs") or ()] or [status.get("podIP") or ""]
    return next((each for each in addresses if each and family in (None, family_of(each))), None)


def family_of(address: str) -> str:
    """`IPv4` or `IPv6`."""
    return f"IPv{ip_address(address).version}"


def target_reference(pod: Manifest) -> Manifest:
    """The targetRef of an endpoint."""
    meta = pod["metadata"]
    return {"kind": "Pod", **{key: meta[key] for key in ("namespace", "name", "uid")}}


def hostname_of(service: Manifest, pod: Manifest) -> str | None:
    """The hostname of a pod in a service's subdomain, if any."""
    spec = pod["spec"]
    is_below = spec.get("subdomain") == service["metadata"]["name"]
    return (spec.get("hostname") or None) if is_below else None


def _selects(service: Manifest, pod: Manifest) -> bool:
    selector: dict[str, str] = service["spec"].get("selector") or {}
    return bool(selector) and selector.items() <= labels_of(pod).items()


def ports_of(service: Manifest, pod: Manifest) -> list[Port]:
    """The ports of a service that a pod has."""
    wanted = service["spec"].get("ports") or ()
    found: list[Port] = []
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


def endpoint_port(port: Port) -> Manifest:
    """A port in the form of Endpoints."""
    name, number, protocol, application = port
    found: Manifest = {"port": number, "protocol": protocol}
    if name:
        found["name"] = name
    if application:
        found["appProtocol"] = application
    return found
