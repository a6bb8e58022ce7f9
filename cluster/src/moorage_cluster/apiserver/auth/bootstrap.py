"""The objects that exist when a server starts for the first time."""

from __future__ import annotations

from typing import Final

import msgspec

from moorage.admission.system_objects import (
    SYSTEM_NAMESPACES,
    system_namespaces,
    system_priority_classes,
)
from moorage.api.manifests import Manifest, copy
from moorage_cluster.apiserver.auth.bootstrap_roles import (
    cluster_role_bindings,
    cluster_roles,
    role_bindings,
    roles,
)
from moorage_cluster.apiserver.server_version import ServerVersion

ROOT_CA_NAME: Final = "kube-root-ca.crt"

_ROOT_CA_DESCRIPTION: Final = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such "
    "as the internal service IP or kubernetes.default.svc. "
    "No other usage is guaranteed across distributions of Kubernetes clusters."
)
_REQUEST_HEADERS: Final = {
    "requestheader-allowed-names": ["front-proxy-client"],
    "requestheader-extra-headers-prefix": ["X-Remote-Extra-"],
    "requestheader-group-headers": ["X-Remote-Group"],
    "requestheader-username-headers": ["X-Remote-User"],
}
"""Servers with delegated authentication read the trusted request-header proxy here; no such proxy exists."""
_KUBERNETES_SERVICE: Final[Manifest] = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {
        "name": "kubernetes",
        "namespace": "default",
        "labels": {"component": "apiserver", "provider": "kubernetes"},
    },
    "spec": {
        "clusterIP": "10.96.0.1",
        "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
    },
}
"""The Service through which pods would call the API server."""


def bootstrap_objects(ca_pem: str, version: ServerVersion) -> list[Manifest]:
    """All of them, namespaces first; clients verify the server's certificate with `ca_pem`."""
    return [
        *system_namespaces(),
        *system_priority_classes(),
        *cluster_roles(version),
        *cluster_role_bindings(),
        *roles(),
        *role_bindings(),
        *(root_ca(name, ca_pem) for name in SYSTEM_NAMESPACES),
        _delegated_authentication(ca_pem),
        copy(_KUBERNETES_SERVICE),
    ]


def root_ca(namespace: str, ca_pem: str) -> Manifest:
    """The ConfigMap in every namespace that gives its pods the server's CA."""
    annotations = {"kubernetes.io/description": _ROOT_CA_DESCRIPTION}
    return _config_map(ROOT_CA_NAME, namespace, {"ca.crt": ca_pem}, annotations)


def _delegated_authentication(ca_pem: str) -> Manifest:
    data = {"client-ca-file": ca_pem, "requestheader-client-ca-file": ca_pem}
    for key, values in _REQUEST_HEADERS.items():
        data[key] = msgspec.json.encode(values).decode()
    return _config_map("extension-apiserver-authentication", "kube-system", data)


def _config_map(
    name: str, namespace: str, data: dict[str, str], annotations: dict[str, str] | None = None
) -> Manifest:
    metadata: Manifest = {"name": name, "namespace": namespace}
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
