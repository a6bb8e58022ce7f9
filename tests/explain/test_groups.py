"""Pods in groups: the state of the group, and the member that fails."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from moorage.api.coscheduling import POD_GROUP_LABEL
from moorage.client.client import Client
from moorage.client.kinds import COSCHEDULING_POD_GROUP
from moorage.config.load import parse_profiles
from moorage.emulation.kubernetes_version import V1_36, KubernetesVersion
from moorage.explain.explanation import explain
from moorage.explain.loading import load_with
from moorage.http.transport import Request, Response
from moorage.plugins import default_registry
from moorage.sim.cluster import SimulatedCluster
from tests.builders import HOSTNAME, Manifest, node, pod
from tests.explain.test_command import dump, run

GATES = "GenericWorkload=true"
SMALL = node("small", labels={HOSTNAME: "small"}, allocatable={"cpu": "2", "memory": "8Gi", "pods": "10"})


def group(needed: int) -> Manifest:
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "workers", "namespace": "default", "uid": "workers"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": needed}}},
    }


def member(number: int) -> Manifest:
    name = f"worker-{number}"
    return pod(name, uid=name, requests={"cpu": "1"}, scheduling_group={"podGroupName": "workers"})


def explained(folder: Path, *manifests: Manifest) -> Any:
    file = dump(folder, *manifests)
    result = run("worker-0", "--from", file, "--feature-gates", GATES, "-o", "json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_the_member_that_fails_is_named(tmp_path: Path) -> None:
    document = explained(tmp_path, SMALL, group(3), *map(member, range(3)))
    assert document["verdict"] == "default/worker-0 waits for its group: default/workers cannot be scheduled"
    state = document["group"]
    assert (state["needed"], state["known"], state["onNodes"], state["scheduled"]) == (3, 3, 0, False)
    assert [each["node"] for each in state["members"]] == ["small", "small", None]
    assert "Insufficient cpu" in state["members"][2]["message"]
    file = dump(tmp_path, SMALL, group(3), *map(member, range(3)))
    text = run("worker-0", "--from", file, "--feature-gates", GATES).output
    assert "member default/worker-2 gets no node: 0/1 nodes are available: 1 Insufficient cpu." in text


def test_a_group_without_enough_members(tmp_path: Path) -> None:
    document = explained(tmp_path, SMALL, group(3), member(0))
    assert not document["group"]["scheduled"]
    waiting = "waiting for minCount pods from a gang to appear in scheduling queue"
    assert document["group"]["message"] == waiting


def test_a_group_that_fits(tmp_path: Path) -> None:
    document = explained(tmp_path, SMALL, group(2), member(0), member(1))
    assert document["group"]["scheduled"]
    assert document["verdict"].startswith("default/worker-0 fits 1 of 1 node and would be placed on small")


class CoschedulingServer:
    """An API server with a group of scheduler-plugins, which its pods name with a label."""

    async def handle(self, request: Request) -> Response:
        members = [pod(f"w{number}", uid=f"w{number}", labels={POD_GROUP_LABEL: "g"}) for number in (0, 1)]
        metadata = {"name": "g", "namespace": "default"}
        answers: dict[str, Manifest] = {
            "/version": {"gitVersion": "v1.36.4", "major": "1", "minor": "36"},
            "/api/v1/nodes": {"items": [SMALL]},
            "/api/v1/pods": {"items": members},
            "/api/v1/namespaces/default/pods/w0": members[0],
            COSCHEDULING_POD_GROUP.path(): {"items": [{"metadata": metadata, "spec": {"minMember": 3}}]},
        }
        body = answers.get(request.path)
        return Response(404, b"{}") if body is None else Response(200, json.dumps(body).encode())


def test_groups_of_scheduler_plugins_are_read_where_their_plugin_is_enabled() -> None:
    sort = {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]}
    plugins = {"multiPoint": {"enabled": [{"name": "Coscheduling"}]}, "queueSort": sort}
    config = parse_profiles([{"plugins": plugins}], version=V1_36)

    def new_cluster(version: KubernetesVersion | None) -> SimulatedCluster:
        return SimulatedCluster((), config, default_registry(), version=version or V1_36)

    loaded = asyncio.run(load_with(Client(CoschedulingServer()), "default", "w0", new_cluster))
    state = explain(loaded.cluster, loaded.pod).group
    assert state is not None
    assert (state.name, state.needed, state.known) == ("default/g", 3, 2)


def test_a_group_that_the_feature_gates_leave_out_is_noted(tmp_path: Path) -> None:
    file = dump(tmp_path, SMALL, group(3), *map(member, range(3)))
    result = run("worker-0", "--from", file, "-o", "json")
    assert json.loads(result.stdout)["notes"] == [
        "PodGroup default/workers is not honoured, its pods are decided one by one; "
        f"--emulated-version 1.37 --feature-gates {GATES} would honour it"
    ]
