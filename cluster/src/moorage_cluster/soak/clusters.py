"""The cluster that is measured: in this process and in virtual time, or in a process of its own."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final

import msgspec

from moorage.client.client import Client
from moorage.client.connect import connected
from moorage.client.credentials import find_access
from moorage.client.kinds import NODE
from moorage.clock import Clock, LoopClock
from moorage.config.load import default_config
from moorage.emulation.kubernetes_version import DEFAULT_VERSION, V1_37, KubernetesVersion
from moorage.simulation.virtual_loop import VirtualLoopClock
from moorage_cluster.apiserver.embedded import Settings
from moorage_cluster.local import LocalCluster, LocalSettings
from moorage_cluster.nodes.settings import NodeTemplate
from moorage_cluster.soak.usage import Usage, usage_here, usage_of

_GROUPS_GATE: Final = "GenericWorkload"
_ZONES: Final = 3
_EVENT_TTL_SECONDS: Final = 600
"""How long events are kept: much shorter than a soak, so that they do not count as growth."""
_HISTORY: Final = 2_000
"""Number of changes that are kept of each resource in virtual time: few, so that histories are soon full."""
_STEP_SECONDS: Final = 0.1
_START_SECONDS: Final = 60.0


class Measured(msgspec.Struct, frozen=True):
    """A running cluster."""

    client: Client
    clock: Clock
    usage: Callable[[], Usage]


@asynccontextmanager
async def cluster_here(nodes: int, seed: int, *, has_groups: bool) -> AsyncIterator[Measured]:
    """A cluster in this process, which is in a virtual loop."""
    version = _version(has_groups=has_groups)
    settings = LocalSettings(
        nodes=nodes,
        template=NodeTemplate(zones=_ZONES),
        server=Settings(history=_HISTORY, event_ttl_seconds=_EVENT_TTL_SECONDS, version=version),
        config=default_config(version),
        version=version,
    )
    clock = VirtualLoopClock()
    local = LocalCluster(settings, clock=clock, random=Random(seed))
    running = asyncio.create_task(local.run())
    try:
        await local.prepare()
        yield Measured(local.client, clock, usage_here)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        local.close()


def _version(*, has_groups: bool) -> KubernetesVersion:
    return V1_37.with_gates({_GROUPS_GATE: True}) if has_groups else DEFAULT_VERSION


@asynccontextmanager
async def cluster_process(nodes: int, *options: str) -> AsyncIterator[Measured]:
    """`moorage up` in its own process, with these further options."""
    with TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        async with (
            command_process("up", kubeconfig, f"--nodes={nodes}", "--no-ui", *options) as process,
            connected(find_access(kubeconfig)) as client,
        ):
            while len(await client.list(NODE)) < nodes:
                await asyncio.sleep(_STEP_SECONDS)
            yield Measured(client, LoopClock(), lambda: usage_of(process))


@asynccontextmanager
async def command_process(command: str, kubeconfig: Path, *options: str) -> AsyncIterator[int]:
    """A command with an API server in its own process, once it has written its kubeconfig; its id."""
    words = ["-m", "moorage", command, "--port=0", f"--kubeconfig={kubeconfig}", *options]
    quiet = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(sys.executable, *words, stdout=quiet, stderr=quiet)
    try:
        async with asyncio.timeout(_START_SECONDS):
            while not kubeconfig.exists():
                await asyncio.sleep(_STEP_SECONDS)
        yield process.pid
    finally:
        process.terminate()
        await process.wait()


def process_options(*, has_groups: bool) -> list[str]:
    """The options of `moorage up` for a soak."""
    version = _version(has_groups=has_groups)
    options = [
        f"--zones={_ZONES}",
        f"--event-ttl={_EVENT_TTL_SECONDS}s",
        f"--emulated-version={version.minor}",
    ]
    return [*options, f"--feature-gates={_GROUPS_GATE}=true"] if has_groups else options
