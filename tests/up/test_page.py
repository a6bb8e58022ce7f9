"""The page of `moorage up`: a process that shows the cluster, and ends with it."""

from __future__ import annotations

import socket
from pathlib import Path

from typer.testing import CliRunner

from moorage.cli.main import app
from tests.apiserver.running import Kubectl, RunningServer, start_server
from tests.page_access import all_end, children, page_of
from tests.up.objects import pod
from tests.up.running import TIMEOUT_SECONDS


def test_the_page_shows_what_the_scheduler_tells(tmp_path: Path) -> None:
    with start_server(tmp_path, "--nodes=1", "--ui-port=0", command="up") as running:
        page = page_of(running.process)
        kubectl = Kubectl(running, tmp_path)
        kubectl.create(pod("huge", cpu="100"))
        kubectl("wait", "pod/huge", "--for=condition=PodScheduled=False", TIMEOUT_SECONDS)

        assert {"queue", "attempts", "health"} <= set(page.get("source")["features"])
        queue = page.get("queue")
        assert queue["fromScheduler"] is True
        assert [entry["pod"] for entry in queue["items"]] == ["default/huge"]
        assert page.get("attempts/default/huge")["items"][0]["result"] == "Unschedulable"
        assert page.get("health")["problem"] == ""

        [command] = children(running.process)
        asked = CliRunner().invoke(
            app,
            [
                "queue",
                f"--scheduler={command.split(' --scheduler ')[1].split()[0]}",
                f"--kubeconfig={running.kubeconfig}",
                "--insecure-skip-tls-verify",
            ],
        )
        assert "default/huge" in asked.stdout, asked.output

        running.process.terminate()
        all_end(running.process)
        assert running.errors == ""


def test_the_page_ends_with_a_cluster_that_is_killed(tmp_path: Path) -> None:
    with start_server(tmp_path, "--nodes=1", "--ui-port=0", command="up") as running:
        page_of(running.process)
        [command] = children(running.process)
        assert " moorage ui " in command
        running.process.kill()
        all_end(running.process)


def test_a_port_that_is_taken_is_replaced(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        options = ("--nodes=1", f"--ui-port={port}", "--no-scheduler")
        with start_server(tmp_path, *options, command="up") as running:
            page = page_of(running.process)
            assert page.get("source")["features"].count("health") == 0
            assert f"127.0.0.1:{port}: address already in use; port " in running.errors


def test_without_a_page_there_is_no_process(cluster: RunningServer) -> None:
    assert children(cluster.process) == []
