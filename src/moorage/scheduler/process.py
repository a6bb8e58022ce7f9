"""The live scheduler as a process: what it serves, when it schedules, how it ends.

Probes are answered first, then the cluster is followed; pods are scheduled only once this process leads. A
lost lease ends the process at once, from the thread that noticed: whatever the loop was doing must not
be finished. A wish to end (SIGTERM) is granted in order: no new cycles, bindings under way are finished,
events are written, the lease is given back.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final
from urllib.parse import urlsplit

import msgspec

from moorage.api.decode import InputError
from moorage.api.manifests import utc_now
from moorage.client.client import Client
from moorage.client.connect import connected
from moorage.client.credentials import Access, find_access
from moorage.client.errors import ConnectionFailed, RequestError
from moorage.clock import Clock, LoopClock
from moorage.config.types import SchedulerConfiguration
from moorage.framework.registry import Registry, RegistryError
from moorage.queue.scheduling_queue import MAX_UNSCHEDULABLE_SECONDS
from moorage.scheduler.debugging import cache_view, differences, queue_view
from moorage.scheduler.observers import MetricsObserver, read_gauges
from moorage.scheduler.scheduler import Scheduler
from moorage.services import answers
from moorage.services.answers import Handler
from moorage.services.delegation import OPEN_PATHS, Authentication, Authorization
from moorage.services.election_thread import ElectionThread
from moorage.services.health import election_check, health_routes, shutdown_check, sync_check
from moorage.services.leader_election import LeaderElection, new_identity
from moorage.services.measured import Measured
from moorage.services.metrics import Metrics
from moorage.services.serving import Endpoints, SecureServer, ServingOptions, config_routes, metric_routes
from moorage.transport import Request, Response, Transport
from moorage.version import __version__

log = logging.getLogger(__name__)

DRAIN_SECONDS: Final = 20.0
"""So long what is under way may take once the process is to end."""
LOST: Final = 1
"""Exit status of a process that leads no more, or that is asked to end twice."""

Reload = Callable[[], SchedulerConfiguration]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a scheduler is to run."""

    config: SchedulerConfiguration
    reload: Reload
    """Reads the configuration anew; InputError if it is wrong."""
    master: str = ""
    """The API server's address, if not the kubeconfig's."""
    serving: ServingOptions | None = None
    """None: nothing is served."""
    open_paths: Sequence[str] = OPEN_PATHS
    max_unschedulable_seconds: float = MAX_UNSCHEDULABLE_SECONDS


class LiveScheduler:
    """One process that schedules; `config` is the configuration in force."""

    def __init__(self, options: RunOptions, registry: Registry) -> None:
        self._options = options
        self.config = options.config
        self._metrics = Metrics()
        self._clock = LoopClock()
        self._random = Random()
        self._access = self._find_access()
        self._registry = registry
        self._leads = asyncio.Event()
        self._ending = asyncio.Event()
        self._election: ElectionThread | None = None
        if self.config.leader_election.leader_elect:
            self._election = ElectionThread(self._election_client, self._new_election, _end_at_once)

    async def run(self) -> None:
        """Schedule until asked to end; what goes wrong before that is raised."""
        async with (
            self._connected("scheduler") as client,
            self._connected("scheduler-events") as events_client,
            connected(self._access, user_agent=_agent("scheduler-serving")) as reviewer,
        ):
            scheduler = Scheduler(
                client,
                self.config,
                self._registry,
                self._clock,
                utc_now,
                self._random,
                socket.gethostname(),
                events_client=events_client,
                observer=MetricsObserver(self._metrics),
                max_unschedulable_seconds=self._options.max_unschedulable_seconds,
            )
            if self.config.extenders:
                log.warning("extenders are configured; this version does not call them")
            self._listen_to_signals(scheduler, reviewer)
            server = self._new_server(scheduler, reviewer)
            async with _served(server):
                await self._lead_and_schedule(scheduler)

    async def _lead_and_schedule(self, scheduler: Scheduler) -> None:
        scheduling = asyncio.ensure_future(self._schedule(scheduler))
        tasks: set[asyncio.Future[None]] = {scheduling}
        electing: asyncio.Future[None] | None = None
        if self._election is None:
            self._leads.set()
        else:
            electing = asyncio.ensure_future(self._election.run(self._leads.set, lambda: None))
            tasks.add(electing)
        ending = asyncio.ensure_future(self._wait_for_end())
        try:
            await asyncio.wait((*tasks, ending), return_when=asyncio.FIRST_COMPLETED)
            if not ending.done():
                for task in tasks:
                    if task.done():
                        task.result()
            log.info("asked to end: finishing what is under way")
            await scheduler.drain(DRAIN_SECONDS)
        finally:
            ending.cancel()
            scheduling.cancel()
            await asyncio.wait((scheduling,))  # However it ends, the lease is given back.
            if self._election is not None and electing is not None:
                self._election.stop()
                await electing
        log.info("ended")

    async def _wait_for_end(self) -> None:
        await self._ending.wait()

    async def _schedule(self, scheduler: Scheduler) -> None:
        if self.config.delay_cache_until_active:
            await self._leads.wait()
        await scheduler.run(self._leads)

    # -- the API server

    def _find_access(self) -> Access:
        kubeconfig = self.config.client_connection.kubeconfig
        return find_access(Path(kubeconfig) if kubeconfig else None, self._options.master)

    @asynccontextmanager
    async def _connected(self, name: str) -> AsyncIterator[Client]:
        """A client with a limit of its own: events never keep bindings waiting."""
        connection = self.config.client_connection
        host = urlsplit(self._access.endpoint.url).netloc

        def measured(transport: Transport) -> Transport:
            return Measured(transport, self._metrics, self._clock, host)

        async with connected(
            self._access,
            qps=connection.qps,
            burst=connection.burst,
            user_agent=_agent(name),
            around=measured,
        ) as client:
            yield client

    # -- leading

    @asynccontextmanager
    async def _election_client(self) -> AsyncIterator[Client]:
        # Credentials and their renewal belong to one loop: the election's has its own.
        async with connected(self._find_access(), user_agent=_agent("leader-election")) as client:
            yield client

    def _new_election(self, client: Client, clock: Clock) -> LeaderElection:
        return LeaderElection(
            client,
            self.config.leader_election,
            clock,
            utc_now,
            Random(),
            new_identity(),
            component=self.config.profiles[0].scheduler_name,
            metrics=self._metrics,
        )

    # -- serving

    def _new_server(self, scheduler: Scheduler, reviewer: Client) -> SecureServer | None:
        if self._options.serving is None:
            return None
        metrics, clock, random = self._metrics, self._clock, self._random
        endpoints = Endpoints(
            self._routes(scheduler, reviewer),
            Authentication(reviewer, clock, random, metrics),
            Authorization(reviewer, clock, random, metrics, self._options.open_paths),
        )
        return SecureServer(endpoints, self._options.serving)

    def _routes(self, scheduler: Scheduler, client: Client) -> dict[str, Handler]:
        election = election_check(self._election.check) if self._election is not None else None
        metrics = metric_routes(self._metrics, scheduler.pods, self._leads.is_set)
        all_metrics = metrics["/metrics"]

        async def fresh_metrics(request: Request) -> Response:
            read_gauges(self._metrics, scheduler)
            return await all_metrics(request)

        async def cache(request: Request) -> Response:
            try:
                found = [str(each) for each in await differences(scheduler, client)]
            except (RequestError, ConnectionFailed) as error:
                found = [f"not compared: {error}"]
            return answers.document({**cache_view(scheduler.cache), "differences": found})

        async def queue(request: Request) -> Response:
            return answers.document(queue_view(scheduler.queue))

        return {
            **health_routes(
                election,
                sync_check(lambda: scheduler.is_synced),
                shutdown_check(self._ending.is_set),
                self._metrics,
            ),
            **metrics,
            "/metrics": fresh_metrics,
            **config_routes(lambda: self.config),
            "/debug/cache": cache,
            "/debug/queue": queue,
        }

    # -- signals

    def _listen_to_signals(self, scheduler: Scheduler, client: Client) -> None:
        loop = asyncio.get_running_loop()
        showing: set[asyncio.Task[None]] = set()

        def show() -> None:
            task = asyncio.ensure_future(_show(scheduler, client))
            showing.add(task)
            task.add_done_callback(showing.discard)

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._end)
        loop.add_signal_handler(signal.SIGHUP, self._reload, scheduler)
        loop.add_signal_handler(signal.SIGUSR2, show)

    def _end(self) -> None:
        if self._ending.is_set():
            log.error("asked to end twice: ending at once")
            _exit()
        self._ending.set()

    def _reload(self, scheduler: Scheduler) -> None:
        """Go on with the profiles of the file as it is now; with the old ones if it is wrong."""
        try:
            config = self._options.reload()
            scheduler.reconfigure(config)
        except (InputError, RegistryError) as error:
            log.error("the configuration stays as it is: %s", "; ".join(str(error).splitlines()))
            return
        # How to reach the API server and how to be elected is settled when the process begins.
        self.config = msgspec.structs.replace(
            config,
            leader_election=self.config.leader_election,
            client_connection=self.config.client_connection,
        )
        names = ", ".join(profile.scheduler_name for profile in config.profiles)
        log.info("the configuration is reloaded; profiles: %s", names)


@asynccontextmanager
async def _served(server: SecureServer | None) -> AsyncIterator[None]:
    """Answers requests while the context lasts."""
    if server is None:
        yield
        return
    serving = asyncio.ensure_future(server.serve())
    try:
        await server.listens()
        log.info("serving securely on port %d", server.port)
        yield
    finally:
        server.stop()
        await serving


async def _show(scheduler: Scheduler, client: Client) -> None:
    """Log what the scheduler believes, and where the API server disagrees."""
    for name, view in (("cache", cache_view(scheduler.cache)), ("queue", queue_view(scheduler.queue))):
        log.info("dump of the %s: %s", name, msgspec.json.encode(view).decode())
    try:
        found = await differences(scheduler, client)
    except (RequestError, ConnectionFailed) as error:
        log.warning("the cache could not be compared with the API server: %s", error)
        return
    for each in found:
        log.warning("cache mismatch: %s", each)
    if not found:
        log.info("the cache agrees with the API server")


def _agent(name: str) -> str:
    return f"moorage/{__version__} {name}"


def _end_at_once() -> None:
    """The lease is lost: nothing that is under way may be finished."""
    log.error("leader election lost")
    _exit()


def _exit() -> None:
    for handler in logging.getLogger().handlers:
        handler.flush()
    os._exit(LOST)
