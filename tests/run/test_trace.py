"""`moorage trace record` of a server in another process, and a simulation of what it wrote."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

from moorage.cli.main import app
from tests.apiserver.running import Kubectl, RunningServer
from tests.up.objects import pod


def test_a_recording_ends_with_a_signal_and_can_be_simulated(
    server: RunningServer, kubectl: Kubectl, tmp_path: Path
) -> None:
    trace = tmp_path / "trace.parquet"
    kubectl.create(pod("recorded", cpu="250m"))
    words = [sys.executable, "-m", "moorage", "trace", "record", "--output", str(trace)]
    process = subprocess.Popen(
        [*words, "--kubeconfig", str(server.kubeconfig)], stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        begun = process.stderr.readline()
        assert begun == f"moorage trace record: recording the pods of {server.url}; Ctrl-C ends it\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
    finally:
        process.kill()
        kubectl("delete", "pod", "recorded", "--grace-period=0", "--force")
    assert process.returncode == 0, errors
    assert f" pods are in {trace}, of which " in errors
    assert list(tmp_path.iterdir()) == [trace]
    words = ["simulate", "--nodes", "1", "--workload", str(trace), "-o", "json"]
    simulated = CliRunner().invoke(app, words)
    assert simulated.exit_code == 0, simulated.output
    placed = {each["name"]: each for each in json.loads(simulated.stdout)["placements"]}
    assert (placed["recorded"]["node"], placed["recorded"]["cpuMilli"]) == ("node-0", 250)
