"""The printed NetworkPolicy: what may come in, and what may go out."""

from __future__ import annotations

from tests.manifests.printing import Manifest, pod_of, printed, the

DNS = {
    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
    "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
}


def policy(*options: object) -> Manifest:
    spec: Manifest = the(printed("--namespace", "harbour", *options), "NetworkPolicy")["spec"]
    return spec


def test_it_selects_the_schedulers_pods() -> None:
    objects = printed()
    selected = the(objects, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"]
    template = the(objects, "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert selected.items() <= template.items()
    assert len(selected) == 2


def test_nothing_on_the_network_can_connect_where_nothing_is_scraped() -> None:
    spec = policy("--no-pod-monitor")
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert spec["ingress"] == []


def test_only_prometheus_can_connect_to_be_given_metrics() -> None:
    (rule,) = policy()["ingress"]
    ((peer,), (port,)) = rule["from"], rule["ports"]
    assert peer["podSelector"] == {"matchLabels": {"app.kubernetes.io/name": "prometheus"}}
    (container,) = pod_of(printed())["containers"]
    assert port["port"] in [each["name"] for each in container["ports"]]


def test_a_plugin_can_connect_to_the_api_server_and_dns_and_nothing_else() -> None:
    api_server, dns = policy()["egress"]
    assert "to" not in api_server, "an API server is no pod, so no selector selects it"
    assert [(each["protocol"], each["port"]) for each in api_server["ports"]] == [("TCP", 443), ("TCP", 6443)]
    assert dns["to"] == [DNS]
    assert [(each["protocol"], each["port"]) for each in dns["ports"]] == [("UDP", 53), ("TCP", 53)]


def test_it_can_be_left_to_others() -> None:
    assert "NetworkPolicy" not in [each["kind"] for each in printed("--no-network-policy")]
