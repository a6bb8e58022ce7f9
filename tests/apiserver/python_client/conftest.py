from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest
from kubernetes import client

from tests.apiserver.python_client.connecting import connected
from tests.apiserver.running import start_server

HISTORY = 10
_numbers = count()


@pytest.fixture(scope="session")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[client.ApiClient]:
    """A client of a server that soon forgets what has been."""
    folder = tmp_path_factory.mktemp("server")
    options = ("--watch-history", str(HISTORY))
    with start_server(folder, *options) as server, connected(server) as connection:
        yield connection


@pytest.fixture
def core(api: client.ApiClient) -> client.CoreV1Api:
    return client.CoreV1Api(api)


@pytest.fixture
def namespace(core: client.CoreV1Api) -> Iterator[str]:
    """A namespace of the test's own."""
    name = f"test-{next(_numbers)}"
    core.create_namespace({"metadata": {"name": name}})
    yield name
    core.delete_namespace(name)
