"""Requests to documents and files: who may ask, from where, and what.

Everything below `/api/` takes the token; the files of the page hold nothing secret, and are served to
browsers without it, so that a page whose token has expired can say so.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qs, unquote

import msgspec

from moorage.api.decode import InputError
from moorage.http.api_error import ApiError
from moorage.http.guard import Guard
from moorage.http.transport import Request, Response
from moorage.services.responses import Handler, document
from moorage.ui.event_stream import CONTENT_TYPE, ChangeStream
from moorage.ui.session import Session
from moorage.ui.sources.source import Source
from moorage.ui.static_files import StaticFiles

API: Final = "/api/v1/"
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Problem(msgspec.Struct):
    """Why a request has no document."""

    message: str


class Application:
    """A transport that answers browsers and scripts.

    A route that ends with a slash is for all paths below it.
    """

    def __init__(self, source: Source, session: Session, routes: Mapping[str, Handler] | None = None) -> None:
        """routes: more documents, by path below `/api/v1/`."""
        self._session = session
        self._guard = Guard()
        self._files = StaticFiles()
        self._routes: dict[str, Handler] = {**timeline_routes(source), **source.routes(), **(routes or {})}

    async def handle(self, request: Request) -> Response:
        """The answer; failures are answers, too."""
        response = await self._answered(request)
        response.headers = {**_HEADERS, **response.headers}
        return response

    async def _answered(self, request: Request) -> Response:
        try:
            self._guard.check(request.headers)
            if request.path.startswith(API):
                return await self._answered_by_api(request)
            if (entry := self._session.entry(request)) is not None:
                return entry
            if request.method not in ("GET", "HEAD"):
                return problem(HTTPStatus.METHOD_NOT_ALLOWED, f"{request.method} is not possible here")
            return self._files.response(unquote(request.path))
        except ApiError as error:
            return problem(HTTPStatus(error.code), error.message)

    async def _answered_by_api(self, request: Request) -> Response:
        if not self._session.allows(request.headers):
            return problem(HTTPStatus.UNAUTHORIZED, "the token is missing, or has expired")
        path = unquote(request.path).removeprefix(API)
        handler = self._routes.get(path)
        if handler is None:
            prefixes = (each for each in self._routes if each.endswith("/") and path.startswith(each))
            handler = self._routes.get(max(prefixes, key=len, default=""))
        if handler is None:
            return problem(HTTPStatus.NOT_FOUND, f"there is no document {path}")
        if request.body and request.headers.get("content-type", "").partition(";")[0] != "application/json":
            return problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "the body has to be application/json")
        try:
            return await handler(request)
        except InputError as error:
            return problem(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))


def problem(status: HTTPStatus, message: str) -> Response:
    """A refusal as a document."""
    response = document(Problem(message))
    response.status = int(status)
    return response


def timeline_routes(source: Source) -> dict[str, Handler]:
    """What every source has: itself, its state, its changes and its history."""
    timeline = source.timeline

    async def info(request: Request) -> Response:
        return document(source.info())

    async def cluster(request: Request) -> Response:
        return document(timeline.state())

    async def history(request: Request) -> Response:
        return document(timeline.history())

    async def changes(request: Request) -> Response:
        given = request.headers.get("last-event-id") or parse_qs(request.query).get("since", ["0"])[0]
        if not (given.isascii() and given.isdecimal()):
            return problem(HTTPStatus.BAD_REQUEST, "since: not a revision")
        return Response(int(HTTPStatus.OK), ChangeStream(timeline, int(given)), CONTENT_TYPE, {})

    return {"source": info, "cluster": cluster, "history": history, "changes": changes}
