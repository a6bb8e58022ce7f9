"""Access to the page: requests must carry the token, which is part of the printed address.

The first request carries it in the query and is answered with a cookie, so that it does not stay in the
address bar. Programs send it as a bearer token.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import parse_qsl, urlencode

from moorage.http.transport import Request, Response

_TOKEN: Final = "token"
_BEARER: Final = "bearer "


class Session:
    """Holds the token; port: part of the cookie's name, because cookies of all ports are one set."""

    def __init__(self, port: int, token: str = "") -> None:
        self.token = token or secrets.token_urlsafe(24)
        self._cookie = f"moorage-{port}"

    def allows(self, headers: Mapping[str, str]) -> bool:
        """Whether a request carries the token, in its cookie or as a bearer token."""
        authorization = headers.get("authorization", "")
        if authorization.lower().startswith(_BEARER):
            return self._is_token(authorization[len(_BEARER) :].strip())
        try:
            cookies = SimpleCookie(headers.get("cookie", ""))
        except CookieError:
            return False
        return self._cookie in cookies and self._is_token(cookies[self._cookie].value)

    def entry(self, request: Request) -> Response | None:
        """The answer to a request with the right token in its query: a cookie, and where to go on."""
        query = dict(parse_qsl(request.query))
        if not self._is_token(query.pop(_TOKEN, "")):
            return None
        cookie = f"{self._cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"
        path = f"/{request.path.lstrip('/')}"  # two slashes would be another host
        location = f"{path}?{urlencode(query)}" if query else path
        return Response(
            int(HTTPStatus.SEE_OTHER), b"", "text/plain", {"Set-Cookie": cookie, "Location": location}
        )

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token.encode())
