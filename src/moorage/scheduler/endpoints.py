"""What a live scheduler serves: routes, authentication and authorization, and the clients for these."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from random import Random

from moorage.api.manifests import utc_now
from moorage.client.client import Client
from moorage.client.connect import connected
from moorage.client.credentials import Access
from moorage.client.request_observer import RequestObserver
from moorage.clock import Clock
from moorage.config.types import SchedulerConfiguration
from moorage.emulation.kubernetes_version import KubernetesVersion
from moorage.http.errors import ConnectionFailed, RequestError
from moorage.http.transport import Request, Response
from moorage.klog import Logger
from moorage.scheduler.attempt_history import AttemptHistory
from moorage.scheduler.debugging import cache_view, differences, queue_view
from moorage.scheduler.inspection import inspection_routes, shadow_routes
from moorage.scheduler.scheduler import Scheduler
from moorage.scheduler.shadow.report import ShadowReport
from moorage.services import responses
from moorage.services.client_certificates import CertificateOptions, ClientCertificates
from moorage.services.cpu_profile import profile_routes
from moorage.services.delegation import CACHE_SECONDS, OPEN_PATHS, Authentication, Authorization
from moorage.services.loop_thread import LoopHandlers
from moorage.services.metrics import Metrics
from moorage.services.private_reads import PrivateReads
from moorage.services.responses import Handler
from moorage.services.serving import (
    Endpoints,
    SecureServer,
    ServingOptions,
    config_routes,
    metric_routes,
    verbosity_routes,
)
from moorage.services.zpages import flagz_routes, statusz_routes

log = Logger(__name__)

_REVIEW_QPS, _REVIEW_BURST = 200.0, 400

FindAccess = Callable[[Path | None], Access]
"""Finds the API server of a kubeconfig; without one, the API server that pods are scheduled for."""
Observe = Callable[[Access], RequestObserver]
"""Makes the observer of the requests to a server."""


@dataclass(frozen=True, slots=True)
class AccessOptions:
    """How requests are authenticated and authorized."""

    authentication_kubeconfig: Path | None = None
    authorization_kubeconfig: Path | None = None
    """Where to send reviews; None: to the API server that pods are scheduled for."""
    certificates: CertificateOptions = field(default_factory=CertificateOptions)
    token_seconds: float = CACHE_SECONDS
    allowed_seconds: float = CACHE_SECONDS
    denied_seconds: float = CACHE_SECONDS
    """How long review results are cached, in seconds."""
    open_paths: Sequence[str] = OPEN_PATHS
    page_token: str = ""
    """The token with which this process's page reads queue, attempts and metrics; empty: there is none."""


@asynccontextmanager
async def served(
    routes: Mapping[str, Handler],
    serving: ServingOptions,
    options: AccessOptions,
    find: FindAccess,
    metrics: Metrics,
    observe: Observe,
    clock: Clock,
    random: Random,
    user_agent: str,
) -> AsyncIterator[None]:
    """Serves requests within the context; ServingError if that is impossible."""
    async with (
        _reviewer(find(options.authentication_kubeconfig), observe, clock, user_agent) as authenticator,
        _reviewer(find(options.authorization_kubeconfig), observe, clock, user_agent) as authorizer,
    ):
        certificates = ClientCertificates(options.certificates, metrics.client_certificate_seconds)
        authentication = Authentication(
            authenticator, clock, random, metrics, certificates, token_seconds=options.token_seconds
        )
        authorization = Authorization(
            authorizer,
            clock,
            random,
            metrics,
            options.open_paths,
            allowed_seconds=options.allowed_seconds,
            denied_seconds=options.denied_seconds,
        )
        private_reads = PrivateReads(options.page_token)
        endpoints = Endpoints(routes, authentication, authorization, private_reads)
        server = SecureServer(endpoints, serving)
        if not options.certificates.tolerates_failure:
            await certificates.load_authorities(authenticator)
        server.tls.trust(certificates.authorities)
        certificates.on_change = server.tls.trust
        following = asyncio.ensure_future(certificates.keep_updated(authenticator, clock))
        running = asyncio.ensure_future(server.serve())
        try:
            await server.listens()
            host = f"[{serving.bind_address}]" if ":" in serving.bind_address else serving.bind_address
            log.infof(0, f"Serving securely on {host}:{server.port}")
            yield
        finally:
            following.cancel()
            server.stop()
            await running


@asynccontextmanager
async def _reviewer(access: Access, observe: Observe, clock: Clock, user_agent: str) -> AsyncIterator[Client]:
    """A client for token and access reviews."""
    async with connected(
        access,
        qps=_REVIEW_QPS,
        burst=_REVIEW_BURST,
        user_agent=user_agent,
        clock=clock,
        observer=observe(access),
    ) as client:
        yield client


def scheduler_routes(
    scheduler: Scheduler,
    client: Client,
    metrics: Metrics,
    config: Callable[[], SchedulerConfiguration],
    is_leading: Callable[[], bool],
    read_gauges: Callable[[], None],
    handlers: LoopHandlers,
    clock: Clock,
    history: AttemptHistory | None,
    report: ShadowReport | None,
) -> dict[str, Handler]:
    """Metrics, the configuration in force, the scheduler's cache, queue and attempts, and CPU profiles.

    handlers: runs handlers that read the scheduler's state in the scheduler's loop.
    history: the remembered attempts; None: none are.
    report: the counts of shadow mode; None: this is not shadow mode.
    """
    shown = metric_routes(metrics, scheduler.pods, is_leading)
    all_metrics = shown["/metrics"]

    async def fresh_metrics(request: Request) -> Response:
        read_gauges()
        return await all_metrics(request)

    async def cache(request: Request) -> Response:
        try:
            found = [str(each) for each in await differences(scheduler, client)]
        except (RequestError, ConnectionFailed) as error:
            found = [f"not compared: {error}"]
        return responses.document({**cache_view(scheduler.cache), "differences": found})

    async def queue(request: Request) -> Response:
        return responses.document(queue_view(scheduler.queue))

    in_loop = {
        "/metrics": fresh_metrics,
        "/metrics/resources": shown["/metrics/resources"],
        "/debug/cache": cache,
        "/debug/queue": queue,
        **inspection_routes(scheduler.queue, history, clock),
        **({} if report is None else shadow_routes(report)),
        **(profile_routes(clock) if config().enable_profiling else {}),
    }
    return {
        **shown,
        **{path: handlers.in_loop(handler) for path, handler in in_loop.items()},
        **config_routes(config, metrics.version),
        **(verbosity_routes() if config().enable_profiling else {}),
    }


def page_routes(
    version: KubernetesVersion, flags: Mapping[str, str], paths: Sequence[str], started: datetime
) -> dict[str, Handler]:
    """`/flagz` and `/statusz`, each if its feature gate is enabled."""
    pages = flagz_routes(flags) if version.gates.enabled["ComponentFlagz"] else {}
    if version.gates.enabled["ComponentStatusz"]:
        pages |= statusz_routes([*paths, *pages], version, started, utc_now)
    return pages
