"""One server for all tests; each test has a namespace of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.apiserver.running import Kubectl, RunningServer, start_server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with start_server(tmp_path_factory.mktemp("apiserver"), "--authorization", "RBAC") as server:
        yield server


@pytest.fixture(scope="session")
def anywhere(server: RunningServer, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """kubectl without a namespace; what it has learnt of the server, all tests share."""
    return Kubectl(server, tmp_path_factory.mktemp("home"))


@pytest.fixture
def namespace(anywhere: Kubectl, request: pytest.FixtureRequest) -> str:
    """A new namespace."""
    name = re.sub("[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower())[:60].strip("-")
    anywhere("create", "namespace", name)
    return name


@pytest.fixture
def kubectl(anywhere: Kubectl, namespace: str) -> Kubectl:
    """kubectl in a new namespace."""
    return anywhere.with_options("--namespace", namespace)
