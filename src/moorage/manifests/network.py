"""The NetworkPolicy: allowed connections to the scheduler and from it."""

from __future__ import annotations

from typing import Final

from moorage.api.manifests import Manifest
from moorage.manifests.defaults import CONTROL_PLANE
from moorage.manifests.deployment import PORT_NAME
from moorage.manifests.installation import Installation
from moorage.manifests.objects import new_object, selector

_API_SERVER_PORTS: Final = (443, 6443)
"""Ports of the Service `kubernetes` and of API servers behind it: network plugins check one or the other."""
_DNS_PORT: Final = 53
_DNS_PODS: Final = {
    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": CONTROL_PLANE}},
    "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
}
_PROMETHEUS_PODS: Final = {
    "namespaceSelector": {},
    "podSelector": {"matchLabels": {"app.kubernetes.io/name": "prometheus"}},
}
"""The labels that the Prometheus operator sets on its pods, in any namespace."""


def network_policy(installation: Installation) -> Manifest:
    """Ingress only for scrapes, egress only to the API server and DNS.

    Probes need no rule: a pod's own node always reaches it. A policy cannot select an API server,
    so only its ports are restricted.
    """
    scrapes = [{"from": [_PROMETHEUS_PODS], "ports": [{"protocol": "TCP", "port": PORT_NAME}]}]
    spec = {
        "podSelector": {"matchLabels": selector(installation)},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": scrapes if installation.is_monitored else [],
        "egress": [
            {"ports": [{"protocol": "TCP", "port": port} for port in _API_SERVER_PORTS]},
            {
                "to": [_DNS_PODS],
                "ports": [{"protocol": protocol, "port": _DNS_PORT} for protocol in ("UDP", "TCP")],
            },
        ],
    }
    name, namespace = installation.name, installation.namespace
    return new_object("networking.k8s.io/v1", "NetworkPolicy", name, namespace, installation, spec=spec)
