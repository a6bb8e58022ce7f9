"""The version that is emulated where no flag names one: that of the API server."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest

from moorage.client.client import Client
from moorage.client.server_version import emulated_by_server
from moorage.clock import VirtualClock
from moorage.emulation.kubernetes_version import V1_36, V1_37, KubernetesVersion
from moorage.engine.run_without_suspending import run_without_suspending
from moorage.http.errors import ConnectionFailed
from moorage.http.transport import Response
from tests.client.scripted import ScriptedTransport

CLOCK = VirtualClock()


def says(**fields: str) -> Response:
    return Response(200, json.dumps(fields).encode())


ANSWERS: dict[str, tuple[Response, KubernetesVersion]] = {
    "the older one": (says(major="1", minor="36", gitVersion="v1.36.4"), V1_36),
    "of a provider": (says(major="1", minor="37+", gitVersion="v1.37.1-gke.1"), V1_37),
    "older than all": (says(major="1", minor="30"), V1_36),
    "not allowed": (Response(403, b"{}"), V1_37),
    "not a version": (Response(200, b"ok"), V1_37),
}


@pytest.mark.parametrize(("answer", "expected"), ANSWERS.values(), ids=ANSWERS.keys())
def test_the_servers_version_is_emulated(answer: Response, expected: KubernetesVersion) -> None:
    emulated = emulated_by_server(Client(ScriptedTransport(CLOCK, [answer])), CLOCK)
    assert run_without_suspending(emulated) is expected


def test_a_server_that_does_not_answer_yet_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    async def asked() -> KubernetesVersion:
        clock = VirtualClock()
        unready = (ConnectionFailed("refused"), Response(503, b"starting"))
        known = says(major="1", minor="36", gitVersion="v1.36.4")
        server = ScriptedTransport(clock, [*unready, known])
        asking = asyncio.ensure_future(emulated_by_server(Client(server), clock))
        for _ in unready:
            await asyncio.sleep(0)
            assert not asking.done()
            clock.advance(1)
        return await asking

    with caplog.at_level(logging.INFO):
        assert asyncio.run(asked()) is V1_36
    assert [record.getMessage() for record in caplog.records] == [
        '"Waiting for the API server\'s version" err="refused"',
        '"Waiting for the API server\'s version" err="starting"',
        '"Emulating the API server\'s version" server="v1.36.4" emulated="v1.36"',
    ]
