"""Schedulers at work over a real API server in the same process, under virtual time, on any network."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from moorage.api.base import Object
from moorage.api.manifests import Manifest
from moorage.api.quantity import parse_quantity
from moorage.client.client import Client
from moorage.client.kinds import CORE_EVENT, NODE, POD, PRIORITY_CLASS, Kind
from moorage.clock import VirtualClock
from moorage.config.load import default_config, parse_config
from moorage.emulation.kubernetes_version import DEFAULT_VERSION, V1_37, KubernetesVersion
from moorage.framework.loading.registry import Registry
from moorage.http.errors import ConnectionFailed, RequestError
from moorage.http.transport import Request, Response, Transport
from moorage.plugins import default_registry
from moorage.scheduler.observers import Observer
from moorage.scheduler.scheduler import Scheduler
from moorage.services.extender_client import Connect
from moorage_cluster.apiserver.embedded import EmbeddedServer, Settings
from moorage_cluster.chaos.cuttable_watch import CuttableWatch
from tests.logs import add_handler, remove_handler

GROUP_GATES = {
    "GenericWorkload": True,
    "TopologyAwareWorkloadScheduling": True,
    "CompositePodGroup": True,
}
"""The gates of groups, all of which the server has on."""
START = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


class Line:
    """The way to the API server, which may be cut, and on which bindings are counted."""

    def __init__(self) -> None:
        self.server: Transport | None = None
        self.bound: Counter[str] = Counter()
        """How often each pod was bound, by uid."""
        self.requests: list[tuple[str, str]] = []
        """What was asked for: method and path."""
        self._watches: list[CuttableWatch] = []

    def cut(self) -> None:
        """The server is gone, and so are all watches."""
        self.server = None
        for watch in self._watches:
            watch.cut()
        self._watches.clear()

    async def handle(self, request: Request) -> Response:
        if self.server is None:
            raise ConnectionFailed("connection refused")
        self.requests.append((request.method, request.path))
        response = await self.server.handle(request)
        if request.path.endswith("/binding") and response.status < 300:
            self.bound[msgspec.json.decode(request.body)["metadata"]["uid"]] += 1
        if not isinstance(response.body, bytes):
            response.body = watch = CuttableWatch(response.body)
            self._watches.append(watch)
        return response


class _UnexpectedErrors(logging.Handler):
    """Unexpected exceptions: the scheduler survives them, a test does not."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.records: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.records.append(self.format(record))


class SchedulerHarness:
    """A server, a client to which nothing happens, and schedulers."""

    def __init__(self, data_dir: Path | None = None, seed: int = 1, history: int = 20_000) -> None:
        self.clock = VirtualClock(epoch=START)
        self.random = Random(seed)
        self.line = Line()
        with_groups = V1_37.with_gates(GROUP_GATES)
        self._settings = Settings(data_dir, history=history, version=with_groups)
        self._tasks: list[asyncio.Task[Any]] = []
        self._unexpected_errors = _UnexpectedErrors()
        add_handler(self._unexpected_errors)
        self.start_server()

    def start_server(self) -> None:
        """A server with what its data directory has."""
        self.server = EmbeddedServer(self._settings, clock=self.clock, random=self.random)
        self.server.start()
        self.client = Client(self.server.api, self.server.token)
        self.line.server = self.server.api

    def kill_server(self) -> None:
        self.line.cut()
        self.server.close()

    def scheduler(
        self,
        *,
        transport: Transport | None = None,
        config: Any = None,
        registry: Registry | None = None,
        seed: int = 1,
        plugin_threads: int = 0,
        version: KubernetesVersion = DEFAULT_VERSION,
        connect_extender: Connect | None = None,
        observer: Observer | None = None,
    ) -> Scheduler:
        """A scheduler that has begun to work; without threads everything happens in one order."""
        scheduler = Scheduler(
            Client(transport or self.line, self.server.token),
            parse_config(config, "test", version=version) if config else default_config(version),
            registry or default_registry(),
            self.clock,
            Random(seed),
            "host",
            plugin_threads=plugin_threads,
            version=version,
            connect_extender=connect_extender,
            observer=observer,
        )
        self.runs(scheduler.run())
        return scheduler

    def runs(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Something that goes on until the world ends."""
        task = asyncio.ensure_future(work)
        self._tasks.append(task)
        return task

    async def ends(self) -> None:
        for task in self._tasks:
            task.cancel()
        results = await asyncio.gather(*self._tasks, return_exceptions=True)
        self.server.close()
        remove_handler(self._unexpected_errors)
        assert not self._unexpected_errors.records, self._unexpected_errors.records[0]
        failures = [each for each in results if isinstance(each, Exception)]
        assert not failures, failures

    async def passes(self, seconds: float, step: float = 0.25) -> None:
        """Let time pass, and what it causes happen."""
        end = self.clock.now() + seconds
        await self.settles()
        while self.clock.now() < end:
            self.clock.advance(step)
            await self.settles()

    async def settles(self) -> None:
        """Let what is under way come to rest."""
        for _ in range(60):
            await asyncio.sleep(0)
        for task in self._tasks:
            if task.done() and not task.cancelled():
                task.result()

    # -- what is in the cluster

    async def add_node(self, name: str, cpu: str = "4", pods: str = "110", **labels: str) -> None:
        """A node whose kubelet has spoken: without the taint that every new node gets."""
        capacity = {"cpu": cpu, "memory": "32Gi", "pods": pods}
        meta = {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}}
        node = {"metadata": meta, "status": {"capacity": capacity, "allocatable": capacity}}
        await self.client.create(NODE, "", {"apiVersion": "v1", "kind": "Node", **node})
        await self.client.patch(NODE, "", name, {"spec": {"taints": None}}, "merge")

    async def add_pod(self, name: str, cpu: str = "1", **spec: Any) -> Manifest:
        return await self.client.create(POD, "default", pod(name, cpu, **spec))

    async def delete_pod(self, name: str, grace_seconds: int = 0) -> None:
        await self.client.delete(POD, "default", name, grace_seconds=grace_seconds)

    async def add_priority(self, name: str, value: int) -> None:
        body = {"metadata": {"name": name}, "value": value}
        body |= {"apiVersion": PRIORITY_CLASS.api_version, "kind": "PriorityClass"}
        await self.client.create(PRIORITY_CLASS, "", body)

    async def pod(self, name: str) -> Manifest:
        return await self.client.get(POD, "default", name)

    async def node_of(self, name: str) -> str:
        return str((await self.pod(name))["spec"].get("nodeName", ""))

    async def exists(self, kind: Kind, namespace: str, name: str) -> bool:
        try:
            await self.client.get(kind, namespace, name)
        except RequestError as error:
            if not error.is_not_found:
                raise
            return False
        return True

    async def events(self, reason: str = "") -> list[Manifest]:
        """All events, oldest first."""
        items = await self.client.list(CORE_EVENT)
        items.sort(key=lambda item: int(item["metadata"]["resourceVersion"]))
        return [item for item in items if not reason or item["reason"] == reason]

    async def condition(self, name: str, type: str = "PodScheduled") -> Manifest:
        conditions = (await self.pod(name))["status"]["conditions"]
        found: Manifest = next(each for each in conditions if each["type"] == type)
        return found

    async def condition_or_none(self, name: str) -> Manifest | None:
        status = (await self.pod(name))["status"]
        return next((each for each in status.get("conditions", ()) if each["type"] == "PodScheduled"), None)

    async def label(self, name: str, metadata: Manifest) -> None:
        """Change a pod's metadata."""
        await self.client.patch(POD, "default", name, {"metadata": metadata}, "merge")

    # -- what must be true of it in the end

    async def check(self, scheduler: Scheduler) -> None:
        """No pod bound twice, no node too full, no pod lost; what the scheduler knows is what there is."""
        pods = {item["metadata"]["uid"]: item for item in await self.client.list(POD)}
        nodes = {item["metadata"]["name"]: item for item in await self.client.list(NODE)}
        assert all(times == 1 for times in self.line.bound.values()), self.line.bound
        free = _free(pods.values(), nodes)
        assert all(cpu >= 0 and room >= 0 for cpu, room in free.values()), free
        for item in pods.values():
            if not item["spec"].get("nodeName"):
                # Neither is there room for it, nor could room be made.
                priority = item["spec"].get("priority", 0)
                lesser = [each for each in pods.values() if each["spec"].get("priority", 0) < priority]
                assert not any(
                    _cpu(item) <= cpu and room for cpu, room in _free(pods.values(), nodes, lesser).values()
                ), (item["metadata"]["name"], free, scheduler.queue.place_of(item["metadata"]["uid"]))
        scheduler.cache.validate()
        scheduler.queue.validate()
        assert scheduler.cache.assumed_count == 0
        counted = {one.uid: (one.spec.node_name, _version(one)) for one in scheduler.cache.pods()}
        bound = {uid: item for uid, item in pods.items() if item["spec"].get("nodeName")}
        stored = {uid: (item["spec"]["nodeName"], version(item)) for uid, item in bound.items()}
        assert counted == stored
        known = {one.name: _version(one) for one in scheduler.cache.nodes()}
        assert known == {name: version(item) for name, item in nodes.items()}
        assert {queued.uid for queued in scheduler.queue} == pods.keys() - bound.keys()
        for informer in scheduler.informers:
            shown = {(one.namespace, one.name): _version(one) for one in informer.objects.values()}
            items = await self.client.list(informer.kind)
            there = {(i["metadata"].get("namespace", ""), i["metadata"]["name"]): version(i) for i in items}
            assert shown == there, informer.kind


def _free(
    pods: Iterable[Manifest], nodes: Mapping[str, Manifest], but: Sequence[Manifest] = ()
) -> dict[str, tuple[int, int]]:
    """What is left of each node, not counting some pods: CPU in billionths, and how many pods."""
    free = {}
    for name, node in nodes.items():
        here = [item for item in pods if item["spec"].get("nodeName") == name and item not in but]
        allocatable = node["status"]["allocatable"]
        cpu = int(parse_quantity(allocatable["cpu"])) - sum(map(_cpu, here))
        free[name] = (cpu, int(allocatable["pods"]) - len(here))
    return free


def _cpu(item: Manifest) -> int:
    requests = (container["resources"]["requests"]["cpu"] for container in item["spec"]["containers"])
    return sum(int(parse_quantity(amount)) for amount in requests)


def _version(obj: Object) -> str:
    return obj.metadata.resource_version


def version(item: Manifest) -> str:
    text: str = item["metadata"]["resourceVersion"]
    return text


def pod(name: str, cpu: str = "1", **spec: Any) -> Manifest:
    resources = {"requests": {"cpu": cpu}}
    containers = [{"name": "main", "image": "registry.example/app:1", "resources": resources}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": name}},
        "spec": {"containers": containers, **spec},
    }


def in_harness(
    scenario: Callable[[SchedulerHarness], Coroutine[Any, Any, None]],
    *,
    data_dir: Path | None = None,
    seed: int = 1,
    history: int = 20_000,
) -> None:
    """Run a scenario to its end."""

    async def run() -> None:
        async with _living(SchedulerHarness(data_dir, seed, history)) as harness:
            await scenario(harness)

    asyncio.run(run())


@asynccontextmanager
async def _living(harness: SchedulerHarness) -> AsyncIterator[SchedulerHarness]:
    try:
        yield harness
    finally:
        await harness.ends()
