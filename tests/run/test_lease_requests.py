"""Requests for the lease do not wait for the scheduler's other requests."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import yaml
from msgspec.structs import replace

from moorage.client.kinds import LEASE, POD
from moorage.config.load import default_config
from moorage.framework.loading.plugin_discovery import DiscoveredPlugins
from moorage.plugins import default_registry
from moorage.scheduler.process import LiveScheduler, RunOptions
from tests.http.sockets import Asked, SocketServer, Writer, answer, serving

LIMIT_SECONDS = 30
PODS = 200
STORED = b'{"kind":"Lease","metadata":{"name":"kube-scheduler"}}'


async def stall_bindings(server: SocketServer, asked: Asked, writer: Writer) -> None:
    if asked.line.startswith("POST"):
        await server.released.wait()
    writer.write(answer(STORED))


def live_scheduler(folder: Path, url: str, *, pipelining: bool) -> LiveScheduler:
    kubeconfig = folder / "config"
    content = {
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "contexts": [{"name": "x", "context": {"cluster": "c"}}],
        "current-context": "x",
    }
    kubeconfig.write_text(yaml.safe_dump(content))
    config = default_config()
    connection = replace(config.client_connection, kubeconfig=str(kubeconfig), qps=50.0, burst=100)
    found = DiscoveredPlugins(replace(config, client_connection=connection), default_registry())
    options = RunOptions(found.config, lambda: found, http_pipelining=pipelining)
    return LiveScheduler(options, found.registry)


@pytest.mark.parametrize("pipelining", [False, True])
def test_bindings_that_wait_do_not_keep_the_lease_waiting(tmp_path: Path, pipelining: bool) -> None:
    async def main() -> None:
        async with serving(stall_bindings) as server:
            live = live_scheduler(tmp_path, server.url, pipelining=pipelining)
            async with live._connected("scheduler") as client, live._election_client() as election:
                bindings = [
                    asyncio.ensure_future(client.create_part(POD, "default", f"p{number}", "binding", {}))
                    for number in range(PODS)
                ]
                while not server.asked:
                    await asyncio.sleep(0)
                lease = await asyncio.wait_for(
                    election.get(LEASE, "kube-system", "kube-scheduler"), LIMIT_SECONDS
                )
                assert lease["kind"] == "Lease"
                assert not any(binding.done() for binding in bindings)
                [asked] = [each for each in server.asked if each.line.startswith("GET")]
                others = {each.connection for each in server.asked if each.line.startswith("POST")}
                assert asked.connection not in others
                for binding in bindings:
                    binding.cancel()
                await asyncio.wait(bindings)

    asyncio.run(main())
