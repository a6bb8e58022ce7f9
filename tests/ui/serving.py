"""A page of plain tables, served by a thread of its own, as its users' browsers reach it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Self

from moorage.http.transport import Request, Response
from moorage.services.responses import Handler, document
from moorage.ui.documents import NodeState, PodState, Queue, SourceInfo
from moorage.ui.page_server import PageServer
from moorage.ui.scheduler_link import entries_of_conditions
from moorage.ui.sources.source import Feature, Source
from moorage.ui.timeline import Timeline

WITHIN_SECONDS = 30
GIB = 1024**3


class TableSource:
    """Nodes and pods as a test has them, and changes that it makes."""

    def __init__(
        self,
        nodes: Mapping[str, NodeState] | None = None,
        pods: Mapping[str, PodState] | None = None,
        features: Sequence[Feature] = (),
        *,
        title: str = "https://cluster.example",
        kind: str = "cluster",
        live: bool = True,
    ) -> None:
        self.timeline = Timeline(lambda: 1_000_000_000.0)
        self._features = (self._queue_of_conditions(), *features)
        self._title, self._kind, self._live = title, kind, live
        self.change(nodes or {}, pods or {})

    def _queue_of_conditions(self) -> Feature:
        async def queue(request: Request) -> Response:
            return document(Queue(from_scheduler=False, items=tuple(entries_of_conditions(self.timeline))))

        return Feature("queue", {"queue": queue})

    def change(self, nodes: Mapping[str, NodeState | None], pods: Mapping[str, PodState | None]) -> None:
        """One batch of changes; where it is served, only in the server's thread (`Served.change`)."""
        for name, node in nodes.items():
            self.timeline.put_node(name, node)
        for key, pod in pods.items():
            self.timeline.put_pod(key, pod)
        self.timeline.close_batch()

    def info(self) -> SourceInfo:
        names = ("history", *(each.name for each in self._features))
        return SourceInfo(kind=self._kind, title=self._title, live=self._live, features=names, version="test")

    def routes(self) -> dict[str, Handler]:
        return {path: handler for each in self._features for path, handler in each.routes.items()}

    async def run(self) -> None:
        await asyncio.Event().wait()


class Served:
    """A source that is served until its context is left."""

    def __init__(self, source: Source, port: int = 0) -> None:
        self.source = source
        self.server = PageServer(source, port)
        self.origin = f"http://127.0.0.1:{self.server.port}"
        self.url = self.server.url
        self.token = self.url.rpartition("=")[2]
        self._loop: Future[asyncio.AbstractEventLoop] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        await self.server.serve(lambda: self._loop.set_result(loop))

    def at(self, view: str) -> str:
        """The address of a view, with the token: `at("#/queue")`."""
        return f"{self.url}{view}"

    def change(
        self,
        nodes: Mapping[str, NodeState | None] | None = None,
        pods: Mapping[str, PodState | None] | None = None,
    ) -> None:
        """Make changes in a TableSource; returns when they are made."""
        assert isinstance(self.source, TableSource)
        done: Future[None] = Future()
        source = self.source

        def make() -> None:
            source.change(nodes or {}, pods or {})
            done.set_result(None)

        self._loop.result().call_soon_threadsafe(make)
        done.result(WITHIN_SECONDS)

    def __enter__(self) -> Self:
        self._thread.start()
        self._loop.result(WITHIN_SECONDS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.result().call_soon_threadsafe(self.server.stop)
        self._thread.join(WITHIN_SECONDS)
        assert not self._thread.is_alive(), "the page's server does not end"


def example_nodes(count: int, zones: int = 3) -> dict[str, NodeState]:
    """Nodes of 16 cores: node-0, node-1 and so on; every 50th is cordoned, tainted, or under pressure."""
    return {
        f"node-{number}": NodeState(
            labels={
                "kubernetes.io/hostname": f"node-{number}",
                "topology.kubernetes.io/zone": f"zone-{'abcdefgh'[number % zones]}",
            },
            allocatable={"cpu": 16_000, "memory": 64 * GIB, "pods": 110},
            taints=("dedicated=batch:NoSchedule",) if number % 50 == 7 else (),
            conditions=("MemoryPressure",) if number % 50 == 13 else (),
            unschedulable=number % 50 == 19,
        )
        for number in range(count)
    }


def example_pods(nodes: int, per_node: int, pending: int = 0) -> dict[str, PodState]:
    """Pods default/web-0 and so on, which fill each node otherwise; and pending ones."""
    pods: dict[str, PodState] = {}
    for node in range(nodes):
        cpu, memory = 160 * (1 + node * 37 % 99), GIB * (1 + node * 61 % 60)
        for place in range(per_node):
            pods[f"default/web-{node * per_node + place}"] = PodState(
                node=f"node-{node}",
                requests={"cpu": cpu // per_node, "memory": memory // per_node},
                phase="Running",
                scheduler="default-scheduler",
            )
    for number in range(pending):
        pods[f"default/waiting-{number}"] = waiting_pod(nodes)
    return pods


def waiting_pod(nodes: int) -> PodState:
    """A pod that found no node at its last attempt."""
    return PodState(
        requests={"cpu": 20_000},
        phase="Pending",
        scheduler="default-scheduler",
        reason="Unschedulable",
        message=f"0/{nodes} nodes are available: {nodes} Insufficient cpu.",
        created=1_000_000_000.0,
    )
