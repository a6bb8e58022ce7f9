"""Everything works where nothing but the wheels is installed, and far from the checkout."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

import pytest

from tests.apiserver.running import Kubectl, RunningServer, start_server
from tests.page_access import WITHIN_SECONDS, PageAddress, page_of
from tests.plugin_packages.environment import ROOT, CleanEnvironment
from tests.run.running import RunningScheduler
from tests.up.objects import pod
from tests.up.running import TIMEOUT_SECONDS, start_cluster

DISTRIBUTIONS = "import moorage, moorage_cluster; print(moorage.__file__, moorage_cluster.__file__)"
PROGRAMS = {"kubectl-moorage", "kubectl_complete-moorage", "moorage"}


class Up(NamedTuple):
    """A cluster of `moorage up` with a pod that fits no node."""

    server: RunningServer
    kubectl: Kubectl
    page: PageAddress


@pytest.fixture(scope="module")
def up(installed: CleanEnvironment, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    folder = tmp_path_factory.mktemp("up")
    with installed.used():
        server = start_server(folder, "--nodes=2", "--ui-port=0", command="up")
    with server:
        page = page_of(server.process)
        kubectl = Kubectl(server, folder)
        kubectl.create(pod("huge", cpu="100"), pod("small", cpu="1"))
        kubectl("wait", "pod/huge", "--for=condition=PodScheduled=False", TIMEOUT_SECONDS)
        kubectl("wait", "pod/small", "--for=condition=Ready", TIMEOUT_SECONDS)
        yield Up(server, kubectl, page)


def test_nothing_comes_from_the_checkout(installed: CleanEnvironment, tmp_path: Path) -> None:
    done = installed.run("python", "-c", DISTRIBUTIONS, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for file in map(Path, done.stdout.split()):
        assert file.is_relative_to(installed.site_packages)
        assert not file.is_relative_to(ROOT)
    assert {path.name for path in installed.bin.glob("*moorage*")} == PROGRAMS


def test_the_page_is_served_with_its_modules_and_documents(up: Up) -> None:
    with urlopen(f"{up.page.origin}/?token={up.page.token}", timeout=WITHIN_SECONDS) as answer:
        page = answer.read().decode()
    assert answer.headers.get_content_type() == "text/html"
    assert "<script" in page
    assert [entry["pod"] for entry in up.page.get("queue")["items"]] == ["default/huge"]


def test_kubectl_explains_with_the_plugin(up: Up, installed: CleanEnvironment) -> None:
    path = f"{installed.bin}{os.pathsep}{os.environ['PATH']}"
    explained = up.kubectl("moorage", "explain", "huge", PATH=path)
    assert "default/huge fits none of 2 nodes" in explained
    assert "Insufficient cpu" in explained
    assert up.kubectl("__complete", "moorage", "explain", "hu", PATH=path).splitlines() == ["huge", ":4"]


def test_a_scheduler_of_its_own_schedules(installed: CleanEnvironment, tmp_path: Path) -> None:
    with installed.used():
        server = start_cluster(tmp_path, "--nodes=2", "--no-scheduler")
    with server:
        kubectl = Kubectl(server, tmp_path)
        with installed.used():
            scheduler = RunningScheduler(server.kubeconfig)
        with scheduler:
            kubectl.create(pod("web"))
            kubectl("wait", "pod/web", "--for=condition=PodScheduled", TIMEOUT_SECONDS)


def test_simulations_run(installed: CleanEnvironment, tmp_path: Path) -> None:
    words = ("simulate", "--nodes=3", "--generate=30", "--seed=7", "--output=json")
    done = installed.run("moorage", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["pods"]


def test_shells_get_their_scripts(installed: CleanEnvironment, tmp_path: Path) -> None:
    for shell in ("bash", "zsh", "fish"):
        done = installed.run("moorage", "completion", shell, cwd=tmp_path)
        assert "moorage __complete" in done.stdout, done.stderr
