"""A server in this process, and pods of it."""

from __future__ import annotations

from typing import Any

from moorage.api.manifests import Manifest
from moorage.client.client import Client
from moorage.client.kinds import CONFIG_MAP, POD, SECRET
from moorage_cluster.apiserver.embedded import EmbeddedServer
from moorage_cluster.nodes.workload import Host

HOST = Host("node-0", "10.0.0.1", {"cpu": "7900m", "memory": "32Gi"})
ADDRESS = "127.64.0.2"


def new_client() -> Client:
    server = EmbeddedServer()
    return Client(server.api, server.token)


async def create_data(client: Client) -> None:
    """A ConfigMap `settings` and a Secret `keys`."""
    await client.create(
        CONFIG_MAP,
        "default",
        {"metadata": {"name": "settings"}, "data": {"colour": "blue", "path": "/data/x"}},
    )
    await client.create(SECRET, "default", {"metadata": {"name": "keys"}, "stringData": {"key": "secret"}})


async def create_pod(client: Client, container: Manifest | None = None, **spec: Any) -> Manifest:
    """A pod `a` with a container `main`."""
    main = {"name": "main", "image": "registry.example/app:1", **(container or {})}
    meta = {"name": "a", "namespace": "default", "labels": {"app": "web"}}
    pod = {"metadata": meta, "spec": {"containers": [main], **spec}}
    return await client.create(POD, "default", pod)
