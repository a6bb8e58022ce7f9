"""What `moorage plugin new` writes installs beside a wheel of moorage, passes its tests, and works."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.apiserver.running import Kubectl
from tests.plugin_packages.environment import CLUSTER, CleanEnvironment, build_wheel, environment_with
from tests.run.running import RunningScheduler
from tests.up.running import TIMEOUT_SECONDS, start_cluster

PACKAGE, MODULE, PLUGIN = "tide-table", "tide_table", "TideTable"
LABEL = f"example.com/{PACKAGE}"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> CleanEnvironment:
    """An environment with wheels of moorage and its extra, and a generated package installed into it."""
    folder = tmp_path_factory.mktemp("packages")
    build_wheel(folder)
    build_wheel(folder, CLUSTER)
    environment = environment_with(folder / "environment", folder, "hatchling", "pytest")
    written = environment.run("moorage", "plugin", "new", PACKAGE, cwd=folder)
    assert written.returncode == 0, written.stderr
    environment.install(str(folder / PACKAGE))
    return environment


@pytest.fixture
def package(environment: CleanEnvironment) -> Path:
    """The folder of the generated package."""
    return environment.bin.parent.parent / PACKAGE


def test_both_are_installed_from_wheels(environment: CleanEnvironment, tmp_path: Path) -> None:
    script = f"import moorage, {MODULE}; print(moorage.__file__, {MODULE}.__file__, sep='\\n')"
    done = environment.run("python", "-c", script, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for line in done.stdout.split():
        assert Path(line).is_relative_to(environment.site_packages), line


def test_it_passes_its_tests_as_generated(environment: CleanEnvironment, package: Path) -> None:
    # Without its `pythonpath`, the installed package is tested.
    words = ("-m", "pytest", "-p", "no:cacheprovider", "-W", "error", "--override-ini=pythonpath=")
    done = environment.run("python", *words, cwd=package)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout


def test_it_keeps_the_rules(environment: CleanEnvironment, package: Path) -> None:
    for target in (str(package), f"{MODULE}:{PLUGIN}", str(package / "src" / MODULE / "plugin.py")):
        done = environment.run("moorage", "plugin", "check", target, cwd=package.parent)
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"{PLUGIN}: no rule broken" in done.stdout


def _place(kubectl: Kubectl, pod: str) -> str:
    """The node that a pod of the plugin's scheduler gets, of three of which two have the label."""
    kubectl("label", "node", "node-1", f"{LABEL}=3")
    kubectl("label", "node", "node-2", f"{LABEL}=60")
    named = json.dumps({"spec": {"schedulerName": PACKAGE}})
    kubectl("run", pod, "--image=registry.example/tide:1", f"--overrides={named}")
    kubectl("wait", f"pod/{pod}", "--for=condition=PodScheduled", TIMEOUT_SECONDS)
    return str(kubectl.json("get", "pod", pod)["spec"]["nodeName"])


def test_it_works_by_name_in_a_local_cluster(
    environment: CleanEnvironment, package: Path, tmp_path: Path
) -> None:
    with environment.used():
        server = start_cluster(tmp_path, "--nodes", "3", "--config", str(package / "scheduler.yaml"))
    with server:
        assert _place(Kubectl(server, tmp_path), "one") == "node-2"


def test_it_works_by_name_in_the_live_scheduler(
    environment: CleanEnvironment, package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with environment.used():
        server = start_cluster(tmp_path, "--nodes", "3", "--no-scheduler")
    with server:
        monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig))
        with environment.used():
            scheduler = RunningScheduler(server.kubeconfig, f"--config={package / 'scheduler.yaml'}")
        with scheduler:
            assert _place(Kubectl(server, tmp_path), "two") == "node-2"
