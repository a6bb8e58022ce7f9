"""An API server, or a whole cluster, in a thread of this process: for tests of Kubernetes' clients."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from moorage.http.server import HttpServer, listen
from moorage_cluster.apiserver.embedded import EmbeddedServer, Settings
from moorage_cluster.cli.local_server import advertise, server_url, write_admin_kubeconfig
from moorage_cluster.local import LocalCluster, LocalSettings

_ADDRESS: Final = "127.0.0.1"
_START_SECONDS: Final = 30.0
"""Time limit for a server to listen and for nodes to be registered, in seconds."""
_GRACE_SECONDS: Final = 0.1
"""Grace period for open connections at the end, in seconds: clients of a test that is over do not answer."""
_STOP_SECONDS: Final = 30.0
"""Time limit for a server to end, in seconds."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of a running API server, and the credentials of its administrator."""

    url: str
    kubeconfig: Path
    """A kubeconfig file of an administrator, for kubectl and client libraries."""
    token: str = field(repr=False)
    """The administrator's bearer token."""


class BackgroundCluster:
    """A cluster that runs while its context is entered. All of it ends with the context.

    folder: where the kubeconfig is written.
    nodes: number of simulated nodes, with controllers and the scheduler; None: the API server alone.
    """

    def __init__(self, folder: Path, nodes: int | None = None) -> None:
        self._kubeconfig = folder / "kubeconfig"
        self._nodes = nodes
        self._ready: Future[Endpoint] = Future()
        self._thread = threading.Thread(target=self._run, name="moorage-cluster", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped: asyncio.Event | None = None

    def __enter__(self) -> Endpoint:
        self._thread.start()
        return self._ready.result(_START_SECONDS)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._loop is not None and self._stopped is not None:
            self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            if self._ready.done():
                raise
            self._ready.set_exception(error)

    async def _serve(self) -> None:
        self._loop, self._stopped = asyncio.get_running_loop(), asyncio.Event()
        with listen(_ADDRESS, 0) as listener:
            parts = _Parts(self._nodes)
            try:
                url = server_url(_ADDRESS, listener.getsockname()[1])
                write_admin_kubeconfig(self._kubeconfig, url, parts.server)
                advertise(parts.server, listener)
                context = parts.server.certificate.ssl_context()
                server = HttpServer(parts.server.api, context, grace_seconds=_GRACE_SECONDS)
                serving = asyncio.ensure_future(server.serve(listener))
                await server.listens()
                async with parts:
                    self._ready.set_result(Endpoint(url, self._kubeconfig, parts.server.token))
                    await self._stopped.wait()
                server.stop()
                await serving
            finally:
                parts.server.close()


class _Parts:
    """The components behind the HTTP server, which run while its context is entered."""

    def __init__(self, nodes: int | None) -> None:
        self._cluster = None if nodes is None else LocalCluster(LocalSettings(nodes))
        self.server = EmbeddedServer(Settings()) if self._cluster is None else self._cluster.server
        self._running: asyncio.Future[None] | None = None

    async def __aenter__(self) -> Self:
        if self._cluster is None:
            self.server.start()
        else:
            self._running = asyncio.ensure_future(self._cluster.run())
            await self._cluster.prepare()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait((self._running,))
