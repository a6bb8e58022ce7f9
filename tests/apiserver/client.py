"""A client of an embedded server in the same process: what tests talk through."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from datetime import UTC, datetime
from random import Random
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec

from moorage.clock import VirtualClock
from moorage.emulation.kubernetes_version import V1_37
from moorage.http.transport import Request, Response
from moorage_cluster.apiserver.embedded import EmbeddedServer, Settings
from moorage_cluster.apiserver.server_version import ServerVersion

T = TypeVar("T")

WITH_GROUPS = V1_37.with_gates(
    {
        "GenericWorkload": True,
        "TopologyAwareWorkloadScheduling": True,
        "PodGroupPreemptionPolicy": True,
        "CompositePodGroup": True,
        "DRAWorkloadResourceClaims": True,
        "WorkloadWithJob": True,
    }
)
"""A server with all that belongs to pod groups."""
GROUPS_SERVED = ServerVersion.of(WITH_GROUPS)

START = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)

PATCHES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


class Answer:
    """A status code and what came with it."""

    def __init__(self, response: Response) -> None:
        assert isinstance(response.body, bytes)
        self.code = response.status
        self.headers = response.headers
        self.raw = response.body
        self.json: Any = (
            msgspec.json.decode(response.body)
            if response.content_type.startswith("application/json")
            else None
        )

    def __getitem__(self, key: str) -> Any:
        return self.json[key]

    @property
    def message(self) -> str:
        return str(self.json.get("message", ""))

    def __repr__(self) -> str:
        return f"{self.code} {self.raw.decode()[:400]}"


class Cluster:
    """A server under virtual time, and requests to it."""

    def __init__(self, settings: Settings | None = None, seed: int = 1) -> None:
        self.clock = VirtualClock(epoch=START)
        self._runner = asyncio.Runner()
        try:
            self.server = self._runner.run(self._make(settings, seed))
        except BaseException:
            self._runner.close()
            raise
        self.token = self.server.token

    async def _make(self, settings: Settings | None, seed: int) -> EmbeddedServer:
        return EmbeddedServer(settings, clock=self.clock, random=Random(seed))

    def close(self) -> None:
        self.server.close()
        self._runner.close()

    def advance(self, seconds: float) -> None:
        """Let time pass, and what it causes happen."""
        self._runner.run(self._advance(seconds))

    async def _advance(self, seconds: float) -> None:
        self.clock.advance(seconds)
        await settled()

    def run(self, what: Coroutine[Any, Any, T]) -> T:
        """Have something done by the server's event loop."""
        return self._runner.run(what)

    def send(self, request: Request) -> Answer:
        return Answer(self._runner.run(self._handled(request)))

    async def _handled(self, request: Request) -> Response:
        response = await self.server.api.handle(request)
        await settled()
        return response

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
        **query: str | int,
    ) -> Answer:
        sent = {"host": "127.0.0.1", "authorization": f"Bearer {self.token}"}
        if body is not None:
            sent["content-type"] = "application/json"
        sent |= headers or {}
        raw = body if isinstance(body, bytes) else b"" if body is None else msgspec.json.encode(body)
        pairs = list(sent.items())
        return self.send(Request(method, path, urlencode(query), sent, raw, pairs))

    def get(self, path: str, **query: Any) -> Answer:
        return self.request("GET", path, **query)

    def post(self, path: str, body: Any, **query: Any) -> Answer:
        return self.request("POST", path, body, **query)

    def put(self, path: str, body: Any, **query: Any) -> Answer:
        return self.request("PUT", path, body, **query)

    def patch(self, path: str, kind: str, body: Any, **query: Any) -> Answer:
        return self.request("PATCH", path, body, {"content-type": PATCHES[kind]}, **query)

    def delete(self, path: str, body: Any = None, **query: Any) -> Answer:
        return self.request("DELETE", path, body, **query)

    def create(self, path: str, body: Any) -> Any:
        """Create an object that must be accepted."""
        answer = self.post(path, body)
        assert answer.code == 201, answer
        return answer.json

    def exists(self, path: str) -> bool:
        """Whether there is an object at a path."""
        answer = self.get(path)
        assert answer.code in (200, 404), answer
        return answer.code == 200

    def watch(self, path: str, accept: str = "", **query: str | int) -> Watcher:
        headers = {"host": "127.0.0.1", "authorization": f"Bearer {self.token}", "accept": accept}
        request = Request("GET", path, urlencode({"watch": "1", **query}), headers)
        response = self._runner.run(self.server.api.handle(request))
        assert not isinstance(response.body, bytes), response.body
        return Watcher(self._runner, response)


class Watcher:
    """A watch, read as far as it goes now."""

    def __init__(self, runner: asyncio.Runner, response: Response) -> None:
        assert not isinstance(response.body, bytes)
        self._runner = runner
        self.stream = response.body
        self._pieces = response.body.__aiter__()
        self._next: asyncio.Task[bytes] | None = None
        self.ended = False

    def events(self) -> list[Any]:
        """What has happened since the last call."""
        return self._runner.run(self._read())

    async def _read(self) -> list[Any]:
        found: list[Any] = []
        while not self.ended:
            if self._next is None:
                self._next = asyncio.ensure_future(_piece(self._pieces))
            await settled()
            if not self._next.done():
                break
            try:
                piece = self._next.result()
            except StopAsyncIteration:
                self.ended = True
                break
            self._next = None
            found += [msgspec.json.decode(line) for line in piece.splitlines()]
        return found

    def seen(self) -> list[tuple[str, str]]:
        """Types and names of what has happened."""
        return [(event["type"], event["object"]["metadata"].get("name", "")) for event in self.events()]

    def close(self) -> None:
        self.stream.close()
        self.events()


async def _piece(pieces: Any) -> bytes:
    result: bytes = await anext(pieces)
    return result


async def settled() -> None:
    """Let what is under way come to rest."""
    for _ in range(50):
        await asyncio.sleep(0)


def pod(name: str, namespace: str = "default", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "registry.example/app:1"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}},
        "spec": {"containers": containers, **spec},
    }


def configmap(name: str, namespace: str = "default", **data: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": data,
    }


def owner(obj: Any, **more: Any) -> dict[str, Any]:
    """A reference to an owner."""
    meta = obj["metadata"]
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        **more,
    }


def owned(obj: dict[str, Any], *owners: dict[str, Any]) -> dict[str, Any]:
    """An object with owners."""
    return {**obj, "metadata": {**obj["metadata"], "ownerReferences": list(owners)}}


def node(name: str, **labels: str) -> dict[str, Any]:
    capacity = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {"capacity": capacity, "allocatable": capacity},
    }


def names(items: list[dict[str, Any]]) -> Iterator[str]:
    return (item["metadata"]["name"] for item in items)
