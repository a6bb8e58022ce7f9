"""Requests to an API server: verbs over a transport, decoded responses, errors raised.

A request counts as done only if the API server's own response says so: the object that was written, or a
Status with `Success`. After any other 2xx response (a captive portal's page, a proxy's empty body) it is
unknown whether the request was carried out (`AnswerLost`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Mapping
from functools import lru_cache
from http import HTTPStatus
from typing import Any, ClassVar, Final, Literal, TypeVar
from urllib.parse import urlencode

import msgspec

from moorage.api.manifests import Manifest
from moorage.client.kinds import Kind
from moorage.http.errors import AnswerLost, RequestError
from moorage.http.transport import Request, Response, Stream, Transport

T = TypeVar("T")
Answer = Coroutine[Any, Any, T]
"""The result of a request, to be awaited."""
PatchType = Literal["json", "merge", "strategic"]

_PATCH_TYPES: Mapping[PatchType, str] = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}
_JSON: Final = "application/json"
_SUCCESSFUL: Final = range(200, 300)
_DONE: Final = (200, 201)
"""Status codes with which an API server confirms the creation of a subresource."""
_SHOWN_BYTES: Final = 100
_KEPT_CONFIRMATIONS: Final = 4
"""Number of bodies that are not decoded again: a server confirms all bindings in the same words."""
_UNREADABLE: Final = (ValueError, RecursionError)
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class _Status(msgspec.Struct):
    """A response that is not an object."""

    kind: str = ""
    status: str = ""


_decode_status = msgspec.json.Decoder(_Status).decode


@lru_cache(maxsize=_KEPT_CONFIRMATIONS)
def _says_success(body: bytes) -> bool:
    try:
        decoded = _decode_status(body)
    except _UNREADABLE:
        return False
    return decoded.kind == "Status" and decoded.status == "Success"


class Client:
    """A client of one API server; `token` is sent with every request."""

    informs_at_once: ClassVar[bool] = False
    """Whether informers have been told of a write when it returns."""

    def __init__(self, transport: Transport, token: str = "", user_agent: str = "moorage") -> None:
        self._transport = transport
        self._headers = {"host": "localhost", "user-agent": user_agent, "accept": _JSON}
        if token:
            self._headers["authorization"] = f"Bearer {token}"
        self._headers_with: dict[str, dict[str, str]] = {}
        """Headers of requests with a body, by content type."""

    # -- verbs

    # Most verbs only build the request and return the coroutine of a method below.

    def get(self, kind: Kind, namespace: str, name: str) -> Answer[Manifest]:
        """One object."""
        return self._object(kind, "GET", kind.path(namespace, name))

    async def list(self, kind: Kind, namespace: str = "", **query: str | int) -> list[Manifest]:
        """All objects, of one namespace or of all."""
        answer = await self.call("GET", kind.path(namespace), query)
        items: list[Manifest] = answer["items"]
        return items

    def create(self, kind: Kind, namespace: str, obj: Manifest, **query: str | int) -> Answer[Manifest]:
        """Create an object; returns the stored one."""
        return self._object(kind, "POST", kind.path(namespace), query, obj)

    def post(self, kind: Kind, namespace: str, obj: Any) -> Answer[bytes]:
        """Create an object; returns the stored one undecoded, for callers that read little of it."""
        return self.exchange("POST", kind.path(namespace), None, obj)

    def update(self, kind: Kind, obj: Manifest, subresource: str = "") -> Answer[Manifest]:
        """Replace an object or a subresource; raises a conflict if it has changed since it was read."""
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
        """Patch an object; returns the stored one."""
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
        """Delete an object, or begin to; with a uid, only the object with this uid."""
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
        """Create a subresource (binding, eviction); AnswerLost unless the server confirms it."""
        path = kind.path(namespace, name, subresource)
        response = await self._transport.handle(self._request("POST", path, None, obj, _JSON))
        if response.status not in _SUCCESSFUL:
            raise await _refusal(response)
        body = response.body
        assert isinstance(body, bytes)
        if response.status not in _DONE or not _says_success(body):
            raise _no_answer("POST", path, response.status, body)

    # -- below the verbs

    # Each of them awaits the transport itself: one more coroutine would cost microseconds for every binding.

    async def _object(
        self,
        kind: Kind,
        method: str,
        path: str,
        query: Mapping[str, str | int] | None = None,
        body: Any = None,
        content_type: str = _JSON,
        subresource: str = "",
    ) -> Manifest:
        """A request that returns an object of this kind; subresources but `status` may return others."""
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
        content_type: str = _JSON,
    ) -> Manifest:
        """A request that returns one object; RequestError if the server rejects it."""
        response = await self._transport.handle(self._request(method, path, query, body, content_type))
        if response.status not in _SUCCESSFUL:
            raise await _refusal(response)
        received = response.body
        assert isinstance(received, bytes)
        try:
            answer = _decode(received)
        except _UNREADABLE:
            answer = None
        if not isinstance(answer, dict) or "kind" not in answer or answer.get("status") == "Failure":
            raise _no_answer(method, path, response.status, received)
        return answer

    async def exchange(
        self,
        method: str,
        path: str,
        query: Mapping[str, str | int] | None = None,
        body: Any = None,
        content_type: str = _JSON,
    ) -> bytes:
        """A request with a complete response body; RequestError if the server rejects it.

        body: a value to encode as JSON; a `msgspec.Raw` is sent as it is.
        """
        response = await self._transport.handle(self._request(method, path, query, body, content_type))
        if response.status not in _SUCCESSFUL:
            raise await _refusal(response)
        assert isinstance(response.body, bytes)
        return response.body

    async def stream(self, path: str, query: Mapping[str, str | int]) -> Stream:
        """A request with a streamed response; RequestError if the server rejects it."""
        response = await self._transport.handle(self._request("GET", path, query))
        if response.status not in _SUCCESSFUL:
            raise await _refusal(response)
        if isinstance(response.body, bytes):
            return _WholeBody(response.body)
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
        # A request with a body is a write with a small response. Callers handle the loss of the response to a
        # write in any case, so it may share a connection.
        return Request(method, path, encoded, headers, _encode(body), may_share=True)

    def _with(self, content_type: str) -> dict[str, str]:
        headers = self._headers_with[content_type] = {**self._headers, "content-type": content_type}
        return headers


class _WholeBody(Stream):
    """A complete response where a stream was expected."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._body

    def close(self) -> None:
        """Nothing to close."""


def _no_answer(method: str, path: str, status: int, body: bytes) -> AnswerLost:
    """The response is not an API server's."""
    shown = body[:_SHOWN_BYTES].decode(errors="replace")
    return AnswerLost(f"{method} {path}: the response with status {status} is not an API server's: {shown!r}")


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
