"""The scheduler process: serving, leader election, scheduling, shutdown.

Health endpoints are served first, then informers are started; pods are scheduled only while this process is
the leader. A lost lease ends the process at once, from the thread that noticed: no work in flight may be
completed. SIGTERM shuts down in order: no new cycles, in-flight bindings are completed, events are written,
the lease is released.

Besides the scheduling loop there are threads that do not depend on it: leader election, the HTTPS server,
signals, and a watchdog. A loop that is blocked for the renew deadline is considered stuck: with leader
election the process then ends, so that another one can lead; without, `/livez` fails and the kubelet restarts
it.
"""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
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
from moorage.client.exec_credentials import ExecCredentials
from moorage.client.request_observer import RequestObserver
from moorage.client.waiting import sleep
from moorage.clock import Clock, LoopClock
from moorage.config.types import LeaderElection as ElectionConfiguration
from moorage.config.types import SchedulerConfiguration
from moorage.emulation.kubernetes_version import DEFAULT_VERSION, KubernetesVersion
from moorage.framework.loading.plugin_discovery import DiscoveredPlugins
from moorage.framework.loading.registry import Registry, RegistryError
from moorage.framework.runtime.slow_plugins import SLOW_SECONDS
from moorage.http.errors import ConnectionFailed, RequestError
from moorage.klog import Logger
from moorage.queue.scheduling_queue import MAX_UNSCHEDULABLE_SECONDS
from moorage.scheduler.attempt_history import MAX_ATTEMPTS_OF_POD, MAX_BYTES, AttemptHistory
from moorage.scheduler.debugging import cache_view, differences, queue_view
from moorage.scheduler.endpoints import AccessOptions, page_routes, scheduler_routes, served
from moorage.scheduler.observers import MetricsObserver, Observer, Observers, read_gauges
from moorage.scheduler.recorder import Recorder
from moorage.scheduler.recording_file import RecordingFile
from moorage.scheduler.scheduler import Scheduler
from moorage.scheduler.shadow.report import ShadowReport, ShadowStatus
from moorage.scheduler.shadow.scheduler import ShadowScheduler
from moorage.services.election_thread import ElectionThread
from moorage.services.health import election_check, health_routes, loop_check, shutdown_check, sync_check
from moorage.services.leader_election import LeaderElector, new_identity
from moorage.services.loop_thread import LoopHandlers, entered_in_thread
from moorage.services.loop_watchdog import LoopWatchdog
from moorage.services.metrics import MetricOptions, Metrics
from moorage.services.request_metrics import FromThread, MeasuredPlugin, MeasuredRequests
from moorage.services.responses import Handler
from moorage.services.serving import ServingOptions
from moorage.services.termination import end_process, on_termination
from moorage.services.timing import MonotonicClock
from moorage.version import __version__

log = Logger(__name__)

DRAIN_SECONDS: Final = 20.0
"""Grace period for in-flight bindings and events at shutdown, in seconds; less than the process's own."""
_SETTLE_SECONDS: Final = 1.0
"""Period after which observed metric values are added up, in seconds."""
_GATHER_EVENTS_SECONDS: Final = 0.016
"""Batch window for events, in seconds: batched writes cost half as much, and people read events."""

Reload = Callable[[], DiscoveredPlugins]


@dataclass(frozen=True, slots=True)
class ShadowOptions:
    """What shadow mode reports, and where."""

    report: Path | None = None
    """The file to which a line is appended for each pod."""
    show: Callable[[ShadowStatus, bool], None] = lambda status, is_final: None
    """Called each second, and at the end."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of a scheduler process."""

    config: SchedulerConfiguration
    reload: Reload
    """Reads the configuration and finds its plugins again; InputError or RegistryError if it is invalid."""
    master: str = ""
    """The API server's address, if not the kubeconfig's."""
    serving: ServingOptions | None = None
    """None: nothing is served."""
    access: AccessOptions = field(default_factory=AccessOptions)
    max_unschedulable_seconds: float = MAX_UNSCHEDULABLE_SECONDS
    slow_plugin_seconds: float = SLOW_SECONDS
    """Plugin calls that block the scheduler for longer are logged; zero: none."""
    metrics: MetricOptions = field(default_factory=MetricOptions)
    version: KubernetesVersion = DEFAULT_VERSION
    """The version to emulate, with its feature gates."""
    http_pipelining: bool = False
    """Whether bindings, events and other writes share connections to the API server."""
    credentials_over_http: bool = False
    """Whether tokens and passwords are sent to API servers without TLS."""
    flags: Mapping[str, str] = field(default_factory=dict)
    """All flags and their values, for `/flagz`."""
    max_attempts_of_pod: int = MAX_ATTEMPTS_OF_POD
    """Number of attempts that are remembered of a pod; zero: none."""
    max_attempt_bytes: int = MAX_BYTES
    """Size of all remembered attempts."""
    record: Path | None = None
    """The file to which attempts are recorded, with all changes of the cluster."""
    shadow: ShadowOptions | None = None
    """Whether to compare decisions with another scheduler's, and bind nothing."""
    seed: int | None = None
    """Seed of the choice among equally good nodes."""


class LiveScheduler:
    """A scheduler process; `config` is the configuration in force."""

    def __init__(self, options: RunOptions, registry: Registry) -> None:
        self._options = options
        self._loop = asyncio.get_running_loop()
        self.config = options.config
        self._started = utc_now()
        self._metrics = Metrics(options=options.metrics, version=options.version)
        self._clock = LoopClock()
        self._random = Random(options.seed)
        self._access = server_access(options)
        self._plugin = MeasuredPlugin(self._metrics)
        if isinstance(self._access.credentials, ExecCredentials):
            self._access.credentials.observer = self._plugin
        self._requests = _measured(self._metrics, self._access)
        self._registry = registry
        self._history = self._new_history()
        self._recorder = self._new_recorder()
        shadow = options.shadow
        self._report = None if shadow is None else ShadowReport(self._metrics, shadow.report)
        self._leads = asyncio.Event()
        self._ending = asyncio.Event()
        self._reloading: asyncio.Task[None] | None = None
        self._election: ElectionThread | None = None
        if self.config.leader_election.leader_elect:
            self._election = ElectionThread(self._election_client, self._new_election, _end_without_lease)

    def _new_history(self) -> AttemptHistory | None:
        """None if attempts are not to be remembered, or cannot be read because nothing is served."""
        options = self._options
        if options.serving is None or options.max_attempts_of_pod <= 0 or options.shadow is not None:
            return None
        return AttemptHistory(
            self._clock, max_attempts=options.max_attempts_of_pod, max_bytes=options.max_attempt_bytes
        )

    def _new_recorder(self) -> Recorder | None:
        options = self._options
        if options.record is None:
            return None
        whose = "moorage" if options.shadow is None else "another scheduler, seen by moorage"
        reference = f"{whose} {__version__}, as kube-scheduler v{options.version.number}"
        return Recorder(RecordingFile(options.record, options.config, options.version, reference))

    async def run(self) -> None:
        """Schedule until SIGTERM; errors before that are raised."""
        async with (
            self._connected("scheduler") as client,
            self._connected("scheduler-events", _GATHER_EVENTS_SECONDS) as events_client,
            AsyncExitStack() as serving,
        ):
            scheduler = self._new_scheduler(client, events_client)
            self._listen_to_signals(scheduler, client)
            watchdog = LoopWatchdog(
                _stall_seconds(self.config.leader_election),
                self._on_stall,
                lambda: scheduler.cycles_begun,
            )
            await serving.enter_async_context(watchdog.watching(self._clock))
            if self._options.serving is not None:
                routes = self._routes(scheduler, client, watchdog)
                serve = partial(self._serve, routes, self._options.serving)
                await serving.enter_async_context(entered_in_thread("serving", serve))
            settling = asyncio.ensure_future(self._settle_metrics())
            try:
                await self._lead_and_schedule(scheduler)
            finally:
                settling.cancel()
                self._show_report(is_final=True)
                if self._report is not None:
                    self._report.close()
                if self._recorder is not None:
                    self._recorder.close()

    def _new_scheduler(self, client: Client, events_client: Client) -> Scheduler:
        make: Callable[..., Scheduler] = Scheduler
        if self._report is not None:
            make = partial(ShadowScheduler, report=self._report, recorder=self._recorder)
        return make(
            client,
            self.config,
            self._registry,
            self._clock,
            self._random,
            socket.gethostname(),
            events_client=events_client,
            observer=self._observer(),
            max_unschedulable_seconds=self._options.max_unschedulable_seconds,
            slow_plugin_seconds=self._options.slow_plugin_seconds,
            version=self._options.version,
        )

    def _observer(self) -> Observer:
        metrics = MetricsObserver(self._metrics)
        attempts = (self._history, self._recorder) if self._report is None else ()
        others = [each for each in attempts if each is not None]
        return Observers(metrics, *others) if others else metrics

    async def _settle_metrics(self) -> None:
        while True:
            await sleep(self._clock, _SETTLE_SECONDS)
            self._metrics.settle()
            self._show_report()

    def _show_report(self, *, is_final: bool = False) -> None:
        if self._report is not None and self._options.shadow is not None:
            self._options.shadow.show(self._report.status, is_final)

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
            log.info(0, "Shutting down: waiting for in-flight bindings")
            await scheduler.drain(DRAIN_SECONDS)
        finally:
            ending.cancel()
            scheduling.cancel()
            await asyncio.wait((scheduling,))  # The lease is released in any case.
            if self._election is not None and electing is not None:
                self._election.stop()
                await electing
        log.info(0, "Requested to terminate, exiting")

    async def _wait_for_end(self) -> None:
        await self._ending.wait()

    async def _schedule(self, scheduler: Scheduler) -> None:
        if self.config.delay_cache_until_active:
            await self._leads.wait()
        await scheduler.run(self._leads)

    # -- the API server

    @asynccontextmanager
    async def _connected(self, name: str, gather_seconds: float = 0.0) -> AsyncIterator[Client]:
        """A client with a rate limit of its own: events do not delay bindings."""
        connection = self.config.client_connection
        self._metrics.transports_made.labels("miss").inc()  # Each has its own connections.
        self._metrics.transports.inc()
        async with connected(
            self._access,
            qps=connection.qps,
            burst=connection.burst,
            user_agent=_agent(name),
            pipelining=self._options.http_pipelining,
            gather_seconds=gather_seconds,
            observer=self._requests,
            before_writing=self._check_lease if self._election is not None else None,
        ) as client:
            yield client
        self._metrics.transports.inc(-1)

    # -- leading

    def _check_lease(self) -> None:
        """End the process if its lease has ended: before each write, as it may just have been resumed.

        The election's thread may not have run yet since then.
        """
        if self._election is not None and self._election.is_former_leader:
            _end_without_lease()

    @asynccontextmanager
    async def _election_client(self) -> AsyncIterator[Client]:
        # Credentials belong to one loop: the election's has its own.
        access = server_access(self._options)
        observer = self._measured_from_thread(access)
        async with connected(access, user_agent=_agent("leader-election"), observer=observer) as client:
            yield client

    def _measured_from_thread(self, access: Access) -> RequestObserver:
        """Counts requests made in another thread."""
        return FromThread(_measured(self._metrics, access), self._loop)

    def _new_election(self, client: Client, clock: Clock) -> LeaderElector:
        return LeaderElector(
            client,
            self.config.leader_election,
            clock,
            Random(),
            new_identity(),
            component=self.config.profiles[0].scheduler_name,
            metrics=self._metrics,
        )

    # -- serving

    def _serve(
        self, routes: Mapping[str, Handler], serving: ServingOptions
    ) -> AbstractAsyncContextManager[None]:
        """Serves requests; entered in a thread, whose loop has its own credentials and clock."""
        return served(
            routes,
            serving,
            self._options.access,
            partial(server_access, self._options),
            self._metrics,
            self._measured_from_thread,
            MonotonicClock(),
            Random(),
            _agent("scheduler-serving"),
        )

    def _routes(self, scheduler: Scheduler, client: Client, watchdog: LoopWatchdog) -> dict[str, Handler]:
        election = election_check(self._election.check) if self._election is not None else None

        def read() -> None:
            read_gauges(self._metrics, scheduler)
            self._plugin.read()

        routes = {
            **health_routes(
                election,
                loop_check(lambda: watchdog.problem),
                sync_check(lambda: scheduler.is_synced),
                shutdown_check(self._ending.is_set),
                self._metrics,
            ),
            **scheduler_routes(
                scheduler,
                client,
                self._metrics,
                lambda: self.config,
                self._leads.is_set,
                read,
                LoopHandlers(self._loop, watchdog),
                self._clock,
                self._history,
                self._report,
            ),
        }
        return {**routes, **page_routes(self._options.version, self._options.flags, [*routes], self._started)}

    # -- signals

    def _listen_to_signals(self, scheduler: Scheduler, client: Client) -> None:
        loop = asyncio.get_running_loop()
        showing: set[asyncio.Task[None]] = set()

        def show() -> None:
            task = asyncio.ensure_future(_show(scheduler, client))
            showing.add(task)
            task.add_done_callback(showing.discard)

        on_termination(self._ending.set)
        loop.add_signal_handler(signal.SIGHUP, self._reload, scheduler)
        loop.add_signal_handler(signal.SIGUSR2, show)

    def _on_stall(self, problem: str, stack: str) -> None:
        """Called outside the loop, which is stuck.

        The lease is not released: the loop may resume and bind pods until the process has ended.
        """
        if self._election is not None:
            end_process("Scheduling loop is stuck, giving up leadership", err=problem, stack=stack)
        log.error(problem, "Scheduling loop is stuck", stack=stack)

    def _reload(self, scheduler: Scheduler) -> None:
        """Reload the configuration file; a later reload replaces one that is running."""
        if self._reloading is not None:
            self._reloading.cancel()
        self._reloading = asyncio.ensure_future(self._reconfigure(scheduler))

    async def _reconfigure(self, scheduler: Scheduler) -> None:
        """Continue with the profiles of the current file; with the old ones if it is invalid."""
        try:
            config, registry = self._options.reload()
            if self._recorder is not None:
                log.warning("The recording ends here: a recording has one configuration")
                self._recorder.close()
            await scheduler.reconfigure(config, registry)
        except (InputError, RegistryError) as error:
            problem = "; ".join(str(error).splitlines())
            log.error(problem, "Failed to reload the configuration; keeping the current one")
            return
        # Client and leader election settings are fixed for the process's lifetime.
        self.config = msgspec.structs.replace(
            config,
            leader_election=self.config.leader_election,
            client_connection=self.config.client_connection,
        )
        names = [profile.scheduler_name for profile in config.profiles]
        log.info(0, "Reloaded the configuration", profiles=names)


def server_access(options: RunOptions, kubeconfig: Path | None = None) -> Access:
    """The API server of a kubeconfig; without one, the API server that pods are scheduled for."""
    own, master = options.config.client_connection.kubeconfig, ""
    if kubeconfig is None:
        kubeconfig, master = Path(own) if own else None, options.master
    return find_access(kubeconfig, master, credentials_over_http=options.credentials_over_http)


async def _show(scheduler: Scheduler, client: Client) -> None:
    """Log the scheduler's cache and queue, and differences to the API server."""
    log.info(0, "Dump of cached NodeInfo", nodes=msgspec.to_builtins(cache_view(scheduler.cache)))
    log.info(0, "Dump of scheduling queue", pods=msgspec.to_builtins(queue_view(scheduler.queue)))
    log.info(3, "Cache comparer started")
    try:
        found = await differences(scheduler, client)
    except (RequestError, ConnectionFailed) as error:
        log.error(error, "Failed to compare the cache with the API server")
        return
    for each in found:
        log.warning("Cache mismatch", difference=each)
    if not found:
        log.info(0, "Cache matches the API server")
    log.info(3, "Cache comparer finished")


def _measured(metrics: Metrics, access: Access) -> MeasuredRequests:
    return MeasuredRequests(metrics, urlsplit(access.endpoint.url).netloc)


def _agent(name: str) -> str:
    return f"moorage/{__version__} {name}"


def _stall_seconds(election: ElectionConfiguration) -> float:
    """Maximum time of one loop iteration; durations are validated only with leader election."""
    return election.renew_deadline if election.renew_deadline > 0 else ElectionConfiguration().renew_deadline


def _end_without_lease() -> None:
    """The lease is lost: no work in flight may be completed."""
    end_process("Leaderelection lost")
