"""The `kubernetes` client, talking to a server in another process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kubernetes import client, config

from tests.apiserver.running import RunningServer


@contextmanager
def connected(server: RunningServer) -> Iterator[client.ApiClient]:
    """A client as its users make one: from the kubeconfig that the server wrote."""
    configuration = client.Configuration()
    config.load_kube_config(str(server.kubeconfig), client_configuration=configuration)
    configuration.retries = False
    with client.ApiClient(configuration) as api:
        try:
            yield api
        finally:
            pools = api.rest_client.pool_manager.pools
            for key in pools.keys():  # noqa: SIM118  (it cannot be iterated over)
                pools[key].close()
