"""`moorage up --run-containers`: pods whose containers are processes."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.apiserver.running import Kubectl, RunningServer
from tests.up.running import TIMEOUT_SECONDS, end, finished, line_with, start_cluster

ENDS_WITHIN_SECONDS = 60
SERVES = "trap 'echo bye; exit 0' TERM; echo serving on $ADDRESS as $$$$ in $PWD; sleep 1000 & wait"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RunningServer]:
    with start_cluster(tmp_path, "--nodes", "1", "--run-containers") as running:
        yield running


@pytest.fixture
def kubectl(cluster: RunningServer, tmp_path: Path) -> Kubectl:
    return Kubectl(cluster, tmp_path)


def shell(name: str, script: str, *, run: str = "true", **spec: Any) -> dict[str, Any]:
    """A pod that runs a shell script, if it may."""
    address = {"name": "ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    main = {"name": "main", "image": "busybox:1", "command": ["sh", "-c", script], "env": [address]}
    meta = {"name": name, "annotations": {"moorage.io/run": run}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [main], **spec}}


def test_what_pods_ask_for_is_run(kubectl: Kubectl) -> None:
    kubectl.create(
        shell("fails", "echo to fail; exit 3", restartPolicy="Never"),
        shell("simulated", "exit 3", run="false"),
        shell("serves", SERVES, terminationGracePeriodSeconds=60),
    )
    for name, phase in (("fails", "Failed"), ("simulated", "Running"), ("serves", "Running")):
        kubectl("wait", f"pod/{name}", f"--for=jsonpath={{.status.phase}}={phase}", TIMEOUT_SECONDS)
    (status,) = kubectl.json("get", "pod", "fails")["status"]["containerStatuses"]
    assert (status["state"]["terminated"]["exitCode"], kubectl("logs", "fails")) == (3, "to fail\n")
    assert "simulated: container main of pod simulated started" in kubectl("logs", "simulated")
    following = kubectl.start("logs", "serves", "--follow")
    try:
        address = kubectl("get", "pod", "serves", "-o", "jsonpath={.status.podIP}")
        assert address.startswith("127.")
        assert line_with(following, "serving").startswith(f"serving on {address} as ")
        kubectl("delete", "pod", "serves")
        assert finished(following) == "bye\n"
    finally:
        end(following)


def test_nothing_is_left_behind(cluster: RunningServer, kubectl: Kubectl) -> None:
    kubectl.create(shell("serves", SERVES))
    kubectl("wait", "pod/serves", "--for=condition=Ready", TIMEOUT_SECONDS)
    following = kubectl.start("logs", "serves", "--follow")
    try:
        words = line_with(following, "serving").split()
    finally:
        end(following)
    folder = Path(words[-1])
    assert folder.is_dir()
    children = Path(f"/proc/{cluster.process.pid}/task/{cluster.process.pid}/children").read_text().split()
    watched = [os.pidfd_open(int(pid)) for pid in children]
    assert words[-3] in children
    cluster.process.kill()
    cluster.process.wait()
    for each in watched:
        assert select.select([each], [], [], ENDS_WITHIN_SECONDS)[0]
        os.close(each)
    assert not folder.exists()
