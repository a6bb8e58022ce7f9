"""The fixtures that tests of other people's software use, as those people use them."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from moorage.api.decode import InputError
from moorage_cluster.background import BackgroundCluster

ROOT = Path(__file__).parents[2]
WITHIN_SECONDS = 120

SHARED = """
def test_one(kube_apiserver):
    test_one.url = kube_apiserver.url

def test_other(kube_apiserver):
    assert kube_apiserver.url == test_one.url
"""


def run_pytest(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run pytest on a folder outside of the project, as its users do."""
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder)]
    return subprocess.run(
        words, capture_output=True, text=True, cwd=folder, timeout=WITHIN_SECONDS, check=False
    )


def test_the_example_of_an_operator_passes_with_a_cluster_for_each_test(tmp_path: Path) -> None:
    for file in (ROOT / "examples" / "operator").glob("*.py"):
        shutil.copy(file, tmp_path)
    done = run_pytest(tmp_path)
    assert done.stdout.splitlines()[-1].startswith("3 passed"), done.stdout


def test_tests_share_an_api_server_where_the_configuration_says_so(tmp_path: Path) -> None:
    (tmp_path / "test_scope.py").write_text(SHARED)
    (tmp_path / "pytest.ini").write_text("[pytest]\nkube_scope = session\n")
    done = run_pytest(tmp_path)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("kube_scope = week", "kube_scope: 'week' is none of function, class, module, package, session"),
        ("kube_nodes = many", "kube_nodes: 'many' is no number"),
    ],
)
def test_a_wrong_option_is_named(tmp_path: Path, line: str, complaint: str) -> None:
    (tmp_path / "test_it.py").write_text("def test_it(kube_cluster): pass\n")
    (tmp_path / "pytest.ini").write_text(f"[pytest]\n{line}\n")
    done = run_pytest(tmp_path)
    assert done.returncode != 0
    assert complaint in done.stdout + done.stderr


def test_nothing_is_left_when_the_context_ends(tmp_path: Path) -> None:
    before = threading.active_count()
    with BackgroundCluster(tmp_path, nodes=1) as endpoint:
        host, port = endpoint.url.removeprefix("https://").split(":")
        socket.create_connection((host, int(port))).close()
        assert endpoint.token not in repr(endpoint)
    assert threading.active_count() == before
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)))


def test_what_keeps_a_server_from_starting_is_raised_where_it_was_started(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be written"), BackgroundCluster(tmp_path / "file"):
        pass


def test_pytest_starts_without_the_cluster() -> None:
    program = (
        "import sys, moorage_cluster.pytest_plugin; "
        "print([name for name in sys.modules if name.startswith('moorage')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['moorage_cluster', 'moorage_cluster.pytest_plugin']"
