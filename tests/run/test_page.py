"""`moorage ui` beside a running scheduler: what it tells scripts, how it ends, and what it cannot show."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.apiserver.running import Kubectl, RunningServer
from tests.run.running import RunningScheduler, account_kubeconfig
from tests.scheduler.running import pod
from tests.ui.running import WITHIN_SECONDS, RunningPage


def refused(kubeconfig: Path, *options: str) -> str:
    """The only line of a command that cannot show anything."""
    done = subprocess.run(
        [sys.executable, "-m", "moorage", "ui", "--port=0", f"--kubeconfig={kubeconfig}", *options],
        capture_output=True,
        text=True,
        timeout=WITHIN_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    return line


def test_the_queue_and_the_attempts_are_those_of_the_scheduler(
    server: RunningServer, kubeconfig: Path, kubectl: Kubectl
) -> None:
    with RunningScheduler(kubeconfig) as scheduler:
        kubectl.create(pod("too-large", cpu="999"))
        kubectl("wait", "pod/too-large", "--for=condition=PodScheduled=False", "--timeout=100s")
        where = (f"--scheduler={scheduler.address}", "--insecure-skip-tls-verify")
        with RunningPage(server.kubeconfig, *where) as page:
            assert {"queue", "attempts"} <= set(page.get("source")["features"])
            queue = page.get("queue")
            [entry] = [each for each in queue["items"] if each["pod"] == "default/too-large"]
            assert (queue["fromScheduler"], entry["place"]) == (True, "unschedulable")
            assert entry["rejectedBy"] == ["NodeResourcesFit"]
            [attempt, *_] = page.get("attempts/default/too-large")["items"]
            assert attempt["result"] == "Unschedulable"

            scheduler.stop()
            queue = page.get("queue")
            [entry] = [each for each in queue["items"] if each["pod"] == "default/too-large"]
            assert (queue["fromScheduler"], entry["place"]) == (False, "unschedulable")
            assert queue["problem"] != ""
    kubectl("delete", "pod", "too-large", "--grace-period=0", "--force")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_while_a_page_follows_its_changes(
    server: RunningServer, kubectl: Kubectl, number: signal.Signals
) -> None:
    page = RunningPage(server.kubeconfig)
    with page, page.open("changes") as changes:
        assert changes.readline().startswith(b"id: ")
        assert page.ended_by(number) == (0, "")


def test_who_may_not_read_pods_is_told_the_rule(
    server: RunningServer, kubectl: Kubectl, kubeconfig: Path
) -> None:
    kubectl("create", "serviceaccount", "reader", "--namespace=kube-system")
    line = refused(account_kubeconfig(server, kubectl, "reader"))

    assert line.startswith("moorage ui: ")
    assert 'resources: ["nodes"]' in line
    assert 'verbs: ["list"' in line


def test_a_server_that_is_not_there(server: RunningServer, tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(server.kubeconfig.read_text().replace(server.url, "https://127.0.0.1:1"))

    assert refused(path).startswith("moorage ui: the API server does not answer: ")
    assert refused(tmp_path / "none").startswith("moorage ui: ")


def test_a_port_that_is_taken(server: RunningServer) -> None:
    with RunningPage(server.kubeconfig) as page:
        port = page.origin.rpartition(":")[2]

        assert refused(server.kubeconfig, f"--port={port}").startswith(
            f"moorage ui: cannot listen on 127.0.0.1:{port}: "
        )
