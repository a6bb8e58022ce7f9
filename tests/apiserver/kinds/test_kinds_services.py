from __future__ import annotations

import pytest

from moorage.api.manifests import Manifest, copy
from moorage_cluster.apiserver.kinds.addresses import ClusterIPAllocator, NodePortAllocator
from moorage_cluster.apiserver.kinds.services import ServiceStrategy
from tests.apiserver.kinds.object_builders import an_object, created, updated

SELECTOR = {"app": "web"}


class Services:
    """A strategy that knows what was created before."""

    def __init__(
        self, addresses: ClusterIPAllocator | None = None, ports: NodePortAllocator | None = None
    ) -> None:
        self.stored: list[Manifest] = []
        self.strategy = ServiceStrategy(lambda: self.stored, addresses, ports)

    def create(self, name: str, **spec: object) -> Manifest:
        wanted = {"ports": [{"port": 80}], "selector": SELECTOR, **spec}
        new = created(self.strategy, an_object(wanted, meta={"name": name}))
        assert self.strategy.validate(new) == []
        self.stored.append(new)
        return new

    def refusal(self, name: str, **spec: object) -> list[str]:
        wanted = {"ports": [{"port": 80}], "selector": SELECTOR, **spec}
        new = created(self.strategy, an_object(wanted, meta={"name": name}))
        return [str(error) for error in self.strategy.validate(new)]

    def update(self, old: Manifest, spec: Manifest) -> tuple[Manifest, list[str]]:
        new = updated(self.strategy, old, {"metadata": old["metadata"], "spec": copy(spec)})
        return new, [str(error) for error in self.strategy.validate_update(new, old)]


def test_every_service_has_an_address_of_its_own() -> None:
    services = Services()
    addresses = [services.create(f"s{index}")["spec"]["clusterIP"] for index in range(20)]
    assert len(set(addresses)) == 20


def test_an_address_can_be_chosen_once() -> None:
    services = Services()
    services.create("dns", clusterIP="10.96.0.10")
    assert services.refusal("other", clusterIP="10.96.0.10") == [
        'spec.clusterIPs: Invalid value: ["10.96.0.10"]: failed to allocate IP 10.96.0.10: '
        "provided IP is already allocated"
    ]


def test_the_last_address_is_used_and_then_there_is_none() -> None:
    services = Services(ClusterIPAllocator("10.0.0.0/29"))
    addresses = {services.create(f"s{index}")["spec"]["clusterIP"] for index in range(6)}
    assert addresses == {f"10.0.0.{number}" for number in range(1, 7)}
    assert services.refusal("more") == [
        "spec.clusterIPs: Invalid value: []: failed to allocate IP: range is full"
    ]


def test_a_released_address_is_found_again() -> None:
    addresses = ClusterIPAllocator("10.0.0.0/29")
    taken = {f"10.0.0.{number}" for number in (1, 2, 4, 5, 6)}
    assert addresses.allocate(taken) == "10.0.0.3"


def test_node_ports_are_given_and_shared_by_protocols_of_one_service() -> None:
    services = Services()
    dns = [
        {"name": "udp", "port": 53, "protocol": "UDP"},
        {"name": "tcp", "port": 53, "protocol": "TCP"},
        {"name": "metrics", "port": 9153},
    ]
    numbers = [
        port["nodePort"] for port in services.create("dns", type="NodePort", ports=dns)["spec"]["ports"]
    ]
    assert numbers[0] == numbers[1] != numbers[2]
    other = services.create("other", type="NodePort")["spec"]["ports"][0]["nodePort"]
    assert other not in numbers


def test_a_node_port_can_be_chosen_once_a_protocol() -> None:
    services = Services()
    services.create("a", type="NodePort", ports=[{"port": 80, "nodePort": 30080}])
    services.create("b", type="NodePort", ports=[{"port": 80, "nodePort": 30080, "protocol": "UDP"}])
    assert services.refusal("c", type="NodePort", ports=[{"port": 81, "nodePort": 30080}]) == [
        "spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated"
    ]


def test_all_node_ports_taken() -> None:
    services = Services(ports=NodePortAllocator(30000, 30001))
    services.create("a", type="NodePort")
    services.create("b", type="NodePort")
    assert services.refusal("c", type="NodePort") == [
        "spec.ports[0].nodePort: Invalid value: 0: range is full"
    ]


def test_a_load_balancer_that_asks_nodes_has_a_port_for_it() -> None:
    spec = Services().create("lb", type="LoadBalancer", externalTrafficPolicy="Local")["spec"]
    assert 30000 <= spec["healthCheckNodePort"] <= 32767
    assert spec["healthCheckNodePort"] != spec["ports"][0]["nodePort"]


def test_a_load_balancer_may_do_without_node_ports() -> None:
    spec = Services().create("lb", type="LoadBalancer", allocateLoadBalancerNodePorts=False)["spec"]
    assert "nodePort" not in spec["ports"][0]


def test_a_client_that_applies_a_service_again_keeps_what_was_given() -> None:
    services = Services()
    old = services.create("web", type="NodePort")
    new, problems = services.update(
        old, {"type": "NodePort", "ports": [{"port": 80}, {"port": 81, "name": "b"}], "selector": SELECTOR}
    )
    assert problems == ["spec.ports[0].name: Required value"]
    new, problems = services.update(old, {"type": "NodePort", "ports": [{"port": 80}]})
    assert problems == []
    assert new["spec"]["clusterIP"] == old["spec"]["clusterIP"]
    assert new["spec"]["ports"] == old["spec"]["ports"]
    assert new["spec"]["ipFamilies"] == ["IPv4"]


def test_the_cluster_ip_stays() -> None:
    services = Services()
    old = services.create("web")
    _, problems = services.update(old, {**old["spec"], "clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"]})
    assert problems == ['spec.clusterIPs[0]: Invalid value: ["10.96.0.9"]: may not change once set']


def test_a_service_that_becomes_headless_is_another_service() -> None:
    services = Services()
    old = services.create("web")
    _, problems = services.update(old, {**old["spec"], "clusterIP": "None"})
    assert problems == ['spec.clusterIPs[0]: Invalid value: ["None"]: may not change once set']


def test_a_node_port_service_that_becomes_internal_gives_its_ports_back() -> None:
    services = Services()
    old = services.create("web", type="NodePort")
    new, problems = services.update(old, {**old["spec"], "type": "ClusterIP"})
    assert problems == []
    assert new["spec"]["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    assert "externalTrafficPolicy" not in new["spec"]


def test_a_service_that_becomes_a_name_gives_all_back() -> None:
    services = Services()
    old = services.create("web")
    new, problems = services.update(old, {**old["spec"], "type": "ExternalName", "externalName": "a.b"})
    assert problems == []
    assert not new["spec"].keys() & {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"}


def test_a_name_that_becomes_a_service_gets_an_address() -> None:
    services = Services()
    old = services.create("web", type="ExternalName", externalName="a.b")
    new, problems = services.update(old, {"ports": [{"port": 80}]})
    assert problems == []
    assert new["spec"]["clusterIP"].startswith("10.96.")


@pytest.mark.parametrize(("selector", "families"), [({}, ["IPv4", "IPv6"]), (SELECTOR, ["IPv4"])])
def test_a_headless_service_without_selector_may_have_any_family(
    selector: Manifest, families: list[str]
) -> None:
    spec = Services().create("web", clusterIP="None", selector=selector)["spec"]
    assert spec["ipFamilies"] == families


def test_services_can_be_chosen_by_address_and_type() -> None:
    services = Services()
    chosen = services.strategy.selectable(services.create("web"))
    assert chosen == {"spec.clusterIP": "10.96.1.1", "spec.type": "ClusterIP"}
