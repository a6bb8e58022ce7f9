"""The load that is applied to a server: what is sent, counted and left behind."""

from __future__ import annotations

import asyncio
import os
import ssl

from bench.load import Figures, Load, Server, watched
from moorage.client.client import Client
from moorage.http.in_flight import InFlightLimits
from moorage.http.server import HttpServer, listen
from moorage_cluster.apiserver.embedded import EmbeddedServer


def test_a_load_within_the_limits_and_one_beyond() -> None:
    async def scenario() -> tuple[Figures, Figures]:
        embedded = EmbeddedServer()
        listener = listen("127.0.0.1", 0)
        http = HttpServer(embedded.api, embedded.certificate.ssl_context(), limits=InFlightLimits(3, 3))
        serving = asyncio.create_task(http.serve(listener))
        tls = ssl.create_default_context(cadata=embedded.certificate.ca_pem)
        server = Server(listener.getsockname()[1], embedded.token, tls, os.getpid())
        client = Client(embedded.api, embedded.token)
        few, many = Load(server), Load(server, is_patient=False)
        await few.connect(2)
        within = await watched(few, client, few.apply("few", 0.2, None))
        await many.connect(20)
        beyond = await watched(many, client, many.apply("many", 0.2, 100_000.0))
        http.stop()
        await serving
        embedded.close()
        return within, beyond

    within, beyond = asyncio.run(scenario())
    assert within.accepted > 0
    assert within.codes[429] == within.unexpected == within.lost == 0
    assert beyond.accepted > 0
    assert beyond.codes[429] > 0
    assert beyond.unexpected == beyond.lost == 0
    assert len(beyond.latencies) == beyond.accepted
