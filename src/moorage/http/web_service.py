"""Requests of plugins to other servers than the API server: JSON, within limits of time and size.

A connection lasts for one answer: such servers are asked every few seconds at most, and certificates and
tokens may be replaced between two requests.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, urlencode, urlsplit

import msgspec

from moorage.http.client_tls import client_context
from moorage.http.client_transport import Endpoint, HttpTransport
from moorage.http.errors import ConnectionFailed, KubeconfigError
from moorage.http.transport import Request, Response

_SUCCESSFUL: Final = range(200, 300)
_SHOWN_BYTES: Final = 200
"""Number of bytes of an unexpected answer that an error shows."""
DEFAULT_TIMEOUT_SECONDS: Final = 10.0
DEFAULT_MAX_ANSWER_BYTES: Final = 16 << 20


class WebServiceError(Exception):
    """A request failed; the message is one line. Whether the server has done what was asked is unknown."""


class WebService:
    """A server at a URL that answers with JSON. ValueError if the URL cannot be used.

    ca_file: a PEM file with the authorities of its certificate; empty: those of the system.
    token_file: a file with a bearer token; empty: requests have none. Both files are read for each request.
    timeout_seconds: the time limit of a request with its answer. max_answer_bytes: the size limit of that.
    """

    def __init__(
        self,
        url: str,
        *,
        ca_file: str = "",
        token_file: str = "",
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        max_answer_bytes: int = DEFAULT_MAX_ANSWER_BYTES,
    ) -> None:
        parts = _split(url)
        if ca_file and parts.scheme != "https":
            raise ValueError(f"a CA file ({ca_file}) is of no use for a URL with http")
        self._server = f"{parts.scheme}://{parts.netloc}"
        self._is_tls = parts.scheme == "https"
        self._path, self._query = parts.path, parts.query
        self._ca_file = ca_file
        self._token_file = token_file
        self._timeout_seconds = timeout_seconds
        self._max_answer_bytes = max_answer_bytes

    async def get(self, path: str = "", query: Mapping[str, str] | None = None) -> Any:
        """What the server has at a path below its URL, decoded; WebServiceError if there is no answer."""
        return await self._answer("GET", path, query or {}, b"")

    async def post(self, content: Any, path: str = "") -> Any:
        """The answer to some content, decoded; WebServiceError if there is none."""
        return await self._answer("POST", path, {}, msgspec.json.encode(content))

    async def _answer(self, method: str, path: str, query: Mapping[str, str], body: bytes) -> Any:
        try:
            async with asyncio.timeout(self._timeout_seconds):
                response = await self._ask(self._request(method, path, query, body))
        except TimeoutError:
            raise WebServiceError(f"no answer within {self._timeout_seconds:g}s") from None
        except (ConnectionFailed, ValueError) as error:
            raise WebServiceError(str(error)) from None
        assert isinstance(response.body, bytes)
        if response.status not in _SUCCESSFUL:
            raise WebServiceError(f"status {response.status}{_shown(response.body)}")
        try:
            return msgspec.json.decode(response.body)
        except (ValueError, RecursionError):
            raise WebServiceError(f"the answer is not JSON{_shown(response.body)}") from None

    def _request(self, method: str, path: str, query: Mapping[str, str], body: bytes) -> Request:
        headers = {"accept": "application/json", "user-agent": "moorage"}
        if body:
            headers["content-type"] = "application/json"
        if self._token_file:
            token = _contents(self._token_file).decode("latin-1").strip()
            headers["authorization"] = f"Bearer {token}"
        full_path = f"{self._path.rstrip('/')}{path}" if path else self._path
        full_query = "&".join(filter(None, (self._query, urlencode(query))))
        return Request(method, full_path or "/", full_query, headers, body)

    async def _ask(self, request: Request) -> Response:
        seconds = 2 * self._timeout_seconds  # The time limit of the request is the only one.
        async with HttpTransport(
            Endpoint(self._server, self._tls()),
            connect_seconds=seconds,
            idle_seconds=seconds,
            max_answer_bytes=self._max_answer_bytes,
        ) as transport:
            return await transport.handle(request)

    def _tls(self) -> ssl.SSLContext | None:
        if not self._is_tls:
            return None
        try:
            return client_context(_contents(self._ca_file) if self._ca_file else None)
        except KubeconfigError as error:
            raise ValueError(f"{self._ca_file}: {error}") from None


def _split(url: str) -> SplitResult:
    """The parts of a URL; ValueError if it is none of a server."""
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid or parts.fragment:
        raise ValueError(f"{url!r} is not a URL such as https://metrics.example:9090")
    return parts


def _contents(file: str) -> bytes:
    """What is in a file; ValueError if it cannot be read."""
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise ValueError(f"{file}: {error.strerror or error}") from None


def _shown(body: bytes) -> str:
    text = body[:_SHOWN_BYTES].decode(errors="replace").strip()
    return f": {text!r}" if text else ""
