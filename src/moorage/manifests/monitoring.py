"""Metrics for Prometheus' operator.

Scraping requires authentication, and a PodMonitor can read a token only from a Secret. So there is a service
account that may only read metrics, and a Secret with its token.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from moorage.api.manifests import Manifest
from moorage.manifests.deployment import PORT_NAME
from moorage.manifests.installation import Installation
from moorage.manifests.objects import RBAC, account, new_object, role, selector

_PATHS: Final = ("/metrics", "/metrics/resources")


def monitoring(installation: Installation) -> Iterator[Manifest]:
    """The service account that reads metrics, its token, and the PodMonitor."""
    name, namespace = f"{installation.name}-metrics", installation.namespace
    version = f"{RBAC}/v1"
    yield new_object(
        "v1", "ServiceAccount", name, namespace, installation, automountServiceAccountToken=False
    )
    token = new_object(
        "v1", "Secret", name, namespace, installation, type="kubernetes.io/service-account-token"
    )
    token["metadata"]["annotations"] = {"kubernetes.io/service-account.name": name}
    yield token
    readable = [{"nonResourceURLs": list(_PATHS), "verbs": ["get"]}]
    yield new_object(version, "ClusterRole", name, "", installation, rules=readable)
    yield new_object(
        version,
        "ClusterRoleBinding",
        name,
        "",
        installation,
        roleRef=role("ClusterRole", name),
        subjects=[account(name, namespace)],
    )
    yield new_object(
        "monitoring.coreos.com/v1",
        "PodMonitor",
        installation.name,
        namespace,
        installation,
        spec={
            "selector": {"matchLabels": selector(installation)},
            "podMetricsEndpoints": [_endpoint(path, name) for path in _PATHS],
        },
    )


def _endpoint(path: str, secret: str) -> Manifest:
    return {
        "port": PORT_NAME,
        "path": path,
        "scheme": "https",
        # The certificate is self-signed: the process creates it at startup.
        "tlsConfig": {"insecureSkipVerify": True},
        "authorization": {"credentials": {"name": secret, "key": "token"}},
    }
