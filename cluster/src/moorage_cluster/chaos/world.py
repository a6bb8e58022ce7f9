"""An API server, its users, kubelets and schedulers, in virtual time."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Final

from moorage.api.manifests import Manifest
from moorage.client.client import Client
from moorage.client.kinds import KINDS_BY_NAME, Kind
from moorage.emulation.kubernetes_version import DEFAULT_VERSION, V1_37
from moorage.http.errors import ConnectionFailed, RequestError
from moorage.http.transport import Request, Response, Transport
from moorage.scheduler.observers import Observer
from moorage.simulation.virtual_loop import VirtualLoopClock
from moorage_cluster.apiserver.embedded import EmbeddedServer, Settings
from moorage_cluster.chaos.candidate import GROUP_GATES, Candidate
from moorage_cluster.chaos.cuttable_watch import CuttableWatch
from moorage_cluster.chaos.evictions import EvictionJudge
from moorage_cluster.chaos.kubelets import Kubelets
from moorage_cluster.chaos.monitor import Monitor
from moorage_cluster.chaos.network import refusal
from moorage_cluster.chaos.script import (
    CrashScheduler,
    Create,
    Delete,
    MoveWallClock,
    Operation,
    Patch,
    RestartServer,
    Script,
)
from moorage_cluster.controllers.cluster import Cluster
from moorage_cluster.controllers.disruption import Disruption
from moorage_cluster.controllers.manager import ControllerManager, MakeController
from moorage_cluster.controllers.persistent_volumes import PersistentVolumeBinder

_NOT_FOUND: Final = 404


class JumpingClock(VirtualLoopClock):
    """A clock whose wall time can be set."""

    def __init__(self) -> None:
        super().__init__()
        self._offset = timedelta()

    def utc_now(self) -> datetime:
        """Wall time, as it was set."""
        return super().utc_now() + self._offset

    def move(self, seconds: float) -> None:
        """Set the wall clock forward, or back."""
        self._offset += timedelta(seconds=seconds)


class ServerLine:
    """The way to the API server, which breaks when the server is killed."""

    def __init__(self, has_watch_lists: bool) -> None:
        self.server: Transport | None = None
        self._has_watch_lists = has_watch_lists
        self._watches: list[CuttableWatch] = []

    def cut(self) -> None:
        """The server is gone, and so are all watches."""
        self.server = None
        for watch in self._watches:
            watch.cut()
        self._watches.clear()

    async def handle(self, request: Request) -> Response:
        """The server's answer."""
        if self.server is None:
            raise ConnectionFailed("connection refused")
        if not self._has_watch_lists and "sendInitialEvents" in request.query:
            return refusal(_NOT_FOUND)
        response = await self.server.handle(request)
        if not isinstance(response.body, bytes):
            response.body = watch = CuttableWatch(response.body)
            self._watches.append(watch)
        return response


class World:
    """Everything that a run is about; to be used in a virtual loop."""

    def __init__(self, script: Script, directory: Path | None) -> None:
        """directory: the data directory of a durable server."""
        self.script = script
        self.clock = JumpingClock()
        self.injected: Counter[str] = Counter()
        """What has gone wrong, and how often."""
        self.monitor = Monitor(self.clock, elects=script.schedulers > 1)
        self._random = Random(f"server {script.seed}")
        self._directory = directory
        self._line = ServerLine(script.has_watch_lists)
        self._kubelets = Kubelets(self.clock, lambda: self.client)
        self.server = self._new_server()
        self.candidates = [
            Candidate(
                number,
                script,
                self._line,
                lambda: self.server.token,
                self.clock,
                self.injected,
                self.monitor.issued,
                self.monitor.failed,
                self._new_observer,
            )
            for number in range(script.schedulers)
        ]
        self._tasks: set[asyncio.Task[None]] = set()
        self._controllers: asyncio.Task[None] | None = None

    def _new_server(self) -> EmbeddedServer:
        script = self.script
        version = V1_37.with_gates(GROUP_GATES) if script.has_groups else DEFAULT_VERSION
        settings = Settings(self._directory, history=script.history, version=version)
        server = EmbeddedServer(settings, clock=self.clock, random=self._random)
        self.monitor.attach(server.store)
        self._kubelets.attach(server.store)
        server.start()
        self._line.server = server.api
        return server

    def _new_observer(self, candidate: Candidate) -> Observer:
        return EvictionJudge(self, candidate) if self.script.has_budgets else Observer()

    @property
    def client(self) -> Client:
        """A client to which nothing happens, but that the server may be away."""
        return Client(self._line, self.server.token)

    async def play(self) -> None:
        """Do all that the script says; returns when the last fault may have happened."""
        for manifest in self.script.objects:
            await self._create(manifest)
        if controllers := self._controllers_needed():
            cluster = Cluster(self.client, self.clock, self._random)
            self._controllers = asyncio.create_task(ControllerManager(cluster, controllers).run())
        for candidate in self.candidates:
            candidate.start()
        for operation in self.script.operations:
            await asyncio.sleep(max(operation.at - self.clock.now(), 0.0))
            task = asyncio.create_task(self._apply(operation))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        await asyncio.sleep(max(self.script.calm_at - self.clock.now(), 0.0))
        await asyncio.gather(*self._tasks)
        if self.script.has_plugin:
            await self._wake_refused_pods()

    def _controllers_needed(self) -> list[MakeController]:
        needed: list[MakeController] = [PersistentVolumeBinder] if self.script.has_volumes else []
        return [*needed, Disruption] if self.script.has_budgets else needed

    async def _wake_refused_pods(self) -> None:
        """Pods that the misbehaving plugin has refused wait for a change of a node."""
        for name, _ in named(self.objects("Node")):
            await self.client.patch(
                _kind("Node"), "", name, {"metadata": {"labels": {"calm": "yes"}}}, "merge"
            )

    async def close(self) -> None:
        """End all processes."""
        for candidate in self.candidates:
            await candidate.stop()
        if self._controllers is not None:
            self._controllers.cancel()
            await asyncio.gather(self._controllers, return_exceptions=True)
        self._line.cut()
        self.server.close()

    async def _apply(self, operation: Operation) -> None:
        try:
            await self._do(operation)
        except RequestError:
            return  # It is there already, or not there: a script without some of its parts is a script, too.
        except ConnectionFailed:
            return  # The server is away.

    async def _do(self, operation: Operation) -> None:
        match operation:
            case Create(manifest=manifest):
                await self._create(manifest)
            case Delete(kind=kind, namespace=namespace, name=name, grace_seconds=seconds):
                await self.client.delete(_kind(kind), namespace, name, grace_seconds=seconds)
            case Patch(kind=kind, namespace=namespace, name=name, patch=patch):
                await self.client.patch(_kind(kind), namespace, name, patch, "merge")
            case RestartServer(seconds=seconds):
                await self._restart_server(seconds)
            case CrashScheduler(scheduler=number, seconds=seconds):
                self.injected["scheduler killed"] += 1
                await self.candidates[number].crash(seconds)
            case MoveWallClock(seconds=seconds):
                self.injected["wall clock moved"] += 1
                self.clock.move(seconds)

    async def _create(self, manifest: Manifest) -> None:
        kind = _kind(manifest["kind"])
        status = manifest.get("status")
        namespace = manifest["metadata"].get("namespace", "")
        created = await self.client.create(kind, namespace, manifest)
        if kind.name == "Node":
            # The kubelet has spoken: without the taint that every new node gets.
            await self.client.patch(
                kind, "", created["metadata"]["name"], {"spec": {"taints": None}}, "merge"
            )
        elif status:
            await self.client.patch(
                kind, namespace, created["metadata"]["name"], {"status": status}, "merge", "status"
            )

    async def _restart_server(self, seconds: float) -> None:
        self.injected["server killed"] += 1
        self._line.cut()
        self.server.close()
        await asyncio.sleep(seconds)
        self.server = self._new_server()

    # -- what there is

    def objects(self, kind: str) -> list[Manifest]:
        """All objects of a kind, as the server has them."""
        found = KINDS_BY_NAME[kind]
        name = f"{found.group}/{found.plural}"
        return list(self.server.store.all(name))


def _kind(name: str) -> Kind:
    return KINDS_BY_NAME[name]


def named(objects: Iterable[Manifest]) -> Iterator[tuple[str, Manifest]]:
    """Objects with their names."""
    return ((each["metadata"]["name"], each) for each in objects)
