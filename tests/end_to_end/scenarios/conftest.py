"""A cluster with controllers and simulated nodes that leaves scheduling to `moorage run`.

Each test has a namespace of its own, and nodes of its own: it adds them, and nobody else's are there. The API
server enforces RBAC, and the schedulers have the two roles that kube-scheduler has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.apiserver.running import Kubectl, RunningServer
from tests.end_to_end.scenarios.stage import Stage
from tests.run.running import scheduler_kubeconfig
from tests.up.running import TIMEOUT_SECONDS, start_cluster


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    options = ("--nodes", "0", "--no-scheduler", "--authorization", "RBAC")
    with start_cluster(tmp_path_factory.mktemp("scenarios"), *options) as running:
        yield running


@pytest.fixture(scope="session")
def kubectl(server: RunningServer, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """kubectl that may do everything, without a namespace."""
    return Kubectl(server, tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="session")
def kubeconfig(server: RunningServer, kubectl: Kubectl) -> Path:
    """How schedulers reach the server."""
    return scheduler_kubeconfig(server, kubectl)


@pytest.fixture(scope="session")
def admin_token(server: RunningServer) -> str:
    content: Any = yaml.safe_load(server.kubeconfig.read_text())
    return str(content["users"][0]["user"]["token"])


@pytest.fixture
def stage(
    kubectl: Kubectl, kubeconfig: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Stage]:
    """A new namespace; it goes with all that is in it, and all nodes go with it."""
    namespace = re.sub("[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower())[:60].strip("-")
    kubectl("create", "namespace", namespace)
    stage = Stage(kubectl, namespace, kubeconfig, tmp_path)
    yield stage
    stage.close()
    kubectl("delete", "namespace", namespace, TIMEOUT_SECONDS)
    kubectl("delete", "nodes", "--all")
