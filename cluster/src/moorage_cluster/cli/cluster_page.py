"""The page of `moorage up`, and the port on which the scheduler tells it of queue, attempts and metrics."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from random import Random
from typing import Final

from moorage.cli.page_process import PageProcess
from moorage.client.client import Client
from moorage.client.waiting import sleep
from moorage.clock import LoopClock
from moorage.emulation.kubernetes_version import KubernetesVersion
from moorage.http.server import HttpServer, listen
from moorage.http.transport import Request, Response
from moorage.scheduler.attempt_history import AttemptHistory
from moorage.scheduler.inspection import inspection_routes
from moorage.scheduler.observers import MetricsObserver, Observer, Observers, read_gauges
from moorage.scheduler.scheduler import Scheduler
from moorage.services.delegation import Authentication, Authorization
from moorage.services.metrics import Metrics
from moorage.services.private_reads import PrivateReads, new_token
from moorage.services.request_metrics import MeasuredRequests
from moorage.services.responses import Handler
from moorage.services.serving import Endpoints, metric_routes
from moorage_cluster.cli.local_server import server_url
from moorage_cluster.local import LocalCluster

_ADDRESS: Final = "127.0.0.1"
_IN_PROCESS: Final = "in-process"
"""The label `host` of requests: the API server is called in the same process, without a connection."""
_SETTLE_SECONDS: Final = 1.0
"""Period after which observed metric values are added up, in seconds."""


class ClusterPage:
    """Observes the scheduler of a cluster, and shows both in a page."""

    def __init__(self, process: PageProcess, version: KubernetesVersion) -> None:
        self._process = process
        self._clock = LoopClock()
        self._metrics = Metrics(version=version)
        self._history = AttemptHistory(self._clock)
        self.observer: Observer = Observers(MetricsObserver(self._metrics), self._history)
        self.requests = MeasuredRequests(self._metrics, _IN_PROCESS)

    @asynccontextmanager
    async def shown(self, cluster: LocalCluster) -> AsyncIterator[None]:
        """Shows a cluster that is up, while the context lasts."""
        if cluster.scheduler is None:
            with self._process.running():
                yield
            return
        token = new_token()
        endpoints = self._endpoints(cluster.scheduler, cluster.client, token)
        with listen(_ADDRESS, 0) as listener:
            server = HttpServer(endpoints, cluster.server.certificate.ssl_context())
            serving = asyncio.ensure_future(server.serve(listener))
            settling = asyncio.ensure_future(self._settle())
            url = server_url(_ADDRESS, listener.getsockname()[1])
            try:
                await server.listens()
                with replace(self._process, scheduler=url, token=token).running():
                    yield
            finally:
                settling.cancel()
                server.stop()
                await serving

    def _endpoints(self, scheduler: Scheduler, client: Client, token: str) -> Endpoints:
        """For the page, which has the token, and for those whom the API server authorizes."""
        return Endpoints(
            self._routes(scheduler),
            Authentication(client, self._clock, Random(), self._metrics),
            Authorization(client, self._clock, Random(), self._metrics),
            PrivateReads(token),
        )

    def _routes(self, scheduler: Scheduler) -> dict[str, Handler]:
        all_metrics = metric_routes(self._metrics, scheduler.pods, lambda: True)["/metrics"]

        async def fresh_metrics(request: Request) -> Response:
            read_gauges(self._metrics, scheduler)
            return await all_metrics(request)

        inspection = inspection_routes(scheduler.queue, self._history, self._clock)
        return {"/metrics": fresh_metrics, **inspection}

    async def _settle(self) -> None:
        while True:
            await sleep(self._clock, _SETTLE_SECONDS)
            self._metrics.settle()
