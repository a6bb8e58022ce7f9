"""One API server with RBAC for all tests, with a node, and a scheduler's account that may do no more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.apiserver.client import node
from tests.apiserver.running import Kubectl, RunningServer, start_server
from tests.run.running import ACCOUNT, RunningScheduler, scheduler_kubeconfig


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with start_server(tmp_path_factory.mktemp("run"), "--authorization", "RBAC") as running:
        yield running


@pytest.fixture(scope="session")
def kubectl(server: RunningServer, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """kubectl that may do everything, in a cluster with one node."""
    kubectl = Kubectl(server, tmp_path_factory.mktemp("home"))
    kubectl.create(node("n1"))
    kubectl("taint", "nodes", "n1", "node.kubernetes.io/not-ready-")
    return kubectl


@pytest.fixture(scope="session")
def kubeconfig(server: RunningServer, kubectl: Kubectl) -> Path:
    """How the scheduler reaches the server: as an account with the roles that kube-scheduler has."""
    path = scheduler_kubeconfig(server, kubectl)
    reader = "extension-apiserver-authentication-reader"
    role = (f"--role={reader}", f"--user={ACCOUNT}", "--namespace=kube-system")
    kubectl("create", "rolebinding", "scheduler-authentication-reader", *role)
    return path


@pytest.fixture(scope="session")
def admin_token(server: RunningServer) -> str:
    content: Any = yaml.safe_load(server.kubeconfig.read_text())
    return str(content["users"][0]["user"]["token"])


@pytest.fixture
def start(kubeconfig: Path) -> Iterator[Callable[..., RunningScheduler]]:
    """Starts schedulers; those that have not ended by the test's end are ended."""
    started: list[RunningScheduler] = []

    def begin(*options: str, leads: bool = True) -> RunningScheduler:
        started.append(RunningScheduler(kubeconfig, *options, leads=leads))
        return started[-1]

    yield begin
    for each in started:
        if each.process.poll() is None:
            each.kill()
