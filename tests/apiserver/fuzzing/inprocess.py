"""A server in this process under virtual time: requests are sent to it and all that it does is checked."""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any
from urllib.parse import quote

import msgspec

from moorage.clock import VirtualClock
from moorage.http.transport import Request, Response, Stream
from moorage_cluster.apiserver.embedded import EmbeddedServer, Settings
from moorage_cluster.apiserver.resources import APIResource
from tests.apiserver.client import START, WITH_GROUPS, settled
from tests.apiserver.fuzzing.checks import Wrong, check_answer, check_event, check_store, content_of
from tests.apiserver.fuzzing.request import TOKEN, Shot

SLOW_SECONDS = 2.0
_OPEN_WATCHES = 8
_SECONDS_A_REQUEST = 1.0
_FORMS = {
    "as it is": "",
    "a table": "application/json;as=Table;v=v1;g=meta.k8s.io",
    "metadata": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
}


class _Complaints(logging.Handler):
    """Gathers what the server logs as a mistake of its own."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        trace = "".join(traceback.format_exception(record.exc_info[1])) if record.exc_info else ""
        self.found.append(f"{record.getMessage()[:200]}\n{trace}")


@contextmanager
def gathered_complaints(*names: str) -> Iterator[list[str]]:
    """What loggers, or those of the server, log as errors meanwhile; it is not printed."""
    handler = _Complaints()
    loggers = [logging.getLogger(name) for name in names or ("moorage_cluster.apiserver", "moorage.http")]
    before = [logger.propagate for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.propagate = False
    try:
        yield handler.found
    finally:
        for logger, propagated in zip(loggers, before, strict=True):
            logger.removeHandler(handler)
            logger.propagate = propagated


class Target:
    """A fresh server."""

    def __init__(self, complaints: list[str], settings: Settings | None = None) -> None:
        self._clock = VirtualClock(epoch=START)
        self._settings = settings or Settings(version=WITH_GROUPS)
        self.server = EmbeddedServer(self._settings, clock=self._clock, random=Random(1))
        self._first_revision = self.server.store.collection("/namespaces").log.oldest
        self._complaints = complaints
        self._watches: list[_Reader] = []
        self._loop_problems: list[str] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: self._loop_problems.append(
                repr(context.get("exception") or context["message"])
            )
        )

    async def fire(self, shot: Shot) -> tuple[int, Any]:
        """Send a request and check what comes of it; the result is the code and the answer, if it is JSON."""
        headers = [(name, value.replace(TOKEN, self.server.token)) for name, value in shot.headers]
        request = Request(shot.method, shot.path, shot.query, dict(headers), shot.body, headers)
        start = time.process_time()
        response = await self.server.api.handle(request)
        body = response.body
        self.check_complaints()
        if isinstance(body, bytes):
            status_object = check_answer(shot, response.status, response.content_type, response.headers, body)
        else:
            status_object = None
            await self._follow(body)
        self._clock.advance(_SECONDS_A_REQUEST)
        await settled()
        seconds = time.process_time() - start
        self.check_complaints()
        if seconds > SLOW_SECONDS:
            raise Wrong(f"it took {seconds:.1f} seconds")
        return response.status, status_object

    def check_complaints(self) -> None:
        """That nothing was logged, and nothing was raised where nobody waits for it."""
        if self._complaints:
            found = self._complaints.copy()
            self._complaints.clear()
            raise Wrong(f"the server logged: {found[0]}")
        if self._loop_problems:
            found = self._loop_problems.copy()
            self._loop_problems.clear()
            raise Wrong(f"in the event loop: {found[0]}")

    async def _follow(self, stream: Stream) -> None:
        """Watch on, beside the watches that are open already; the oldest makes room."""
        self._watches.append(_Reader(stream))
        if len(self._watches) > _OPEN_WATCHES:
            await self._watches.pop(0).close()
        await settled()
        for watch in self._watches:
            watch.check()

    async def check(self) -> None:
        """That all is well with the server as a whole."""
        await self._get("/readyz")
        for watch in self._watches:
            watch.check()
        check_store(self.server)
        for resource in list(self.server.resources):
            if "list" in resource.verbs:
                await self._check_lists(resource)
        for path in ("/openapi/v2", "/openapi/v3", "/apis", "/api/v1", "/version"):
            await self._get(path)
        groups = {(one.group, one.version) for one in self.server.resources if one.is_custom}
        for group, version in sorted(groups):
            await self._get(f"/openapi/v3/apis/{group}/{version}")
            await self._get(f"/apis/{group}/{version}")

    async def _get(self, path: str, query: str = "", accept: str = "") -> Response:
        shot = Shot("GET", path, query)
        headers = {"host": "localhost", "authorization": f"Bearer {self.server.token}"}
        if accept:
            headers["accept"] = accept
        response = await self.server.api.handle(Request("GET", path, query, headers))
        self.check_complaints()
        if isinstance(response.body, bytes):
            check_answer(shot, response.status, response.content_type, response.headers, response.body)
        if response.status != 200:
            raise Wrong(f"GET {path}?{query} is answered with {response.status}: {response.body!r}")
        return response

    async def _check_lists(self, resource: APIResource) -> None:
        """That a list is what is stored, in every form, and that watching from the start leads there too."""
        prefix = f"/apis/{resource.group}" if resource.group else "/api"
        path = f"{prefix}/{resource.version}/{resource.plural}"
        stored = self.server.store.collection(resource.storage).items
        for form, accept in _FORMS.items():
            status_object = _json(await self._get(path, accept=accept))
            if form == "as it is":
                _same(
                    f"the list of {path}",
                    _versions(status_object["items"]),
                    {key: one.version for key, one in stored.items()},
                )
            elif len(status_object.get("rows", status_object.get("items", ()))) != len(stored):
                raise Wrong(f"{path} as {form} is not what is stored")
        response = await self._get(path, f"watch=1&resourceVersion={self._first_revision}")
        assert not isinstance(response.body, bytes)
        reader = _Reader(response.body)
        await settled()
        seen = reader.state()
        await reader.close()
        _same(f"watching {path}", seen, {key: one.version for key, one in stored.items()})
        # One that outlived its definition, because a client removed the finalizer, may have another scope.
        reachable = [one for key, one in stored.items() if bool(key[0]) is resource.namespaced]
        for one in reachable[:3]:
            namespace, name = one.key
            inside = (
                f"{prefix}/{resource.version}/namespaces/{quote(namespace)}"
                if namespace
                else prefix + "/" + resource.version
            )
            got = _json(await self._get(f"{inside}/{resource.plural}/{quote(name)}"))
            if got["metadata"]["resourceVersion"] != str(one.version):
                raise Wrong(f"{path} {namespace}/{name} is not what is stored")

    def check_reopened(self) -> None:
        """That a server on the same directory, after this one was closed, has its objects."""
        again = EmbeddedServer(self._settings, clock=self._clock, random=Random(1))
        try:
            for collection in self.server.store.collections():
                there = again.store.collection(collection.name).items
                for key, stored in collection.items.items():
                    # The CA is put right at every start, and what every cluster has is made again.
                    if key[1] != "kube-root-ca.crt" and (key not in there or there[key].raw != stored.raw):
                        raise Wrong(f"{collection.name} {key} is not the same after opening again")
            check_store(again)
        finally:
            again.close()

    async def close(self) -> None:
        """End the watches and the server."""
        for watch in self._watches:
            await watch.close()
        self._watches.clear()
        self.server.close()


def _json(response: Response) -> Any:
    return msgspec.json.decode(content_of(response))


def _versions(items: list[Any]) -> dict[tuple[str, str], int]:
    return {
        (item["metadata"].get("namespace", ""), item["metadata"]["name"]): int(
            item["metadata"]["resourceVersion"]
        )
        for item in items
    }


def _same(what: str, shown: dict[tuple[str, str], int], stored: dict[tuple[str, str], int]) -> None:
    if shown != stored:
        odd = sorted(shown.items() ^ stored.items())[:5]
        raise Wrong(f"{what} is not what is stored: {odd}")


class _Reader:
    """Reads a watch in the background."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._pieces: list[bytes] = []
        self._task = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        async for piece in self._stream:
            self._pieces.append(piece)

    def _events(self) -> list[dict[str, Any]]:
        lines = b"".join(self._pieces).splitlines()
        self._pieces.clear()
        return [check_event(line) for line in lines]

    def check(self) -> None:
        """That all that came was an event, and that the watch did not break."""
        self._events()
        if self._task.done() and self._task.exception():
            raise Wrong(f"a watch broke: {self._task.exception()!r}")

    def state(self) -> dict[tuple[str, str], int]:
        """What is there after all events so far."""
        state: dict[tuple[str, str], int] = {}
        for event in self._events():
            ((key, version),) = _versions([event["object"]]).items()
            if (event["type"] == "ADDED") is (key in state):
                raise Wrong(
                    f"a watch says {event['type']} of {key}, which was {'' if key in state else 'not '}there"
                )
            if event["type"] == "DELETED":
                del state[key]
            else:
                state[key] = version
        return state

    async def close(self) -> None:
        """Stop listening."""
        self._stream.close()
        await asyncio.gather(self._task, return_exceptions=True)
        self.check()
