"""Fixtures for tests of Kubernetes' clients: a running API server, or a cluster of simulated nodes.

`kube_apiserver` is an API server alone: objects stay as they are written. `kube_cluster` has controllers,
simulated nodes and the scheduler: Deployments get pods, and pods run. Both are new for every test, unless
`kube_scope` in pytest's configuration (or `--kube-scope`) is `class`, `module`, `package` or `session`.

pytest imports this module at every start: the cluster is imported when a test uses it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import pytest

if TYPE_CHECKING:
    from moorage_cluster.background import Endpoint

DEFAULT_NODE_COUNT: Final = 3

_Scope = Literal["session", "package", "module", "class", "function"]
_SCOPES: Final[tuple[_Scope, ...]] = ("function", "class", "module", "package", "session")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of these fixtures."""
    group = parser.getgroup("kubernetes")
    shared = f"Tests that share an API server or cluster: those of a {', '.join(_SCOPES)}."
    group.addoption("--kube-scope", choices=_SCOPES, default=None, help=shared)
    group.addoption("--kube-nodes", type=int, default=None, help="Number of simulated nodes of kube_cluster.")
    parser.addini("kube_scope", shared, default="function")
    parser.addini("kube_nodes", "Number of simulated nodes of kube_cluster.", default=str(DEFAULT_NODE_COUNT))


def pytest_configure(config: pytest.Config) -> None:
    """Describe the marker of these fixtures."""
    config.addinivalue_line("markers", "kube_nodes(count): number of simulated nodes of kube_cluster")


def _scope(fixture_name: str, config: pytest.Config) -> _Scope:
    wanted = config.getoption("--kube-scope") or config.getini("kube_scope")
    for scope in _SCOPES:
        if scope == wanted:
            return scope
    raise pytest.UsageError(f"kube_scope: {wanted!r} is none of {', '.join(_SCOPES)}")


def _node_count(request: pytest.FixtureRequest) -> int:
    marker = request.node.get_closest_marker("kube_nodes")
    config = request.config
    given = marker.args[0] if marker else config.getoption("--kube-nodes") or config.getini("kube_nodes")
    try:
        return int(given)
    except ValueError:
        raise pytest.UsageError(f"kube_nodes: {given!r} is no number") from None


@pytest.fixture(scope=_scope)
def kube_apiserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """A running Kubernetes API server: `url`, `kubeconfig` (a path) and `token` of an administrator."""
    yield from _running(tmp_path_factory.mktemp("kube_apiserver"), None)


@pytest.fixture(scope=_scope)
def kube_cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Endpoint]:
    """A running cluster with simulated nodes, reached as `kube_apiserver` is."""
    yield from _running(tmp_path_factory.mktemp("kube_cluster"), _node_count(request))


def _running(folder: Path, nodes: int | None) -> Iterator[Endpoint]:
    from moorage_cluster.background import BackgroundCluster

    with BackgroundCluster(folder, nodes) as endpoint:
        yield endpoint
