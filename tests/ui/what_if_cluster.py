"""A cluster to ask what-if of: an API server in memory, that is only ever read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from moorage.cli.explain import ExplainOptions
from moorage.client.client import Client
from moorage.client.kinds import PRIORITY_CLASS
from moorage.explain.loading import NewReading
from moorage.http.transport import Request, Response
from moorage.ui.application import Application
from moorage.ui.documents import NodeState, PodState
from moorage.ui.explanations import explain_feature
from moorage.ui.session import Session
from moorage.ui.sources.source import Feature
from moorage.ui.what_if.feature import WhatIfPages
from tests.builders import Manifest, container, node, pod
from tests.ui.serving import TableSource

EVALUATION = ExplainOptions("", "", "", None, None, None, None, None, None, "")


class ApiServer:
    """Answers reads of nodes, pods and priority classes; anything else is not there."""

    def __init__(self, objects: Sequence[Manifest], classes: Sequence[Manifest] = ()) -> None:
        pods = [each for each in objects if each["kind"] == "Pod"]
        self.answers: dict[str, Manifest] = {
            "/version": {"gitVersion": "v1.36.4", "major": "1", "minor": "36"},
            "/api/v1/nodes": {"items": [each for each in objects if each["kind"] == "Node"]},
            "/api/v1/pods": {"items": pods},
            PRIORITY_CLASS.path(): {"items": list(classes)},
        }
        for each in pods:
            meta = each["metadata"]
            self.answers[f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"] = each

    async def handle(self, request: Request) -> Response:
        assert request.method == "GET"
        body = self.answers.get(request.path)
        return Response(404, b"{}") if body is None else Response(200, json.dumps(body).encode())


def reading_of(server: ApiServer) -> NewReading:
    @asynccontextmanager
    async def reading() -> AsyncIterator[Client]:
        yield Client(server)

    return reading


def what_if_pages(server: ApiServer) -> WhatIfPages:
    """The documents of what-if for a cluster."""
    return WhatIfPages(reading_of(server), EVALUATION)


def evaluations(server: ApiServer) -> list[Feature]:
    """Explanations and what-if for a cluster."""
    explanations = explain_feature(reading_of(server), EVALUATION.new_cluster)
    return [explanations, what_if_pages(server).feature()]


def page_of(server: ApiServer) -> TableSource:
    """A source with what-if, and the names of a cluster's nodes and pods."""
    nodes = {each["metadata"]["name"]: NodeState() for each in server.answers["/api/v1/nodes"]["items"]}
    pods = {
        f"{each['metadata']['namespace']}/{each['metadata']['name']}": PodState(
            node=each["spec"].get("nodeName", "")
        )
        for each in server.answers["/api/v1/pods"]["items"]
    }
    return TableSource(nodes, pods, evaluations(server))


def manifests(nodes: Mapping[str, NodeState], pods: Mapping[str, PodState]) -> list[Manifest]:
    """Objects that are as the page shows them."""
    return [
        *(
            node(
                name,
                labels=each.labels,
                taints=each.taints,
                unschedulable=each.unschedulable,
                allocatable=_amounts(each.allocatable),
            )
            for name, each in nodes.items()
        ),
        *(
            pod(
                key.rpartition("/")[2],
                namespace=key.partition("/")[0],
                uid=key,
                on=each.node,
                containers=[container(_amounts(each.requests), image="registry.example/app:1")],
            )
            for key, each in pods.items()
        ),
    ]


def _amounts(room: Mapping[str, int]) -> dict[str, str]:
    return {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in room.items()}


class Asker:
    """Asks as a script does."""

    def __init__(self, objects: Sequence[Manifest], classes: Sequence[Manifest] = ()) -> None:
        self._server = ApiServer(objects, classes)

    def answered(self, path: str, body: bytes = b"") -> tuple[int, Any]:
        """Status and document for a body as it is."""
        headers = {"host": "127.0.0.1", "authorization": "Bearer t", "content-type": "application/json"}
        method = "POST" if body else "GET"
        response = asyncio.run(self._asked(Request(method, f"/api/v1/{path}", "", headers, body)))
        assert isinstance(response.body, bytes)
        return response.status, json.loads(response.body)

    async def _asked(self, request: Request) -> Response:
        return await Application(page_of(self._server), Session(0, "t")).handle(request)

    def get(self, path: str) -> Any:
        """A document."""
        status, answer = self.answered(path)
        assert status == 200, answer
        return answer

    def post(self, path: str, **body: Any) -> Any:
        """The answer to a question."""
        status, answer = self.answered(path, json.dumps(body).encode())
        assert status == 200, answer
        return answer

    def what_if(self, *changes: Manifest, of: str = "default/waiting", **texts: str) -> Any:
        """The answer to what if there were some changes."""
        return self.post("what-if", of=of, changes=list(changes), **texts)
