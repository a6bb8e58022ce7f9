"""`moorage queue` and `moorage attempts`, asking a scheduler in another process."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from moorage.cli.main import app
from tests.apiserver.running import Kubectl, RunningServer
from tests.run.running import RunningScheduler
from tests.scheduler.running import pod

Ask = Callable[..., Result]


@pytest.fixture(scope="module")
def scheduler(kubeconfig: Path, kubectl: Kubectl) -> Iterator[RunningScheduler]:
    with RunningScheduler(kubeconfig) as running:
        kubectl.create(pod("placed", cpu="10m"))
        kubectl.create(pod("refused", cpu="999"))
        kubectl("wait", "pod/placed", "--for=condition=PodScheduled", "--timeout=100s")
        kubectl("wait", "pod/refused", "--for=condition=PodScheduled=False", "--timeout=100s")
        yield running
    kubectl("delete", "pod", "placed", "refused", "--grace-period=0", "--force")


@pytest.fixture
def ask(scheduler: RunningScheduler, server: RunningServer) -> Ask:
    def run(*arguments: str, kubeconfig: Path = server.kubeconfig) -> Result:
        where = [f"--scheduler={scheduler.address}", f"--kubeconfig={kubeconfig}"]
        return CliRunner().invoke(app, [*arguments, *where, "--insecure-skip-tls-verify"])

    return run


def printed(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_the_queue(ask: Ask) -> None:
    document = printed(ask("queue", "-o", "json"))
    assert (document["apiVersion"], document["kind"]) == ("moorage.io/v1", "QueueList")
    [entry] = document["items"]
    assert (entry["pod"], entry["place"]) == ("default/refused", "unschedulable")
    assert entry["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    header, row = ask("queue").stdout.splitlines()
    assert header.split()[:2] == ["POD", "PLACE"]
    assert row.split()[:2] == ["default/refused", "unschedulable"]
    assert "NodeResourcesFit" in row
    assert ask("queue", "-n", "elsewhere").stdout == "no pod is waiting\n"


def test_the_attempts(ask: Ask) -> None:
    document = printed(ask("attempts", "refused", "-o", "json"))
    assert (document["apiVersion"], document["kind"]) == ("moorage.io/v1", "AttemptList")
    assert document["items"][0]["result"] == "Unschedulable"
    shown = ask("attempts", "refused").stdout
    assert "attempt 1  Unschedulable" in shown
    assert "NodeResourcesFit   Insufficient cpu" in shown
    assert "attempt 1  Scheduled  n1  (1 of 1 nodes feasible)" in ask("attempts", "placed").stdout
    assert ask("attempts", "gone").stdout == "no attempts of default/gone are remembered\n"


def test_attempts_and_the_place_in_the_queue_of_an_explained_pod(ask: Ask, kubeconfig: Path) -> None:
    assert ask("explain", "pod/refused", "--attempts").stdout == ask("attempts", "refused").stdout
    assert printed(ask("explain", "refused", "--attempts", "-o", "json"))["kind"] == "AttemptList"
    queue = printed(ask("explain", "refused", "-o", "json"))["queue"]
    assert (queue["pod"], queue["place"]) == ("default/refused", "unschedulable")
    shown = ask("explain", "refused").stdout
    assert "in the scheduler's queue: unschedulable for " in shown
    assert "; woken by " in shown
    without = ask("explain", "refused", kubeconfig=kubeconfig).stdout
    assert "note: the scheduler's queue cannot be read: " in without


def test_they_take_a_permission(ask: Ask, kubeconfig: Path) -> None:
    refused = ask("queue", kubeconfig=kubeconfig)
    assert refused.exit_code == 1
    assert 'cannot get path "/moorage/v1/queue"' in refused.output
    assert 'nonResourceURLs: ["/moorage/v1/*"]' in refused.output
    assert len(refused.output.splitlines()) == 1


def test_a_scheduler_that_is_not_there(server: RunningServer) -> None:
    result = CliRunner().invoke(
        app, ["queue", "--scheduler=https://127.0.0.1:1", f"--kubeconfig={server.kubeconfig}"]
    )
    assert result.exit_code == 1
    assert result.output == "https://127.0.0.1:1 cannot be reached: connection refused\n"
    assert len(result.output.splitlines()) == 1
