"""`moorage explain` as people use it: what is printed, and one line for bad input."""

from __future__ import annotations

import asyncio
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from moorage.api.decode import InputError
from moorage.cli.main import app
from moorage.client.client import Client
from moorage.client.kinds import NAMESPACE, NODE, POD, RESOURCE_SLICE, SERVICE
from moorage.explain.cluster_reader import left_out_texts, read_cluster, read_pod
from moorage.http.transport import Request, Response
from tests.builders import HOSTNAME, Manifest, node, pod
from tests.manifests.printing import printed

ROOT = Path(__file__).parent.parent.parent


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["explain", *map(str, arguments)], env={"COLUMNS": "120"})


def dump(folder: Path, *manifests: Manifest) -> Path:
    file = folder / "dump.json"
    file.write_text(json.dumps({"kind": "List", "items": list(manifests)}))
    return file


SMALL = node("small", labels={HOSTNAME: "small"}, allocatable={"cpu": "1", "memory": "8Gi", "pods": "10"})
TAINTED = node("tainted", labels={HOSTNAME: "tainted"}, taints=["team=a:NoSchedule"])
FREE = node("free", labels={HOSTNAME: "free"})
LARGE = pod("large", uid="large", requests={"cpu": "1500m"})


def test_a_pending_pod(tmp_path: Path) -> None:
    result = run("large", "--from", dump(tmp_path, SMALL, TAINTED, LARGE))
    assert result.exit_code == 0, result.output
    assert result.output.startswith("default/large fits none of 2 nodes\n0/2 nodes are available: ")
    for words in ("Insufficient cpu", "request 500m less cpu (1500m now, 1 then)", "team=a:NoSchedule"):
        assert words in result.output
    assert "\x1b" not in result.output


def test_every_filter_that_rejects_a_node(tmp_path: Path) -> None:
    selecting = pod("large", uid="large", requests={"cpu": "6"}, node_selector={"disk": "ssd"})
    file = dump(tmp_path, SMALL, TAINTED, selecting)
    one = run("large", "--from", file, "--node", "tainted").output
    for plugin in ("TaintToleration", "NodeAffinity", "NodeResourcesFit"):
        assert plugin in one
    everything = run("large", "--from", file, "--all").output
    assert "every filter that rejects nodes" in everything


def test_scores_and_the_difference_to_the_second(tmp_path: Path) -> None:
    result = run("large", "--from", dump(tmp_path, FREE, {**SMALL, **node("big")}, LARGE), "-o", "json")
    document = json.loads(result.output)
    first, second = document["feasible"]
    assert (first["chosen"], second["chosen"]) == (True, False)
    assert first["total"] - second["total"] == document["lead"]["total"]
    fit = first["scores"]["NodeResourcesFit"]
    assert fit["normalised"] * fit["weight"] == fit["weighted"]
    assert "NodePorts" in next(each["plugins"] for each in document["leftOut"] if each["point"] == "filter")


@pytest.mark.parametrize(
    ("arguments", "manifests", "line"),
    [
        (["none"], [FREE], "there is no pod none in namespace default"),
        (["large", "-n", "other"], [FREE, LARGE], "there is no pod large in namespace other"),
        (["large"], [LARGE], "there are no nodes in it"),
        (["large", "--node", "x"], [FREE, LARGE], "there is no node x"),
        (["deployment/large"], [FREE, LARGE], "deployment/large: only pods can be explained"),
    ],
)
def test_bad_input_is_one_line(
    tmp_path: Path, arguments: list[str], manifests: list[Manifest], line: str
) -> None:
    result = run(*arguments, "--from", dump(tmp_path, *manifests))
    assert result.exit_code == 2, result.output
    assert line in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_server_that_does_not_answer_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "config"
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}
    context = {"name": "c", "context": {"cluster": "c", "namespace": "harbour"}}
    file.write_text(yaml.safe_dump({"clusters": [cluster], "contexts": [context], "current-context": "c"}))
    result = run("large", "--kubeconfig", file)
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)
    assert "the API server does not answer" in result.stderr


class Server:
    """An API server with some objects, which forbids some kinds."""

    def __init__(self, *forbidden: str) -> None:
        self._forbidden = forbidden

    async def handle(self, request: Request) -> Response:
        plural = request.path.split("/")[-1]
        if plural in self._forbidden:
            return self._answer(403, {"kind": "Status", "reason": "Forbidden", "message": "not allowed"})
        known: dict[str, list[Any]] = {"nodes": [FREE], "pods": [LARGE], "large": [LARGE]}
        if plural not in known:
            return self._answer(404, {"kind": "Status", "reason": "NotFound", "message": "not found"})
        items = known[plural]
        return self._answer(200, items[0] if plural == "large" else {"kind": "List", "items": items})

    @staticmethod
    def _answer(status: int, body: Manifest) -> Response:
        return Response(status, json.dumps(body).encode())


def test_a_kind_that_may_not_be_listed_is_named_and_the_rest_is_read() -> None:
    content = asyncio.run(read_cluster(Client(Server("services")), [SERVICE, RESOURCE_SLICE]))
    assert content.forbidden == [SERVICE]
    assert sorted(each.name for each in content.objects) == ["free", "large"]


def test_kinds_of_a_group_that_may_not_be_listed_are_one_line_with_the_rule() -> None:
    assert left_out_texts([SERVICE, RESOURCE_SLICE, NAMESPACE]) == [
        "no permission to list namespaces, services; add to a ClusterRole: "
        '{apiGroups: [""], resources: ["namespaces", "services"], verbs: ["list"]}; explained without them',
        "no permission to list resourceslices.resource.k8s.io; add to a ClusterRole: "
        '{apiGroups: ["resource.k8s.io"], resources: ["resourceslices"], verbs: ["list"]}; '
        "explained without them",
    ]


def test_attempts_are_asked_of_a_scheduler(tmp_path: Path) -> None:
    file = dump(tmp_path, FREE, LARGE)
    for arguments, words in (
        (("--attempts", "--from", file), "a running scheduler remembers them, not a dump"),
        (("--watch", "--from", file), "--watch: goes with --attempts"),
    ):
        result = run("large", *arguments)
        assert result.exit_code == 2
        assert words in result.stderr


def test_without_nodes_or_the_pod_nothing_can_be_explained() -> None:
    with pytest.raises(InputError, match=r'no permission to list nodes .*resources: \["nodes"\]'):
        asyncio.run(read_cluster(Client(Server("nodes")), []))
    with pytest.raises(InputError, match=r'no permission to get pods .*verbs: \["get"\]'):
        asyncio.run(read_pod(Client(Server("large")), "default", "large"))
    with pytest.raises(InputError, match="there is no pod none in namespace default"):
        asyncio.run(read_pod(Client(Server()), "default", "none"))


def test_the_role_allows_what_is_read_and_nothing_else() -> None:
    (role,) = printed("--name", "mine", "--reader")
    assert (role["kind"], role["metadata"]["name"]) == ("ClusterRole", "mine-reader")
    allowed = {
        (group, resource)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert {(kind.group, kind.plural) for kind in (NODE, POD, SERVICE, RESOURCE_SLICE)} <= allowed
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"get", "list"}


def test_kubectl_finds_the_command() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts["kubectl-moorage"] == scripts["moorage"]
