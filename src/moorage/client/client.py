"""Requests to an API server: verbs over a transport, answers decoded, refusals raised.

A request counts as done only if the API server's own answer says so: it is the object that was written, or a
Status with `Success`. After any other answer with a status of 2xx (a captive portal's page, a proxy's empty
answer) it is unknown whether the request was done (`AnswerLost`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Mapping
from http import HTTPStatus
from typing import Any, Final, Literal, NamedTuple, TypeVar
from urllib.parse import urlencode

import msgspec

from moorage.api.manifests import Manifest
from moorage.client.kinds import Kind
from moorage.http.errors import AnswerLost, RequestError
from moorage.http.transport import Request, Response, Stream, Transport

T = TypeVar("T")
Answer = Coroutine[Any, Any, T]
"""What comes of a request once it is awaited."""
PatchType = Literal["json", "merge", "strategic"]

_PATCH_TYPES: Mapping[PatchType, str] = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}
_SUCCESSFUL: Final = range(200, 300)
_DONE: Final = (200, 201)
"""Statuses with which an API server says that a part of an object was created."""
_SHOWN_BYTES: Final = 100
_UNREADABLE: Final = (ValueError, RecursionError)
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class _Status(msgspec.Struct):
    """An answer that is no object."""

    kind: str = ""
    status: str = ""


_decode_status = msgspec.json.Decoder(_Status).decode


class Client:
    """One client of one API server; `token` is sent with every request."""

    def __init__(self, transport: Transport, token: str = "", user_agent: str = "moorage") -> None:
        self._transport = transport
        self._headers = {"host": "localhost", "user-agent": user_agent, "accept": "application/json"}
        if token:
            self._headers["authorization"] = f"Bearer {token}"
        self._headers_with: dict[str, dict[str, str]] = {}
        """The headers of requests that have a body, by its content type."""

    # -- verbs

    # Most only say which request it is, and hand on the one that is made below.

    def get(self, kind: Kind, namespace: str, name: str) -> Answer[Manifest]:
        """One object."""
        return self._object(kind, "GET", kind.path(namespace, name))

    async def list(self, kind: Kind, namespace: str = "", **query: str | int) -> list[Manifest]:
        """All objects, of one namespace or of all."""
        answer = await self.call("GET", kind.path(namespace), query)
        items: list[Manifest] = answer["items"]
        return items

    def create(self, kind: Kind, namespace: str, obj: Manifest, **query: str | int) -> Answer[Manifest]:
        """Create an object; the answer is what was stored."""
        return self._object(kind, "POST", kind.path(namespace), query, obj)

    def post(self, kind: Kind, namespace: str, obj: Any) -> Answer[bytes]:
        """Create an object; what was stored is left encoded, for who reads little of it or nothing."""
        return self.exchange("POST", kind.path(namespace), None, obj)

    def update(self, kind: Kind, obj: Manifest, subresource: str = "") -> Answer[Manifest]:
        """Replace an object, or a part of it; a conflict is raised if it has changed since it was read."""
        meta = obj["metadata"]
        path = kind.path(meta.get("namespace", ""), meta["name"], subresource)
        return self._object(kind, "PUT", path, None, obj, subresource=subresource)

    def patch(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        patch: Any,
        type: PatchType = "strategic",
        subresource: str = "",
    ) -> Answer[Manifest]:
        """Change an object by a patch; the answer is what is stored then."""
        path = kind.path(namespace, name, subresource)
        return self._object(kind, "PATCH", path, None, patch, _PATCH_TYPES[type], subresource)

    def delete(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        *,
        grace_seconds: int | None = None,
        uid: str = "",
        propagation: str = "",
    ) -> Answer[Manifest]:
        """Delete an object, or begin to; with a uid, only that very object."""
        options: Manifest = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        if uid:
            options["preconditions"] = {"uid": uid}
        if propagation:
            options["propagationPolicy"] = propagation
        return self.call("DELETE", kind.path(namespace, name), None, options)

    async def create_part(
        self, kind: Kind, namespace: str, name: str, subresource: str, obj: Manifest
    ) -> None:
        """Create a part of an object: bind a pod, evict it; AnswerLost unless the server says it is done."""
        path = kind.path(namespace, name, subresource)
        response = await self._answer("POST", path, None, obj)
        try:
            said = _decode_status(response.body)
        except _UNREADABLE:
            said = _Status()
        if response.status not in _DONE or (said.kind, said.status) != ("Status", "Success"):
            raise _no_answer("POST", path, response.status, response.body)

    # -- below the verbs

    async def _object(
        self,
        kind: Kind,
        method: str,
        path: str,
        query: Mapping[str, str | int] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        subresource: str = "",
    ) -> Manifest:
        """A request whose answer is an object of this kind; subresources other than `status` have others."""
        answer = await self.call(method, path, query, body, content_type)
        if answer["kind"] != kind.name and subresource in ("", "status"):
            raise _no_answer(method, path, HTTPStatus.OK, _encode(answer))
        return answer

    async def call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str | int] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> Manifest:
        """A request whose answer is one object of the API; RequestError if the server refuses."""
        response = await self._answer(method, path, query, body, content_type)
        try:
            answer = _decode(response.body)
        except _UNREADABLE:
            answer = None
        if not isinstance(answer, dict) or "kind" not in answer or answer.get("status") == "Failure":
            raise _no_answer(method, path, response.status, response.body)
        return answer

    async def exchange(
        self,
        method: str,
        path: str,
        query: Mapping[str, str | int] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> bytes:
        """A request whose answer comes whole; RequestError if the server refuses.

        body: anything that is written as JSON; as `msgspec.Raw`, what is JSON already.
        """
        return (await self._answer(method, path, query, body, content_type)).body

    async def _answer(
        self,
        method: str,
        path: str,
        query: Mapping[str, str | int] | None,
        body: Any,
        content_type: str = "application/json",
    ) -> _Answer:
        response = await self._transport.handle(self._request(method, path, query, body, content_type))
        if response.status not in _SUCCESSFUL:
            raise await _refusal(response)
        assert isinstance(response.body, bytes)
        return _Answer(response.status, response.body)

    async def stream(self, path: str, query: Mapping[str, str | int]) -> Stream:
        """A request whose answer comes bit by bit; RequestError if the server refuses."""
        response = await self._transport.handle(self._request("GET", path, query))
        if response.status not in _SUCCESSFUL:
            raise await _refusal(response)
        if isinstance(response.body, bytes):
            return _Whole(response.body)
        return response.body

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str | int] | None,
        body: Any = None,
        content_type: str = "",
    ) -> Request:
        encoded = urlencode(query) if query else ""
        if body is None:
            return Request(method, path, encoded, self._headers)
        headers = self._headers_with.get(content_type) or self._with(content_type)
        # A request with a body is a write, and has a small answer. Callers handle the loss of the answer to a
        # write in any case, so it may share a connection.
        return Request(method, path, encoded, headers, _encode(body), may_share=True)

    def _with(self, content_type: str) -> dict[str, str]:
        headers = self._headers_with[content_type] = {**self._headers, "content-type": content_type}
        return headers


class _Answer(NamedTuple):
    """An answer that came whole."""

    status: int
    body: bytes


class _Whole(Stream):
    """An answer that came in one piece, where pieces were expected."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._body

    def close(self) -> None:
        """There is nothing to end."""


def _no_answer(method: str, path: str, status: int, body: bytes) -> AnswerLost:
    """What came is not what an API server says."""
    shown = body[:_SHOWN_BYTES].decode(errors="replace")
    return AnswerLost(f"{method} {path}: the answer, with status {status}, is not an API server's: {shown!r}")


async def _refusal(response: Response) -> RequestError:
    if isinstance(response.body, bytes):
        body = response.body
    else:
        body = b"".join([piece async for piece in response.body])
    try:
        status = _decode(body)
        return RequestError(
            response.status, status.get("reason") or "", status.get("message") or "", status.get("details")
        )
    except (msgspec.MsgspecError, AttributeError):
        text = body[:500].decode(errors="replace").strip()
        return RequestError(response.status, "", text or f"the server answered {response.status}")
