"""Services: defaulting, allocation of addresses and ports, and changes of type."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from moorage.api.manifests import Manifest, child
from moorage.api.names import dns_label_problems
from moorage.apimachinery.fields import FieldError
from moorage_cluster.apiserver.kinds.addresses import (
    HEADLESS,
    ClusterIPAllocator,
    NodePortAllocator,
    allocated_by,
    check_cluster_ip,
    check_health_check_port,
    check_node_ports,
    give_cluster_ip,
    give_health_check_port,
    give_node_ports,
)
from moorage_cluster.apiserver.kinds.base import StatusStrategy
from moorage_cluster.apiserver.kinds.service_rules import (
    check_family_support,
    check_service,
    check_service_change,
    needs_health_check,
)

_AFFINITY_SECONDS: Final = 10800
_TYPES_WITH_NODE_PORTS = ("NodePort", "LoadBalancer")
_TYPES_WITH_ADDRESS = ("ClusterIP", "NodePort", "LoadBalancer")


def no_services() -> Iterable[Manifest]:
    """A cluster without services."""
    return ()


class ServiceStrategy(StatusStrategy):
    """A service; `services` returns all stored ones, which determine the free addresses and ports."""

    allows_create_on_update = True
    empty_status = {"loadBalancer": {}}

    def __init__(
        self,
        services: Callable[[], Iterable[Manifest]] = no_services,
        addresses: ClusterIPAllocator | None = None,
        ports: NodePortAllocator | None = None,
    ) -> None:
        self._services = services
        self._addresses = addresses or ClusterIPAllocator()
        self._ports = ports or NodePortAllocator()

    def name_problems(self, name: str) -> tuple[str, ...]:
        """Names are used as host names: a DNS label."""
        return dns_label_problems(name)

    def default(self, obj: Manifest) -> None:
        """Type ClusterIP, no session affinity, protocol TCP, and the target port equals the port."""
        super().default(obj)
        spec = obj["spec"]
        kind = spec["type"] = spec.get("type") or "ClusterIP"
        _default_affinity(spec)
        for port in spec.get("ports") or ():
            if not port.get("protocol"):
                port["protocol"] = "TCP"
            if not port.get("targetPort"):
                port["targetPort"] = port.get("port", 0)
        if kind in _TYPES_WITH_ADDRESS:
            spec.setdefault("internalTrafficPolicy", "Cluster")
        if is_external(spec) and not spec.get("externalTrafficPolicy"):
            spec["externalTrafficPolicy"] = "Cluster"
        if kind == "LoadBalancer":
            spec.setdefault("allocateLoadBalancerNodePorts", True)
            for ingress in child(obj["status"], "loadBalancer").get("ingress") or ():
                if ingress.get("ip"):
                    ingress.setdefault("ipMode", "VIP")

    def prepare_create(self, obj: Manifest) -> None:
        """Allocate the address and ports."""
        super().prepare_create(obj)
        spec = obj["spec"]
        if spec.get("clusterIP") and not spec.get("clusterIPs"):
            spec["clusterIPs"] = [spec["clusterIP"]]
        self._give(obj)

    def prepare_update(self, obj: Manifest, old: Manifest) -> None:
        """Keep allocated values that an update leaves out; drop those that a new type does not use."""
        super().prepare_update(obj, old)
        spec, before = obj["spec"], old.get("spec") or {}
        _keep_given(spec, before)
        _drop_for_type(obj, before)
        self._give(obj)

    def _give(self, obj: Manifest) -> None:
        spec = obj["spec"]
        if spec["type"] not in _TYPES_WITH_ADDRESS:
            return
        headless = spec.get("clusterIP") == HEADLESS
        _default_families(spec, headless=headless)
        if self._problems(obj):
            return  # nothing can be allocated to an invalid service; validation reports why
        taken = allocated_by(self._services(), except_for=obj)
        if not headless:
            give_cluster_ip(spec, taken, self._addresses)
        if _needs_node_ports(spec):
            give_node_ports(spec, taken, self._ports)
        if needs_health_check(spec):
            give_health_check_port(spec, taken, self._ports)

    def _problems(self, obj: Manifest) -> list[FieldError]:
        return check_service(obj) or check_family_support(obj["spec"], self._addresses)

    def validate(self, obj: Manifest) -> list[FieldError]:
        """Validate the service; its addresses and ports must not be allocated to others."""
        if errors := self._problems(obj):
            return errors
        spec = obj["spec"]
        if spec["type"] not in _TYPES_WITH_ADDRESS:
            return []
        taken = allocated_by(self._services(), except_for=obj)
        if spec.get("clusterIP") != HEADLESS:
            errors += check_cluster_ip(spec, taken, self._addresses)
        if spec["type"] in _TYPES_WITH_NODE_PORTS:
            errors += check_node_ports(spec, taken, self._ports, needed=_needs_node_ports(spec))
        if needs_health_check(spec):
            errors += check_health_check_port(spec, taken, self._ports)
        return errors

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """The cluster IP is immutable."""
        return check_service_change(obj, old) + self.validate(obj)

    def selectable(self, obj: Manifest) -> dict[str, str]:
        """Selectable by cluster IP and type."""
        spec = obj.get("spec") or {}
        return {"spec.clusterIP": spec.get("clusterIP", ""), "spec.type": spec.get("type", "")}


def is_external(spec: Manifest) -> bool:
    """Whether a service can be reached from outside the cluster."""
    kind = spec.get("type")
    return kind in _TYPES_WITH_NODE_PORTS or (kind == "ClusterIP" and bool(spec.get("externalIPs")))


def _needs_node_ports(spec: Manifest) -> bool:
    kind = spec["type"]
    return kind == "NodePort" or (
        kind == "LoadBalancer" and bool(spec.get("allocateLoadBalancerNodePorts", True))
    )


def _default_affinity(spec: Manifest) -> None:
    affinity = spec["sessionAffinity"] = spec.get("sessionAffinity") or "None"
    if affinity == "None":
        spec.pop("sessionAffinityConfig", None)
    elif affinity == "ClientIP":
        client = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
        if "timeoutSeconds" not in client:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": _AFFINITY_SECONDS}}


def _default_families(spec: Manifest, *, headless: bool) -> None:
    anywhere = headless and not spec.get("selector")
    policy = spec.setdefault("ipFamilyPolicy", "RequireDualStack" if anywhere else "SingleStack")
    families = spec.setdefault("ipFamilies", [])
    if not families:
        address = (spec.get("clusterIPs") or [HEADLESS])[0]
        families.append("IPv6" if ":" in address else "IPv4")
    if anywhere and len(families) == 1 and policy != "SingleStack":
        families.append("IPv6" if families[0] == "IPv4" else "IPv4")


def _keep_given(spec: Manifest, before: Manifest) -> None:
    """Keep allocated values when a client sends the service without them."""
    if spec["type"] == "ExternalName" or before.get("type") == "ExternalName":
        if spec.get("clusterIP") and not spec.get("clusterIPs"):
            spec["clusterIPs"] = [spec["clusterIP"]]
        return
    if not spec.get("clusterIP") and not spec.get("clusterIPs") and before.get("clusterIP"):
        spec["clusterIP"] = before["clusterIP"]
        spec["clusterIPs"] = list(before.get("clusterIPs") or ())
    elif spec.get("clusterIP") == before.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = list(before.get("clusterIPs") or ())
    elif spec.get("clusterIP", "") not in ("", before.get("clusterIP")) and (
        not spec.get("clusterIPs") or spec["clusterIPs"] == before.get("clusterIPs")
    ):
        spec["clusterIPs"] = [spec["clusterIP"]]
    for key in ("ipFamilyPolicy", "ipFamilies"):
        if key not in spec and key in before:
            spec[key] = before[key]
    if needs_health_check(spec) and needs_health_check(before) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = before.get("healthCheckNodePort", 0)
    if spec["type"] in _TYPES_WITH_NODE_PORTS and before.get("type") in _TYPES_WITH_NODE_PORTS:
        _keep_node_ports(spec, before)


def _keep_node_ports(spec: Manifest, before: Manifest) -> None:
    had = {
        (port.get("protocol"), port.get("port")): port["nodePort"]
        for port in before.get("ports") or ()
        if port.get("nodePort")
    }
    asked = {port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")}
    for port in spec.get("ports") or ():
        number = had.get((port.get("protocol"), port.get("port")))
        if number and not port.get("nodePort") and number not in asked:
            port["nodePort"] = number


def _drop_for_type(obj: Manifest, before: Manifest) -> None:
    """Drop fields of the old type that the new one does not use, unless the client changes them too."""
    spec = obj["spec"]
    if before.get("type") != "ExternalName" and spec["type"] == "ExternalName":
        for key in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if spec.get(key) == before.get(key):
                spec.pop(key, None)
    if before.get("type") in _TYPES_WITH_NODE_PORTS and spec["type"] not in _TYPES_WITH_NODE_PORTS:
        had = {port.get("nodePort", 0) for port in before.get("ports") or ()}
        if all(port.get("nodePort", 0) in had | {0} for port in spec.get("ports") or ()):
            for port in spec.get("ports") or ():
                port.pop("nodePort", None)
    if needs_health_check(before) and not needs_health_check(spec):
        _drop_unchanged(spec, before, "healthCheckNodePort")
    if before.get("type") == "LoadBalancer" and spec["type"] != "LoadBalancer":
        _drop_unchanged(spec, before, "allocateLoadBalancerNodePorts")
        _drop_unchanged(spec, before, "loadBalancerClass")
    if is_external(before) and not is_external(spec):
        _drop_unchanged(spec, before, "externalTrafficPolicy")
    if spec["type"] != "LoadBalancer":
        obj["status"] = {**obj.get("status", {}), "loadBalancer": {}}


def _drop_unchanged(spec: Manifest, before: Manifest, key: str) -> None:
    if spec.get(key) == before.get(key):
        spec.pop(key, None)
