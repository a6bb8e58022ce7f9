"""Leader election in its thread, against an API server in another process, while the main loop is busy."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
import yaml
from msgspec.structs import replace

from moorage.client.client import Client
from moorage.clock import Clock
from moorage.config.duration import Duration
from moorage.config.types import LeaderElection as Config
from moorage.http.client_tls import client_context
from moorage.http.client_transport import Endpoint, HttpTransport
from moorage.services.election_thread import ElectionThread
from moorage.services.leader_election import LeaderElector, LostLease
from tests.apiserver.running import RunningServer, start_server

SHORT = replace(
    Config(), lease_duration=Duration(2), renew_deadline=Duration(1.5), retry_period=Duration(0.2)
)
LIMIT_SECONDS = 30
LEASE_PATH = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"


class Access:
    """How to reach a running server."""

    def __init__(self, server: RunningServer) -> None:
        self.server = server
        config = yaml.safe_load(server.kubeconfig.read_text())
        self.ca = base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"])
        self.token: str = config["users"][0]["user"]["token"]

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Client]:
        async with HttpTransport(Endpoint(self.server.url, client_context(self.ca))) as transport:
            yield Client(transport, self.token)

    def lease(self) -> dict[str, Any]:
        """What the lease says, asked without any event loop."""
        request = Request(f"{self.server.url}{LEASE_PATH}", headers={"Authorization": f"Bearer {self.token}"})
        tls = ssl.create_default_context(cadata=self.ca.decode())
        try:
            with urlopen(request, context=tls, timeout=LIMIT_SECONDS) as answer:
                spec: dict[str, Any] = json.load(answer)["spec"]
                return spec
        except HTTPError as error:
            error.close()
            return {}


@pytest.fixture
def access(tmp_path: Path) -> Iterator[Access]:
    server = start_server(tmp_path)
    try:
        yield Access(server)
    finally:
        if server.process.poll() is None:
            server.kill()


def candidate(client: Client, clock: Clock) -> LeaderElector:
    return LeaderElector(client, SHORT, clock, Random(1), "host_1")


def test_a_busy_main_loop_does_not_cost_the_lease(access: Access) -> None:
    states: list[str] = []

    async def main() -> None:
        thread = ElectionThread(access.connect, candidate)
        started = asyncio.Event()
        running = asyncio.ensure_future(thread.run(started.set, lambda: states.append("stopped")))
        await asyncio.wait_for(started.wait(), LIMIT_SECONDS)
        # From here on the main loop does not get a turn, for longer than a lease lasts.
        times = [access.lease()["renewTime"]]
        first = datetime.fromisoformat(times[0])
        while (datetime.fromisoformat(times[-1]) - first).total_seconds() < 1.25 * SHORT.lease_duration:
            spec = access.lease()
            assert spec["holderIdentity"] == "host_1"
            times.append(spec["renewTime"])
        assert len(set(times)) > 5
        assert thread.is_leading
        assert thread.check() is None
        thread.stop()
        await asyncio.wait_for(running, LIMIT_SECONDS)
        assert not thread.is_leading

    asyncio.run(main())
    assert states == ["stopped"]
    spec = access.lease()
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("", 1, 0)


def test_a_lost_lease_is_reported_even_when_the_main_loop_is_busy(access: Access) -> None:
    lost = threading.Event()

    async def main() -> None:
        thread = ElectionThread(access.connect, candidate, lost.set)
        started = asyncio.Event()
        running = asyncio.ensure_future(thread.run(started.set, lambda: None))
        await asyncio.wait_for(started.wait(), LIMIT_SECONDS)
        access.server.kill()
        assert lost.wait(LIMIT_SECONDS), "the main loop waits here, and does nothing else"
        with pytest.raises(LostLease):
            await asyncio.wait_for(running, LIMIT_SECONDS)

    asyncio.run(main())


def test_a_candidate_that_is_stopped_first_does_not_start(access: Access) -> None:
    states: list[str] = []

    async def main() -> None:
        thread = ElectionThread(access.connect, candidate)
        assert thread.check() is None
        thread.stop()
        await asyncio.wait_for(
            thread.run(lambda: states.append("started"), lambda: states.append("stopped")), LIMIT_SECONDS
        )

    asyncio.run(main())
    assert states == ["stopped"]
    assert access.lease() == {}


def test_a_candidate_that_is_cancelled_gives_the_lease_back(access: Access) -> None:
    async def main() -> None:
        thread = ElectionThread(access.connect, candidate)
        started = asyncio.Event()
        running = asyncio.ensure_future(thread.run(started.set, lambda: None))
        await asyncio.wait_for(started.wait(), LIMIT_SECONDS)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())
    assert access.lease()["holderIdentity"] == ""
