"""An API server with RBAC for all recordings, and a scheduler's account that may do no more than it must."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apiserver.running import Kubectl, RunningServer, start_server
from tests.run.running import scheduler_kubeconfig


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with start_server(
        tmp_path_factory.mktemp("recordings"), "--authorization", "RBAC", "--emulated-version", "1.36"
    ) as running:
        yield running


@pytest.fixture(scope="session")
def kubeconfig(server: RunningServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """How the scheduler reaches the server: as an account with the two roles that kube-scheduler has."""
    return scheduler_kubeconfig(server, Kubectl(server, tmp_path_factory.mktemp("home")))
