"""Responses of the scheduler's own HTTPS server, worded as those of every Kubernetes component."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, Final

import msgspec

from moorage.http.transport import Request, Response

Handler = Callable[[Request], Awaitable[Response]]
"""Handles requests for one path."""

PLAIN: Final = "text/plain; charset=utf-8"
_NO_SNIFF: Final = {"X-Content-Type-Options": "nosniff"}


def text(body: str | bytes, content_type: str = PLAIN, status: int = HTTPStatus.OK) -> Response:
    """A text response that browsers do not interpret."""
    raw = body.encode() if isinstance(body, str) else body
    return Response(int(status), raw, content_type, dict(_NO_SNIFF))


def error(status: int, message: str) -> Response:
    """An error as a line of text."""
    return text(f"{message}\n", status=status)


def document(value: Any) -> Response:
    """A JSON document."""
    return Response(200, msgspec.json.encode(value), "application/json", dict(_NO_SNIFF))


def refusal(status: HTTPStatus, reason: str, message: str, *, has_details: bool = False) -> Response:
    """A rejection in the form of API servers: a Status object."""
    body: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
    }
    if has_details:
        body["details"] = {}
    body["code"] = int(status)
    return Response(int(status), msgspec.json.encode(body), "application/json", dict(_NO_SNIFF))
