"""A leader that is stopped (SIGSTOP) between decision and binding for longer than its lease."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import yaml

from tests.apiserver.running import Kubectl
from tests.run.running import SHORT_LEASE, RunningScheduler
from tests.up.objects import pod

Start = Callable[..., RunningScheduler]

PLUGIN = """
import os
import signal

class StopsItself:
    name = "StopsItself"

    async def pre_bind(self, cycle, pod, node):
        os.kill(os.getpid(), signal.SIGSTOP)
"""


def only_other_pods(path: Path, kubeconfig: Path) -> str:
    """The flag of a configuration with which the scheduler leaves the pods of this test alone."""
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "profiles": [{"schedulerName": "another"}],
    }
    path.write_text(yaml.safe_dump(document))
    return f"--config={path}"


def test_a_leader_that_continues_after_its_lease_writes_nothing(
    kubectl: Kubectl, start: Start, kubeconfig: Path, tmp_path: Path
) -> None:
    plugin = tmp_path / "stops_itself.py"
    plugin.write_text(PLUGIN)
    leader = start(f"--plugin={plugin}", *SHORT_LEASE)
    standby = start(only_other_pods(tmp_path / "scheduler.yaml", kubeconfig), leads=False)
    kubectl.create(pod("late", cpu="10m"))
    standby.says("Successfully acquired lease")
    leader.send(signal.SIGCONT)
    assert leader.ended() == 1
    assert "Leaderelection lost" in leader.log
    assert "nodeName" not in kubectl.json("get", "pod", "late")["spec"]
    standby.stop()
    kubectl("delete", "pod", "late", "--grace-period=0", "--force")
