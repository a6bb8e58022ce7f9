"""A cluster with RBAC, nodes and a default scheduler, into which moorage is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.apiserver.running import Kubectl, RunningServer
from tests.manifests.installing import DEFINITION, account_kubeconfig, as_text, start
from tests.manifests.printing import Manifest, printed
from tests.run.running import RunningScheduler
from tests.up.running import start_cluster

Start = Callable[..., RunningScheduler]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    options = ("--nodes", "3", "--authorization", "RBAC")
    with start_cluster(tmp_path_factory.mktemp("manifests"), *options) as running:
        yield running


@pytest.fixture(scope="session")
def kubectl(server: RunningServer, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """kubectl that may do everything, in a cluster that knows PodMonitors."""
    kubectl = Kubectl(server, tmp_path_factory.mktemp("home"))
    kubectl("apply", "-f", str(DEFINITION))
    kubectl("wait", "--for=condition=Established", "crd/podmonitors.monitoring.coreos.com", "--timeout=100s")
    return kubectl


@pytest.fixture(scope="session")
def installed(kubectl: Kubectl) -> list[Manifest]:
    """The objects of an installation, which are there."""
    objects = printed()
    kubectl("apply", "-f", "-", input=as_text(objects))
    return objects


@pytest.fixture(scope="session")
def kubeconfig(
    server: RunningServer,
    kubectl: Kubectl,
    installed: list[Manifest],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """How the installed scheduler reaches the server."""
    return account_kubeconfig(server, kubectl, "moorage", tmp_path_factory.mktemp("account"))


@pytest.fixture
def start_installed(installed: list[Manifest], kubeconfig: Path, tmp_path: Path) -> Iterator[Start]:
    """Starts the installed scheduler, as often as there are replicas; all end with the test."""
    started: list[RunningScheduler] = []

    def begin(*options: str, leads: bool = True) -> RunningScheduler:
        folder = tmp_path / f"replica-{len(started)}"
        folder.mkdir()
        started.append(start(installed, kubeconfig, folder, *options, leads=leads))
        return started[-1]

    yield begin
    for each in started:
        if each.process.poll() is None:
            each.kill()
