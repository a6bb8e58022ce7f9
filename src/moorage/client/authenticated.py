"""Saying who asks: every request with the credentials of the moment."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from moorage.http.client import HttpTransport
from moorage.http.errors import KubeconfigError, NoAccess
from moorage.http.transport import Request, Response

_UNAUTHORIZED: Final = 401


class Credentials(Protocol):
    """What tells the server who asks; may have to be renewed."""

    @property
    def headers(self) -> Mapping[str, str]:
        """What is sent with each request."""

    @property
    def is_stale(self) -> bool:
        """Whether they should be renewed before they are used."""

    async def renew(self) -> bool:
        """Get new ones; whether they differ. KubeconfigError if that is impossible."""


class Authenticated:
    """A server's transport with credentials; `impersonated` are headers that ask to act as somebody else."""

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

    async def handle(self, request: Request) -> Response:
        """The answer; who is not known to the server tries once more with new credentials."""
        if self._credentials.is_stale:
            await self._renew(self._credentials.headers)
        used = self._show()
        response = await self._transport.handle(request)
        if response.status == _UNAUTHORIZED and await self._renew(used):
            self._show()
            response = await self._transport.handle(request)
        return response

    def _show(self) -> Mapping[str, str]:
        """Have the credentials of the moment sent with what is asked next."""
        headers = self._credentials.headers
        if headers is not self._shown:
            self._transport.introduce((*headers.items(), *self._impersonated))
            self._shown = headers
        return headers

    async def _renew(self, used: Mapping[str, str]) -> bool:
        """Whether there are others than those that were used; many may ask at once, one gets them."""
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
