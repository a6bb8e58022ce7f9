"""An API server with RBAC for all recordings, and a scheduler's account that may do no more than it must."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.apiserver.running import Kubectl, RunningServer, start_server

ROLES = ("system:kube-scheduler", "system:volume-scheduler")
ACCOUNT = "system:serviceaccount:kube-system:scheduler"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with start_server(tmp_path_factory.mktemp("recordings"), "--authorization", "RBAC") as running:
        yield running


@pytest.fixture(scope="session")
def scheduler_kubeconfig(server: RunningServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """How the scheduler reaches the server: as an account with the two roles that kube-scheduler has."""
    kubectl = Kubectl(server, tmp_path_factory.mktemp("home"))
    kubectl("create", "serviceaccount", "scheduler", "--namespace=kube-system")
    for role in ROLES:
        name = role.replace(":", "-")
        kubectl("create", "clusterrolebinding", name, f"--clusterrole={role}", f"--user={ACCOUNT}")
    content = yaml.safe_load(server.kubeconfig.read_text())
    token = kubectl("create", "token", "scheduler", "--namespace=kube-system").strip()
    content["users"][0]["user"] = {"token": token}
    path = server.kubeconfig.with_name("scheduler.kubeconfig")
    path.write_text(yaml.safe_dump(content))
    return path
