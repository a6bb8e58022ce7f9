"""Whether writes of `moorage run` share connections is for `--http-pipelining` to say."""

from __future__ import annotations

import asyncio
import sys

import pytest
from msgspec.structs import replace

from moorage.client.kinds import NODE, POD
from moorage.http.transport import Request, Response, Transport
from tests.client.harness import ClientHarness, in_harness
from tests.http.sockets import counting_in_flight

PODS = 40
"""Few enough for the default limit on requests, `--kube-api-burst`."""
CAPACITY = {"cpu": "64", "memory": "64Gi", "pods": "110"}
COMMAND = (sys.executable, "-m", "moorage", "run", "--secure-port=0", "--leader-elect=false")


class Admitted:
    """A server that takes everyone for its administrator, and tells when all events are written."""

    def __init__(self, transport: Transport, token: str) -> None:
        self._transport = transport
        self._token = token
        self._events = 0
        self.all_sent = asyncio.Event()

    async def handle(self, request: Request) -> Response:
        headers = {**request.headers, "authorization": f"Bearer {self._token}"}
        response = await self._transport.handle(replace(request, headers=headers))
        self._events += request.method == "POST" and request.path.endswith("/events")
        if self._events == PODS:
            self.all_sent.set()
        return response


@pytest.mark.parametrize(("flags", "pipelines"), [((), False), (("--http-pipelining",), True)])
def test_only_with_the_flag_several_requests_are_in_flight_on_a_connection(
    flags: tuple[str, ...], pipelines: bool
) -> None:
    async def scenario(harness: ClientHarness) -> None:
        node = {"metadata": {"name": "node"}, "status": {"capacity": CAPACITY, "allocatable": CAPACITY}}
        await harness.client.create(NODE, "", node)
        for number in range(PODS):
            spec = {
                "containers": [{"name": "main", "image": "main"}],
                "tolerations": [{"operator": "Exists"}],
            }
            await harness.client.create(POD, "default", {"metadata": {"name": f"pod-{number}"}, "spec": spec})
        server = Admitted(harness.server.api, harness.server.token)
        async with counting_in_flight(server) as in_flight:
            words = (*COMMAND, f"--master={in_flight.url}", *flags)
            process = await asyncio.create_subprocess_exec(*words)
            sent = asyncio.ensure_future(server.all_sent.wait())
            ended = asyncio.ensure_future(process.wait())
            await asyncio.wait((sent, ended), return_when=asyncio.FIRST_COMPLETED)
            assert sent.done(), "moorage run has ended"
            process.terminate()
            await ended
        pods = await harness.client.list(POD, "default")
        assert [pod["spec"].get("nodeName") for pod in pods] == ["node"] * PODS
        assert (in_flight.most > 1) is pipelines

    in_harness(scenario)
