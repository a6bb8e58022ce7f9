"""The page's server: on loopback, until it is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from moorage.http.server import HttpServer, listen
from moorage.services.responses import Handler
from moorage.ui.application import Application
from moorage.ui.session import Session
from moorage.ui.sources.source import Source

ADDRESS: Final = "127.0.0.1"
DEFAULT_PORT: Final = 6480


class PageServer:
    """Serves a source; ServingError if it cannot listen. token: empty for a random one."""

    def __init__(
        self, source: Source, port: int, token: str = "", routes: Mapping[str, Handler] | None = None
    ) -> None:
        self._listener = listen(ADDRESS, port)
        self.port: int = self._listener.getsockname()[1]
        self._session = Session(self.port, token)
        self._source = source
        self._server = HttpServer(Application(source, self._session, routes), None)

    @property
    def url(self) -> str:
        """The address to open, with the token."""
        return f"http://{ADDRESS}:{self.port}/?token={self._session.token}"

    async def serve(self, listening: Callable[[], None]) -> None:
        """Follow the source and answer requests until `stop`.

        listening: called once requests are answered.
        """
        following = asyncio.ensure_future(self._source.run())
        serving = asyncio.ensure_future(self._server.serve(self._listener))
        try:
            await self._server.listens()
            listening()
            following.add_done_callback(self._following_ended)
            await serving
        finally:
            self.stop()
            following.cancel()
            await asyncio.gather(following, serving, return_exceptions=True)
        if not following.cancelled():
            following.result()

    def _following_ended(self, following: asyncio.Future[None]) -> None:
        """A file has been read, which is no reason to end; a failure is."""
        if not following.cancelled() and following.exception() is not None:
            self.stop()

    def stop(self) -> None:
        """End all streams and close."""
        self._server.stop()
