"""A real server over HTTPS that is killed and started again, with concurrent writers, readers and watchers.

Every request is recorded with its times and its answer. Together they must be what one object after another
would have answered, whatever was under way when the server was killed.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from random import Random
from time import monotonic
from typing import Final

import msgspec

from moorage.api.manifests import Manifest
from moorage.client.client import Client
from moorage.client.connect import connected
from moorage.client.credentials import find_access
from moorage.client.kinds import CONFIG_MAP
from moorage.client.watch_events import EventLines, PlainDecoder
from moorage.http.errors import ConnectionFailed, RequestError
from moorage_cluster.chaos.durability.history import Call, Event, History, Session, Verb
from moorage_cluster.chaos.durability.linearizability import not_linearizable, versions_out_of_order
from moorage_cluster.chaos.durability.report import Result
from moorage_cluster.chaos.durability.scratch import scratch_directory
from moorage_cluster.chaos.durability.watch_checks import watch_problems

_KEYS: Final = tuple(f"key-{number}" for number in range(12))
_NAMESPACE: Final = "default"
_WRITERS: Final = 4
_READERS: Final = 2
_WATCHERS: Final = 2
_MIN_ANSWERS, _MAX_ANSWERS = 100, 400
"""Number of answers after which a server is killed."""
_START_SECONDS: Final = 120.0
_PATH: Final = CONFIG_MAP.path(_NAMESPACE)
_VERBS: Final[tuple[Verb, ...]] = ("create", "create", "update", "update", "patch", "delete")


def killed_servers(result: Result, seed: int, begin: int, end: int) -> None:
    """Kill a server as often as there are numbers in a range, and check the history of all its clients."""
    with scratch_directory() as directory:
        run = _Run(directory, Random(f"served {seed} {begin}"), end - begin)
        try:
            asyncio.run(run.run())
        except _NoServer as error:
            result.add("", seed, f"servers {begin} to {end}: {error}")
            return
    for problem in problems(run.history):
        result.add("", seed, f"servers {begin} to {end}: {problem}")
    if not result.problems:
        for _ in range(begin, end):
            result.add("server killed", seed)
        result.count("calls", len(run.history.calls))
        result.count("without answer", sum(not call.code for call in run.history.calls))
        result.count("events", sum(len(session.events) for session in run.history.sessions))


def problems(history: History) -> Iterator[str]:
    """What is wrong with a history."""
    for key in not_linearizable(history.calls):
        yield f"the calls about {key} are not linearizable"
    yield from versions_out_of_order(history.calls)
    yield from watch_problems(history)


class _NoServer(Exception):  # noqa: N818 -- it says what there is not
    """A server did not start, or ended by itself."""


class _Run:
    """A server's lives with the same data directory, and its clients."""

    def __init__(self, directory: Path, random: Random, lives: int) -> None:
        self.history = History()
        self._directory = directory
        self._random = random
        self._lives = lives
        self._contents = count(1)
        self._versions: dict[str, int] = {}
        """The version of each key that some client was told last."""
        self._answers = 0
        self._kill_at = 0
        self._is_killed = False
        """Whether the running server was sent SIGKILL."""

    async def run(self) -> None:
        """Start the server, kill it, and so on; in the end, list what there is."""
        for _ in range(self._lives):
            async with self._server() as (process, client):
                self._kill_at = self._answers + self._random.randint(_MIN_ANSWERS, _MAX_ANSWERS)
                clients = [
                    *(self._write(client, number) for number in range(_WRITERS)),
                    *(self._read(client, number) for number in range(_READERS)),
                    *(self._watch(client) for _ in range(_WATCHERS)),
                ]
                await asyncio.gather(self._kill(process), *clients)
        async with self._server() as (process, client):
            for key in _KEYS:
                await self._get(client, key)

    @asynccontextmanager
    async def _server(self) -> AsyncIterator[tuple[Process, Client]]:
        self._is_killed = False
        kubeconfig = self._directory / "kubeconfig"
        arguments = [
            "--port",
            "0",
            "--kubeconfig",
            str(kubeconfig),
            "--data-dir",
            str(self._directory / "data"),
        ]
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "moorage", "apiserver", *arguments, stdin=DEVNULL, stdout=PIPE
        )
        try:
            await _wait_until_it_listens(process)
            async with connected(find_access(kubeconfig), retries=False) as client:
                yield process, client
        finally:
            if process.returncode is None and not self._is_killed:
                process.kill()
            await process.wait()

    async def _kill(self, process: Process) -> None:
        while self._answers < self._kill_at:
            await asyncio.sleep(self._random.random() / 100)
            if process.returncode is not None:
                raise _NoServer(f"a server ended by itself, with status {process.returncode}")
        self._is_killed = True
        process.kill()

    # -- calls

    async def _call(self, call: Call, answer: Awaitable[Manifest]) -> bool:
        """Wait for an answer; returns whether there was one."""
        self.history.calls.append(call)
        try:
            obj = await answer
        except RequestError as error:
            call.code = error.code
        except (ConnectionFailed, OSError):
            return False
        else:
            call.code = 200
            if obj["kind"] == CONFIG_MAP.name:
                call.version, content = _read_object(obj)
                call.content = call.content or content
                self._versions[call.key] = max(call.version, self._versions.get(call.key, 0))
        call.ended_at = monotonic()
        self._answers += 1
        return True

    async def _write(self, client: Client, number: int) -> None:
        random = Random(self._random.random() + number)
        while await self._write_once(client, random.choice(_VERBS), random.choice(_KEYS)):
            pass

    def _write_once(self, client: Client, verb: Verb, key: str) -> Awaitable[bool]:
        call = Call(verb, key, monotonic())
        meta: Manifest = {"name": key, "namespace": _NAMESPACE}
        if verb in ("update", "delete"):
            call.expected = self._versions.get(key, 1)
            meta["resourceVersion"] = str(call.expected)
        if verb == "delete":
            preconditions = {"resourceVersion": meta["resourceVersion"]}
            options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}
            return self._call(call, client.call("DELETE", f"{_PATH}/{key}", None, options))
        call.content = str(next(self._contents))
        data = {"x": call.content}
        if verb == "patch":
            return self._call(call, client.patch(CONFIG_MAP, _NAMESPACE, key, {"data": data}, "merge"))
        obj = {"apiVersion": "v1", "kind": CONFIG_MAP.name, "metadata": meta, "data": data}
        if verb == "update":
            return self._call(call, client.update(CONFIG_MAP, obj))
        return self._call(call, client.create(CONFIG_MAP, _NAMESPACE, obj))

    async def _read(self, client: Client, number: int) -> None:
        random = Random(self._random.random() + number)
        while await self._get(client, random.choice(_KEYS)):
            pass

    async def _get(self, client: Client, key: str) -> bool:
        call = Call("get", key, monotonic())
        return await self._call(call, client.get(CONFIG_MAP, _NAMESPACE, key))

    # -- watches

    async def _watch(self, client: Client) -> None:
        """List and watch until the server is gone; list again if a watch ends."""
        with suppress(ConnectionFailed, OSError):
            while True:
                with suppress(RequestError):
                    await self._follow(client, await self._list(client))

    async def _list(self, client: Client) -> Session:
        begun_at = monotonic()
        answer = await client.call("GET", _PATH)
        objects = {
            obj["metadata"]["name"]: _read_object(obj)
            for obj in answer["items"]
            if obj["metadata"]["name"] in _KEYS
        }
        revision = int(answer["metadata"]["resourceVersion"])
        session = Session(begun_at, monotonic(), revision, objects)
        self.history.sessions.append(session)
        for key in _KEYS:
            version, content = objects.get(key, (0, ""))
            code = 200 if content else 404
            self.history.calls.append(
                Call("get", key, begun_at, content, ended_at=session.listed_at, code=code, version=version)
            )
        return session

    async def _follow(self, client: Client, session: Session) -> None:
        """Watch from the list on; close the watch now and then, and go on after its last event."""
        while True:
            session.watches += 1
            last = len(session.events) + self._random.randint(1, 200)
            stream = await client.stream(_PATH, {"watch": 1, "resourceVersion": session.end})
            lines = EventLines(PlainDecoder(msgspec.json.decode))
            try:
                async for piece in stream:
                    session.events += [
                        Event(event.type, obj["metadata"]["name"], *_read_object(obj))
                        for event in lines.read(piece)
                        if (obj := msgspec.json.decode(event.raw))["metadata"]["name"] in _KEYS
                    ]
                    if len(session.events) >= last:
                        break
                else:
                    return
            finally:
                stream.close()


async def _wait_until_it_listens(process: Process) -> None:
    assert process.stdout is not None
    try:
        await asyncio.wait_for(process.stdout.readuntil(b"get namespaces\n"), _START_SECONDS)
    except (asyncio.IncompleteReadError, TimeoutError):
        raise _NoServer("a server did not start") from None


def _read_object(obj: Manifest) -> tuple[int, str]:
    return int(obj["metadata"]["resourceVersion"]), obj.get("data", {}).get("x", "")
