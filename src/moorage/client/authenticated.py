"""A transport that sends the current credentials with every request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from typing import Final, Protocol

from moorage.http.client_transport import HttpTransport
from moorage.http.errors import KubeconfigError, NoAccess
from moorage.http.transport import Request, Response

_UNAUTHORIZED: Final = 401


class Credentials(Protocol):
    """Credentials of a client; may have to be renewed."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers sent with each request."""

    @property
    def is_fixed(self) -> bool:
        """Whether they never change."""

    @property
    def is_stale(self) -> bool:
        """Whether they should be renewed before they are used."""

    async def renew(self) -> bool:
        """Renew them; returns whether they changed. KubeconfigError if that is impossible."""


class AuthenticatedTransport:
    """A server's transport with credentials; `impersonated`: headers for impersonation."""

    def __init__(
        self,
        transport: HttpTransport,
        credentials: Credentials,
        impersonated: Sequence[tuple[str, str]] = (),
    ) -> None:
        self._transport = transport
        self._credentials = credentials
        self._impersonated = impersonated
        self._shown: Mapping[str, str] | None = None
        """The credentials that the transport sends."""
        self._renewing = asyncio.Lock()

    def handle(self, request: Request) -> Awaitable[Response]:
        """The response; after a 401 the request is retried once with renewed credentials."""
        if not self._credentials.is_fixed:
            return self._handle_renewing(request)
        if self._credentials.headers is not self._shown:
            self._show()
        return self._transport.handle(request)

    async def _handle_renewing(self, request: Request) -> Response:
        if self._credentials.is_stale:
            await self._renew(self._credentials.headers)
        used = self._show()
        response = await self._transport.handle(request)
        if response.status == _UNAUTHORIZED and await self._renew(used):
            self._show()
            response = await self._transport.handle(request)
        return response

    def _show(self) -> Mapping[str, str]:
        """Send the current credentials with the following requests."""
        headers = self._credentials.headers
        if headers is not self._shown:
            self._transport.introduce((*headers.items(), *self._impersonated))
            self._shown = headers
        return headers

    async def _renew(self, used: Mapping[str, str]) -> bool:
        """Whether the credentials differ from those that were used; concurrent callers share one renewal."""
        async with self._renewing:
            if self._credentials.headers != used and not self._credentials.is_stale:
                return True
            try:
                changed = await self._credentials.renew()
            except KubeconfigError as error:
                raise NoAccess(str(error)) from None
            if changed:
                self._transport.close_idle()
            return changed
