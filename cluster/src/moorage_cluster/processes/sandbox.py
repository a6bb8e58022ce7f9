"""One pod whose containers run as processes: its directory, its volumes, its address, its logs."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

from moorage.api.manifests import Manifest
from moorage.backoff import backoff_seconds
from moorage.client.waiting import sleep
from moorage_cluster.nodes.simulated_program import Program
from moorage_cluster.nodes.workload import Host, RecordEvent
from moorage_cluster.processes.command import Command, CommandError
from moorage_cluster.processes.container_log import ContainerLog
from moorage_cluster.processes.container_process import ContainerContext, ContainerProcess
from moorage_cluster.processes.environment import Environment, expand
from moorage_cluster.processes.machine import Machine
from moorage_cluster.processes.objects import NamespacedObjects
from moorage_cluster.processes.process_workload import ProcessWorkload
from moorage_cluster.processes.rewriting import Rewriting
from moorage_cluster.processes.selection import runs
from moorage_cluster.processes.standard_variables import standard_variables
from moorage_cluster.processes.volumes import MountError, PodVolumes

_REFRESH_SECONDS: Final = 60.0
"""Interval between updates of volumes from their sources, in seconds."""
_INITIAL_MOUNT_BACKOFF_SECONDS: Final = 0.5
_MAX_MOUNT_BACKOFF_SECONDS: Final = 30.0
_CLOSE_GRACE_SECONDS: Final = 2.0
"""Grace period of processes after their pod is deleted, or at the end of the cluster, in seconds."""
_DEFAULT_GRACE_SECONDS: Final = 30.0
LOOPBACK: Final = "127.0.0.1"


class PodSandbox:
    """The sandbox of a pod, from its admission until its deletion.

    address: the pod's own; empty if it has the machine's network. closed: called when everything is removed.
    """

    def __init__(
        self,
        machine: Machine,
        pod: Manifest,
        host: Host,
        address: str,
        wake: Callable[[], None],
        record_event: RecordEvent,
        closed: Callable[[], None],
    ) -> None:
        self.address = address or host.address
        """The pod's address."""
        self.is_ready = False
        self.logs: dict[str, list[ContainerLog]] = {}
        """By container: the logs of the previous and the latest process."""
        self._machine = machine
        self._pod = pod
        self._host = host
        self._own_address = address
        self._wake = wake
        self._record_event = record_event
        self._closed = closed
        self._folder = machine.folder / pod["metadata"]["uid"]
        self._objects = NamespacedObjects(machine.client, pod["metadata"]["namespace"])
        self._volumes = PodVolumes(
            machine.client,
            self._objects,
            self._folder / "volumes",
            machine.folder / "claims",
            machine.clock.utc_now,
        )
        self._mounting: asyncio.Task[None] | None = None
        self._is_closed = False
        self._processes: list[ContainerProcess] = []
        grace_seconds = pod["spec"].get("terminationGracePeriodSeconds", _DEFAULT_GRACE_SECONDS)
        self._context = ContainerContext(
            machine.clock,
            machine.tasks,
            machine.sweeper,
            address or LOOPBACK,
            grace_seconds,
            wake,
            record_event,
        )

    def prepare(self) -> None:
        """Mount the volumes, and keep them up to date."""
        if self._mounting is None:
            self._mounting = self._machine.tasks.start(self._mount())

    def update(self, pod: Manifest) -> None:
        """Update the pod, since the downward API provides its labels and annotations."""
        self._pod = pod

    def workload(
        self, container: Manifest, program: Program, *, has_readiness: bool
    ) -> ProcessWorkload | None:
        """The process of a container, unless it is simulated."""
        if not runs(self._pod, container):
            return None
        return ProcessWorkload(lambda: self._start(container), program, has_readiness=has_readiness)

    def close(self) -> None:
        """End all processes; when they have ended, everything is removed."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._mounting is not None:
            self._mounting.cancel()
        for process in self._processes:
            process.discard(_CLOSE_GRACE_SECONDS)
        self._machine.tasks.start(self._remove())

    async def _remove(self) -> None:
        for process in self._processes:
            await asyncio.wait([process.task])
        shutil.rmtree(self._folder, ignore_errors=True)
        self._closed()

    # -- volumes

    async def _mount(self) -> None:
        failures = 0
        while True:
            try:
                await self._volumes.write(self._pod, self.address, self._host)
            except MountError as error:
                self._record_event("Warning", "FailedMount", str(error))
                failures += 1
                pause = backoff_seconds(failures, _INITIAL_MOUNT_BACKOFF_SECONDS, _MAX_MOUNT_BACKOFF_SECONDS)
                await sleep(self._machine.clock, pause)
                continue
            failures = 0
            if not self.is_ready:
                self.is_ready = True
                self._wake()
            await self._until_refresh()

    async def _until_refresh(self) -> None:
        """Wait until the next update of volumes, which there is only while a process of the pod runs."""
        is_used = False
        while not is_used:
            await sleep(self._machine.clock, _REFRESH_SECONDS)
            is_used = any(not process.task.done() for process in self._processes)

    def _paths(self, container: Manifest) -> dict[str, Path]:
        """The directories of a container's mounts, by mount path."""
        paths = {}
        for mount in container.get("volumeMounts") or ():
            if mount.get("subPathExpr"):
                raise CommandError("subPathExpr is not supported by containers that run as processes")
            volume = self._volumes.path(self._pod, mount["name"])
            paths[mount["mountPath"]] = volume / mount.get("subPath", "")
        return paths

    # -- processes

    def _start(self, container: Manifest) -> ContainerProcess:
        name = container["name"]
        process = ContainerProcess(
            self._context, container, lambda: self._command(container), lambda: self._open_log(name)
        )
        self._processes = [*(each for each in self._processes if not each.task.done()), process]
        return process

    def _open_log(self, container: str) -> ContainerLog:
        log = ContainerLog(self._machine.clock.utc_now)
        self.logs[container] = [*self.logs.get(container, ())[-1:], log]
        return log

    async def _command(self, container: Manifest) -> Command:
        """The command of a container; CommandError if there is none (yet)."""
        if not container.get("command"):
            raise CommandError("no command specified: an image's entry point is not known here")
        paths = self._paths(container)
        rewrite = Rewriting(paths, self._own_address)
        environment = Environment(self._objects, self._pod, self.address, self._host, rewrite)
        variables = await environment.variables(container, self._machine.service_variables())
        words = [*container["command"], *(container.get("args") or ())]
        return Command(
            [expand(rewrite(word), variables) for word in words],
            standard_variables(self._machine, self._pod, self._folder, paths) | variables,
            self._working_folder(container, rewrite),
            rewrite,
        )

    def _working_folder(self, container: Manifest, rewrite: Rewriting) -> Path:
        """The working directory: in a volume, or one of the pod."""
        wanted = container.get("workingDir") or "/"
        path = Path(rewrite(wanted))
        if str(path) == wanted:
            path = self._folder / "root" / wanted.lstrip("/")
        path.mkdir(parents=True, exist_ok=True)
        return path
