"""A live cluster as the start of a simulation."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from moorage.api.decode import InputError
from moorage.api.manifests import Manifest
from moorage.client.client import Client
from moorage.http.transport import Request, Response
from moorage.simulation.live import LiveCluster, read_with
from moorage.simulation.run import run_simulation
from moorage.simulation.scenario import ScenarioSource, read_scenario
from moorage_cluster.background import BackgroundCluster
from tests.builders import HOSTNAME, node, pod
from tests.simulation.simulating import manifest, settings

SMALL = {"cpu": "4", "memory": "8Gi", "pods": "10"}
ITEMS: dict[str, list[Any]] = {
    "nodes": [node(name, labels={HOSTNAME: name}, allocatable=SMALL) for name in ("n1", "n2")],
    "pods": [
        pod("running", uid="running", requests={"cpu": "3"}, nodeName="n1"),
        pod("small", uid="small", requests={"cpu": "1"}, node_selector={HOSTNAME: "n1"}),
        pod("waits", uid="waits", requests={"cpu": "6"}),
    ],
    "priorityclasses": [{"metadata": {"name": "urgent"}, "value": 9}],
    "namespaces": [{"metadata": {"name": "default"}}],
}


class Server:
    """An API server with some objects, which forbids some kinds, and takes no writes."""

    def __init__(self, *forbidden: str) -> None:
        self._forbidden = forbidden

    async def handle(self, request: Request) -> Response:
        plural = request.path.split("/")[-1]
        if request.method != "GET" or plural in self._forbidden:
            return self._answer(403, {"kind": "Status", "reason": "Forbidden", "message": "not allowed"})
        return self._answer(200, {"kind": "List", "items": ITEMS.get(plural, [])})

    @staticmethod
    def _answer(status: int, body: Manifest) -> Response:
        return Response(status, json.dumps(body).encode())


def read(*forbidden: str, has_new_pods: bool = False) -> LiveCluster:
    return asyncio.run(read_with(Client(Server(*forbidden)), settings(), has_new_pods=has_new_pods))


def test_running_pods_stay_and_pending_ones_arrive_at_the_start() -> None:
    run = run_simulation(read_scenario(ScenarioSource(live=read())), settings())
    placed = [(each.name, each.arrived_at, each.node) for each in run.result.placements]
    assert placed == [("small", 0, "n1"), ("waits", 0, "")]
    assert run.result.utilisation["cpu"].peak == 0.5
    assert list(run.notes) == []


def test_new_pods_get_the_priorities_of_the_cluster(tmp_path: Path) -> None:
    file = tmp_path / "pods.json"
    new = manifest("new", "4", nodeSelector={HOSTNAME: "n1"}, priorityClassName="urgent")
    file.write_text(json.dumps(new))
    live = read(has_new_pods=True)
    run = run_simulation(read_scenario(ScenarioSource(workload=[file], live=live)), settings())
    assert {each.name: each.node for each in run.result.placements}["new"] == "n1"


@pytest.mark.parametrize("kind", ["nodes", "pods"])
def test_without_nodes_or_pods_there_is_nothing_to_simulate(kind: str) -> None:
    with pytest.raises(InputError, match=rf'no permission to list {kind}.*resources: \["{kind}"\]'):
        read(kind)


def test_what_may_not_be_read_is_named() -> None:
    live = read("persistentvolumeclaims", "priorityclasses", has_new_pods=True)
    assert [each.split(";")[0].split(" (")[0] for each in live.notes] == [
        "no permission to list persistentvolumeclaims",
        "no permission to list priorityclasses.scheduling.k8s.io",
    ]
    assert all(each.endswith("; simulated without them") for each in live.notes)
    run = run_simulation(read_scenario(ScenarioSource(live=live)), settings())
    assert list(run.notes) == live.notes


def test_controllers_need_a_dump() -> None:
    with pytest.raises(InputError, match="--kubeconfig: controllers need whole objects; give a dump"):
        read_scenario(ScenarioSource(live=read(), controllers=True))


def simulate(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "moorage", "simulate", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_cluster_is_read_with_its_kubeconfig(tmp_path: Path) -> None:
    with BackgroundCluster(tmp_path, nodes=2) as endpoint:
        words = ["--kubeconfig", str(endpoint.kubeconfig), "--generate", "10", "--seed", "3"]
        ended = simulate(*words, "-o", "json")
    assert ended.returncode == 0, ended.stderr
    result = json.loads(ended.stdout)
    assert result["pods"]["Completed"] == 10
    assert {each["node"] for each in result["placements"]} == {"node-0", "node-1"}


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--kubeconfig", "none.yaml"], "there is no kubeconfig at none.yaml"),
        (["--context", "none", "--from", "x"], "--from: give a dump or a live cluster (--kubeconfig, --con"),
    ],
)
def test_a_cluster_that_cannot_be_read_is_one_line(words: list[str], problem: str) -> None:
    ended = simulate(*words, "--generate", "1")
    assert (ended.returncode, len(ended.stderr.splitlines())) == (2, 1)
    assert ended.stderr.startswith(f"moorage simulate: {problem}")
