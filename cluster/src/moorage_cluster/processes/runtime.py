"""The container runtime of `moorage up --run-containers`: a sandbox for each pod with containers to run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from random import Random
from typing import Final

from moorage.api.manifests import Manifest
from moorage.apimachinery import errors
from moorage.client.client import Client
from moorage.clock import Clock
from moorage.http.transport import Stream
from moorage_cluster.nodes.addresses import PodAddresses
from moorage_cluster.nodes.log_options import LogOptions
from moorage_cluster.nodes.workload import Host, RecordEvent
from moorage_cluster.processes.container_log import LogStream
from moorage_cluster.processes.machine import Machine
from moorage_cluster.processes.sandbox import LOOPBACK, PodSandbox
from moorage_cluster.processes.selection import any_runs, runs
from moorage_cluster.processes.sweeping import Sweeper
from moorage_cluster.processes.tasks import Tasks

_FIRST_NETWORK: Final = 64
_NETWORKS: Final = 128
"""Number of loopback networks: a cluster takes one at random, so that two seldom have the same."""


class LocalRuntime:
    """Runs containers as processes; `server` is the address and the port of the API server."""

    def __init__(self, client: Client, server: tuple[str, int], clock: Clock, random: Random) -> None:
        self._machine = Machine(client, server, clock, Tasks(), Sweeper())
        network = _FIRST_NETWORK + random.randrange(_NETWORKS)
        # Only Linux has all of 127.0.0.0/8; elsewhere pods share the machine's ports.
        self._addresses = PodAddresses(f"127.{network}.0.0/16") if sys.platform == "linux" else None
        self._sandboxes: dict[str, PodSandbox] = {}

    def sandbox(
        self, pod: Manifest, host: Host, wake: Callable[[], None], record_event: RecordEvent
    ) -> PodSandbox | None:
        """The sandbox of a pod; None if all its containers are simulated."""
        if not any_runs(pod):
            return None
        uid = pod["metadata"]["uid"]
        address = "" if pod["spec"].get("hostNetwork") else self._address(uid)
        sandbox = self._sandboxes[uid] = PodSandbox(
            self._machine, pod, host, address, wake, record_event, lambda: self._forget(uid)
        )
        return sandbox

    def _forget(self, uid: str) -> None:
        del self._sandboxes[uid]
        if self._addresses is not None:
            self._addresses.release(uid)

    def _address(self, uid: str) -> str:
        return LOOPBACK if self._addresses is None else self._addresses.take(uid)

    def read_log(self, pod: Manifest, container: Manifest, options: LogOptions) -> bytes | Stream | None:
        """The log of a container; None if it is simulated, ApiError if the log no longer exists."""
        if not runs(pod, container):
            return None
        sandbox = self._sandboxes.get(pod["metadata"]["uid"])
        logs = sandbox.logs.get(container["name"], []) if sandbox is not None else []
        if options.is_previous and not _waits(pod, container["name"]):
            logs = logs[:-1]
        if not logs:
            raise errors.bad_request(f'unable to retrieve container logs for "{container["name"]}"')
        return LogStream(logs[-1], options) if options.follows else logs[-1].read(options)

    async def close(self) -> None:
        """End all running processes, and remove their files."""
        for sandbox in list(self._sandboxes.values()):
            sandbox.close()
        await self._machine.tasks.finish()
        await self._machine.sweeper.close()


def _waits(pod: Manifest, container: str) -> bool:
    """Whether a container waits for its restart: its latest process is then the previous one."""
    status = pod.get("status") or {}
    known = (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ()))
    return any(each["name"] == container and "waiting" in (each.get("state") or {}) for each in known)
