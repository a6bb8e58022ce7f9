"""The API server and the scheduler in their own processes, for the duration of a workload."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from msgspec.structs import replace

from moorage.bench.claim_controller import ClaimController
from moorage.bench.cluster_target import ClusterTarget
from moorage.bench.process_usage import ProcessUsage, own_usage, usage_of
from moorage.bench.target import WorkloadFailed
from moorage.client.client import Client
from moorage.client.connect import connected
from moorage.client.credentials import Access, find_access
from moorage.client.waiting import sleep, within
from moorage.clock import Clock
from moorage.config.load import default_config, dump_yaml, to_manifest
from moorage.config.types import SchedulerConfiguration
from moorage.emulation.kubernetes_version import DEFAULT_VERSION, KubernetesVersion
from moorage.http.client_tls import client_context
from moorage.http.client_transport import Endpoint
from moorage.http.errors import ConnectionFailed, RequestError
from moorage.http.free_port import free_port

_REQUESTS_PER_SECOND: Final = 5000
"""Client rate limit of the scheduler, in requests per second, as in scheduler_perf."""
_START_SECONDS: Final = 60.0
_END_SECONDS: Final = 30.0
_PAUSE_SECONDS: Final = 0.05


class ServedTarget(ClusterTarget):
    """A cluster with a server and a scheduler that run as child processes."""

    def __init__(self, client: Client, clock: Clock, server_pid: int) -> None:
        super().__init__(client, clock)
        self._server_pid = server_pid
        self._scheduler_pid: int | None = None
        self._scheduler: Client | None = None

    def scheduled_by(self, pid: int, client: Client) -> None:
        """The scheduler has started; `client` reads its metrics."""
        self._scheduler_pid, self._scheduler = pid, client

    async def metrics(self) -> str:
        """The scheduler's metrics."""
        if self._scheduler is None:
            return ""
        stream = await self._scheduler.stream("/metrics", {})
        return b"".join([piece async for piece in stream]).decode()

    def usage(self) -> Mapping[str, ProcessUsage]:
        """The usage of each process so far."""
        used = {"server": usage_of(self._server_pid), "generator": own_usage()}
        if self._scheduler_pid is not None:
            used["scheduler"] = usage_of(self._scheduler_pid)
        return used


@asynccontextmanager
async def served_target(
    config: SchedulerConfiguration | None,
    clock: Clock,
    version: KubernetesVersion = DEFAULT_VERSION,
    plugins: Iterable[Path] = (),
) -> AsyncIterator[ServedTarget]:
    """A new cluster: server and scheduler in processes that end with the context.

    plugins: files with plugins.
    """
    flags = ["--http-pipelining", *(f"--plugin={file.absolute()}" for file in plugins)]
    with TemporaryDirectory(prefix="moorage-bench-") as folder:
        place = Path(folder)
        kubeconfig = place / "kubeconfig"
        served = ["--port=0", f"--kubeconfig={kubeconfig}", *_version_flags(version)]
        async with _process(place, "apiserver", served) as server:
            await _wait_for_output(server, place, "API at")
            access = find_access(kubeconfig, clock=clock)
            async with connected(access, user_agent="moorage bench", clock=clock, pipelining=True) as client:
                target = ServedTarget(client, clock, server.pid)
                claims = ClaimController(client, target.informer)
                running = [asyncio.create_task(each) for each in (target.informer.run(), claims.run())]
                try:
                    await target.informer.synced()
                    async with scheduler_process(
                        place, kubeconfig, config, access, clock, version, flags
                    ) as (pid, metrics):
                        target.scheduled_by(pid, metrics)
                        yield target
                finally:
                    for task in running:
                        task.cancel()
                    await asyncio.gather(*running, return_exceptions=True)


@asynccontextmanager
async def scheduler_process(
    place: Path,
    kubeconfig: Path,
    config: SchedulerConfiguration | None,
    access: Access,
    clock: Clock,
    version: KubernetesVersion = DEFAULT_VERSION,
    flags: Sequence[str] = ("--http-pipelining",),
) -> AsyncIterator[tuple[int, Client]]:
    """A scheduler with synced informers: its process id, and a client of its endpoints."""
    port, file = free_port(), place / "scheduler.yaml"
    config = config or default_config(version)
    connection = replace(
        config.client_connection,
        kubeconfig=str(kubeconfig),
        qps=float(_REQUESTS_PER_SECOND),
        burst=_REQUESTS_PER_SECOND,
    )
    file.write_text(dump_yaml(to_manifest(replace(config, client_connection=connection))), encoding="utf-8")
    words = [f"--config={file}", "--leader-elect=false", f"--secure-port={port}", *flags]
    words += _version_flags(version)
    async with _process(place, "run", words) as process:
        endpoint = Endpoint(f"https://127.0.0.1:{port}", client_context(None, skip_verification=True))
        async with connected(Access(endpoint, access.credentials), clock=clock) as client:
            try:
                await within(clock, _START_SECONDS, _until_ready(process, client, clock))
            except (TimeoutError, WorkloadFailed) as error:
                raise WorkloadFailed(
                    f"moorage run does not begin: {_last_output(place, 'run') or error}"
                ) from None
            yield process.pid, client


def _version_flags(version: KubernetesVersion) -> list[str]:
    emulated = f"--emulated-version={version.minor}"
    given = [f"{name}={str(is_on).lower()}" for name, is_on in version.gates.given.items()]
    return [emulated, f"--feature-gates={','.join(given)}"] if given else [emulated]


async def _until_ready(process: asyncio.subprocess.Process, client: Client, clock: Clock) -> None:
    while process.returncode is None:
        try:
            stream = await client.stream("/readyz", {})
            async for _ in stream:
                pass
            return
        except (RequestError, ConnectionFailed):
            await sleep(clock, _PAUSE_SECONDS)
    raise WorkloadFailed("it has ended")


@asynccontextmanager
async def _process(
    place: Path, command: str, words: Sequence[str]
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A command of moorage in a child process: terminated at the end, and killed if it does not exit."""
    with (place / f"{command}.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "moorage", command, *words, stdout=asyncio.subprocess.PIPE, stderr=log
        )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
            try:
                await asyncio.wait_for(process.wait(), _END_SECONDS)
            except TimeoutError:
                process.kill()
                await process.wait()


async def _wait_for_output(process: asyncio.subprocess.Process, place: Path, words: str) -> None:
    """Wait until a process has printed some words."""
    assert process.stdout is not None
    async for line in process.stdout:
        if words in line.decode():
            return
    raise WorkloadFailed(f"moorage apiserver does not begin: {_last_output(place, 'apiserver')}")


def _last_output(place: Path, command: str) -> str:
    """The last line of a process's log."""
    lines = (place / f"{command}.log").read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""
