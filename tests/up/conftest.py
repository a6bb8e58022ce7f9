"""One cluster for all tests that only need a cluster; each test has a namespace of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.apiserver.running import Kubectl, RunningServer
from tests.up.objects import POOL, node
from tests.up.running import TIMEOUT_SECONDS, start_cluster

OWN_SCHEDULER = "my-scheduler"
CONFIGURATION = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
- schedulerName: {OWN_SCHEDULER}
"""
NODES = 4


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder: Path = tmp_path_factory.mktemp("up")
    configuration = folder / "scheduler.yaml"
    configuration.write_text(CONFIGURATION)
    with start_cluster(folder, "--nodes", str(NODES), "--config", str(configuration)) as running:
        yield running


@pytest.fixture(scope="session")
def anywhere(cluster: RunningServer, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """kubectl without a namespace; what it has learnt of the server, all tests share."""
    return Kubectl(cluster, tmp_path_factory.mktemp("home"))


@pytest.fixture
def namespace(anywhere: Kubectl, request: pytest.FixtureRequest) -> Iterator[str]:
    """A new namespace, which goes with all that is in it."""
    name = re.sub("[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower())[:60].strip("-")
    anywhere("create", "namespace", name)
    yield name
    anywhere("delete", "namespace", name, "--wait=false")


@pytest.fixture
def kubectl(anywhere: Kubectl, namespace: str) -> Kubectl:
    """kubectl in a new namespace."""
    return anywhere.with_options("--namespace", namespace)


@pytest.fixture
def add_node(anywhere: Kubectl, namespace: str) -> Iterator[Callable[..., str]]:
    """Adds a node to a pool of the namespace's name and waits until it is ready; the answer is its name."""
    names: list[str] = []

    def add(**size: str) -> str:
        names.append(f"{namespace}-{len(names)}")
        anywhere.create(node(names[-1], **size, **{POOL: namespace}))
        anywhere("wait", f"node/{names[-1]}", "--for=condition=Ready", TIMEOUT_SECONDS)
        return names[-1]

    yield add
    if names:
        anywhere("delete", "nodes", *names, "--ignore-not-found", "--wait=false")
