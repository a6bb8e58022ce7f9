"""Transports that say what a test wants, and remember what they were asked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from urllib.parse import parse_qs

import msgspec

from moorage.api.manifests import Manifest
from moorage.clock import Clock
from moorage.http.transport import Request, Response, Stream, Transport

Answer = Response | Exception


class ScriptedTransport:
    """Gives answers in their order; the last one for ever."""

    def __init__(self, clock: Clock, answers: Sequence[Answer]) -> None:
        self._clock = clock
        self._answers = list(answers)
        self.asked: list[Request] = []
        self.times: list[float] = []

    async def handle(self, request: Request) -> Response:
        self.asked.append(request)
        self.times.append(round(self._clock.now(), 3))
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


class Pieces(Stream):
    """A stream of given pieces, which then ends."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece

    def close(self) -> None:
        self._pieces = ()


class Changed:
    """A transport that changes requests, or answers them itself."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.asked: list[dict[str, str]] = []
        """The queries, read."""

    async def handle(self, request: Request) -> Response:
        query = {key: values[-1] for key, values in parse_qs(request.query).items()}
        self.asked.append(query)
        return self.answer(query) or await self._transport.handle(self.changed(request))

    def answer(self, query: dict[str, str]) -> Response | None:
        """An answer instead of the server's."""
        return None

    def changed(self, request: Request) -> Request:
        """What the server gets to see."""
        return request


def watch_event(type: str, obj: object) -> bytes:
    """An event of a watch."""
    return msgspec.json.encode({"type": type, "object": obj}) + b"\n"


BOOKMARK = {"kind": "ConfigMap", "metadata": {"resourceVersion": "10", "annotations": {}}}
ALL_SENT = {"metadata": {"resourceVersion": "10", "annotations": {"k8s.io/initial-events-end": "true"}}}


def scripted_object(name: str, version: int, uid: str = "u") -> Manifest:
    meta = {"name": name, "namespace": "default", "uid": uid, "resourceVersion": str(version)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}


def watched(*events: bytes) -> Response:
    return Response(200, Pieces(*events))
