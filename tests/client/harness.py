"""An embedded server under virtual time, a writer, and an informer with a listener."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from random import Random
from typing import Any

from moorage.api.manifests import Manifest
from moorage.client.client import Client
from moorage.client.informer import EventType, Informer
from moorage.client.kinds import CONFIG_MAP
from moorage.clock import VirtualClock
from moorage.http.transport import Transport
from moorage_cluster.apiserver.embedded import EmbeddedServer, Settings

START = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
NAMES = 8
"""So few that objects of one name come and go."""


class ClientHarness:
    """A server, its clock, and a client to which nothing happens."""

    def __init__(self, seed: int = 1, history: int = 20_000) -> None:
        self.clock = VirtualClock(epoch=START)
        self.server = EmbeddedServer(Settings(history=history), clock=self.clock, random=Random(seed))
        self.client = Client(self.server.api, self.server.token)
        self.random = Random(seed)
        self.history: list[tuple[EventType, str, int]] = []
        """What was done: the change, the name, the version since."""

    async def passes(self, seconds: float, step: float = 0.25) -> None:
        """Let time pass, and what it causes happen."""
        end = self.clock.now() + seconds
        while self.clock.now() < end:
            self.clock.advance(step)
            await settled()

    async def write(self) -> None:
        """One change of one object, at random."""
        name = f"object-{self.random.randrange(NAMES)}"
        stored = await self.objects()
        if name not in stored:
            made = await self.client.create(CONFIG_MAP, "default", config_map(name, "0"))
            self._did("ADDED", made)
        elif self.random.random() < 0.3:
            await self.client.delete(CONFIG_MAP, "default", name)
            page = await self.client.call("GET", CONFIG_MAP.path("default"))
            self.history.append(("DELETED", name, int(page["metadata"]["resourceVersion"])))
        else:
            text = str(self.random.getrandbits(32))
            made = await self.client.patch(CONFIG_MAP, "default", name, {"data": {"text": text}}, "merge")
            self._did("MODIFIED", made)

    def _did(self, type: EventType, obj: Manifest) -> None:
        self.history.append((type, obj["metadata"]["name"], version_of(obj)))

    async def objects(self) -> dict[str, Manifest]:
        """What the server has, by name."""
        items = await self.client.list(CONFIG_MAP, "default")
        return {item["metadata"]["name"]: item for item in items}

    def informer(self, transport: Transport | None = None, seed: int = 1) -> RecordingInformer:
        client = Client(transport, self.server.token) if transport else self.client
        return RecordingInformer(Informer(client, CONFIG_MAP, self.clock, random=Random(seed)))


class RecordingInformer:
    """An informer, and all that it tells of the namespace `default`, checked as it comes."""

    def __init__(self, informer: Informer[Manifest]) -> None:
        self.informer = informer
        self.reported: list[tuple[EventType, str, int]] = []
        self._last: dict[tuple[str, str], Manifest] = {}
        informer.listeners.append(self._record)

    def _record(self, type: EventType, obj: Manifest, before: Manifest | None) -> None:
        meta = obj["metadata"]
        key = (meta["namespace"], meta["name"])
        assert before is self._last.get(key), f"{key}: what was there before is not what was told last"
        assert (type == "ADDED") is (before is None), f"{key}: {type}"
        if before is not None and type == "MODIFIED":
            assert version_of(before) < version_of(obj), f"{key}: told twice, or out of order"
            assert before["metadata"]["uid"] == meta["uid"], f"{key}: another object"
        if type == "DELETED":
            del self._last[key]
        else:
            self._last[key] = obj
        self.reported.append((type, meta["name"], version_of(obj)))

    @property
    def known(self) -> dict[str, int]:
        """Names and versions of what the informer has."""
        return {name: version_of(obj) for (_, name), obj in self.informer.objects.items()}


def versions(objects: dict[str, Manifest]) -> dict[str, int]:
    return {name: version_of(obj) for name, obj in objects.items()}


def version_of(obj: Manifest) -> int:
    return int(obj["metadata"]["resourceVersion"])


def config_map(name: str, text: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": {"text": text},
    }


async def settled() -> None:
    """Let what is under way come to rest."""
    for _ in range(30):
        await asyncio.sleep(0)


def in_harness(
    scenario: Callable[[ClientHarness], Coroutine[Any, Any, None]], *, seed: int = 1, history: int = 20_000
) -> None:
    """Run a scenario to its end."""

    async def run() -> None:
        harness = ClientHarness(seed, history)
        try:
            await scenario(harness)
        finally:
            harness.server.close()

    asyncio.run(run())


@asynccontextmanager
async def running(recorded: RecordingInformer) -> AsyncIterator[None]:
    task = asyncio.ensure_future(recorded.informer.run())
    try:
        await settled()
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def in_default(recorded: RecordingInformer) -> dict[str, int]:
    items = recorded.informer.objects.items()
    return {name: version_of(obj) for (namespace, name), obj in items if namespace == "default"}
