"""One scheduler process in virtual time: election, scheduler, and its end.

The process ends as `moorage run` does: a lost lease ends it at once, and so does a crash. Nothing that it
would still do reaches the API server. Then it is started again with a new identity.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any, Final

from moorage.client.client import Client
from moorage.client.retry import RetryingTransport
from moorage.client.waiting import sleep
from moorage.clock import Clock
from moorage.config.load import parse_config
from moorage.config.types import LeaderElection
from moorage.emulation.kubernetes_version import DEFAULT_VERSION, V1_37, KubernetesVersion
from moorage.framework.loading.registry import Registry
from moorage.http.transport import Request, Transport
from moorage.plugins import default_registry
from moorage.scheduler.observers import Observer
from moorage.scheduler.scheduler import Scheduler
from moorage.services.leader_election import LeaderElector, LostLease
from moorage_cluster.chaos.misbehaving import EXTENDER_SECONDS, EXTENDER_URL, FaultyExtender, Misbehaving
from moorage_cluster.chaos.network import FaultyTransport
from moorage_cluster.chaos.script import Fault, PluginFault, RequestFault, Script, WatchFault

RESTART_SECONDS: Final = 2.0
"""How long after its end a process is started again, in seconds."""
GROUP_GATES: Final = {"GenericWorkload": True}


class Candidate:
    """A scheduler process and those that follow it.

    issued: called with identity, class and request of whatever leaves a process. failed: called with what
    should not have happened. new_observer: what observes the decisions of a process.
    """

    def __init__(
        self,
        number: int,
        script: Script,
        server: Transport,
        token: Callable[[], str],
        clock: Clock,
        injected: Counter[str],
        issued: Callable[[str, str, Request], None],
        failed: Callable[[str], None],
        new_observer: Callable[[Candidate], Observer],
    ) -> None:
        self._number = number
        self._script = script
        self._server = server
        self._token = token
        self._clock = clock
        self._injected = injected
        self._issued = issued
        self._failed = failed
        self._new_observer = new_observer
        self._faults = [each for each in script.faults if _is_of(each, number)]
        self._life = 0
        self._task: asyncio.Task[None] | None = None
        self._network: FaultyTransport | None = None
        self.scheduler: Scheduler | None = None
        """The scheduler of the running process."""
        self.identity = ""

    @property
    def version(self) -> KubernetesVersion:
        """The version that is emulated."""
        return V1_37.with_gates(GROUP_GATES) if self._script.has_groups else DEFAULT_VERSION

    @property
    def elects(self) -> bool:
        """Whether there is an election."""
        return self._script.schedulers > 1

    def start(self) -> None:
        """Start a process; faults happen in its first life only, so that every script ends well."""
        self._life += 1
        self.identity = f"scheduler-{self._number}-{self._life}"
        faults = self._faults if self._life == 1 else []
        self._network = FaultyTransport(
            self._server,
            self._clock,
            faults,
            self._injected,
            partial(self._issued, self.identity),
            self._is_calm,
        )
        self.scheduler = self._new_scheduler(self._network, faults)
        self._task = asyncio.create_task(self._run(self.scheduler, self._client(self._network)))

    def _is_calm(self) -> bool:
        return self._clock.now() >= self._script.calm_at

    def _random(self) -> Random:
        return Random(f"{self._script.seed} {self.identity}")

    def _client(self, network: FaultyTransport) -> Client:
        return Client(RetryingTransport(network, self._clock, self._random()), self._token())

    def _new_scheduler(self, network: FaultyTransport, faults: list[Fault]) -> Scheduler:
        script, version = self._script, self.version
        extender = FaultyExtender(self._clock, self._script.faults, self._injected, self._is_calm)
        return Scheduler(
            self._client(network),
            parse_config(_configuration(script), "chaos", version=version),
            self._registry(faults),
            self._clock,
            self._random(),
            self.identity,
            plugin_threads=0,
            observer=self._new_observer(self),
            version=version,
            connect_extender=extender.connect,
        )

    def _registry(self, faults: list[Fault]) -> Registry:
        registry = default_registry()
        plugin = Misbehaving(self._clock, faults, self._injected, self._is_calm)
        registry.register(plugin.name, lambda: plugin)
        return registry

    async def _run(self, scheduler: Scheduler, client: Client) -> None:
        leads = asyncio.Event()
        running = [asyncio.create_task(scheduler.run(leads))]
        if self.elects:
            elector = LeaderElector(client, LeaderElection(), self._clock, self._random(), self.identity)
            running.append(asyncio.create_task(elector.run(leads.set, lambda: None)))
        else:
            leads.set()
        try:
            ended, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                task.result()
            self._failed(f"{self.identity} ended by itself")
        except LostLease:
            self._injected["lease lost"] += 1
            self._restart_later()
        except Exception as error:
            self._failed(f"{self.identity} ended with {error!r}")
        finally:
            self._cut_off()
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    def _restart_later(self) -> None:
        self._cut_off()
        self._clock.call_later(RESTART_SECONDS, self.start)

    def _cut_off(self) -> None:
        """From now on nothing leaves the process."""
        assert self._network is not None
        self._network.is_dead = True

    async def crash(self, seconds: float) -> None:
        """The process is killed, and another one started after some seconds; nothing if none runs."""
        if self._task is None or self._task.done():
            return
        await self.stop()
        await sleep(self._clock, seconds)
        self.start()

    async def stop(self) -> None:
        """The process is killed."""
        if self._task is not None:
            self._cut_off()
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None


def _is_of(fault: Fault, number: int) -> bool:
    return isinstance(fault, RequestFault | WatchFault | PluginFault) and fault.scheduler == number


def _configuration(script: Script) -> dict[str, Any]:
    profile: dict[str, Any] = {"schedulerName": "default-scheduler"}
    if script.has_plugin:
        profile["plugins"] = {"multiPoint": {"enabled": [{"name": Misbehaving.name}]}}
    config: dict[str, Any] = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }
    if script.has_extender:
        config["extenders"] = [
            {
                "urlPrefix": EXTENDER_URL,
                "filterVerb": "filter",
                "nodeCacheCapable": True,
                "httpTimeout": f"{EXTENDER_SECONDS:g}s",
                "enableHTTPS": False,
            }
        ]
    return config
