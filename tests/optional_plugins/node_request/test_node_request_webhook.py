"""The web service that NodeRequest asks: what it is told, and each way in which it may answer, or not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest

from moorage import Handle, Offer, WebService
from moorage.optional_plugins.node_request.provisioning import Answer, NodesWanted, ProvisioningError
from moorage.optional_plugins.node_request.webhook import Webhook
from tests.optional_plugins.node_request.packing_scene import shape, worker

OFFER = Offer(shape("small", 0.5, "4", "16Gi", zones=["west"]), "west")
WANTED = NodesWanted(OFFER, [OFFER.node(0), OFFER.node(1)], [(worker("p", "2"), "0/1 nodes are available")])
NEVER = b""


def http(status: int, body: bytes) -> bytes:
    return b"HTTP/1.1 %d X\r\ncontent-length: %d\r\n\r\n%b" % (status, len(body), body)


async def served(answer: bytes, use: Callable[[str], Awaitable[Any]]) -> tuple[Any, list[bytes]]:
    """What comes of the use of a server that gives one answer to all; with the bodies that it got."""
    bodies: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        bodies.append(await reader.readexactly(int(length.partition(b":")[2])))
        if answer:
            writer.write(answer)
        else:
            await reader.read()  # Until the client gives up.
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        return await use(f"http://127.0.0.1:{port}/nodes?a=b"), bodies


def asked(answer: bytes, timeout: float = 5.0) -> tuple[Answer | str, list[bytes]]:
    """The answer of a service, or why there is none."""

    async def use(url: str) -> Answer | str:
        service = WebService(url, timeout_seconds=timeout)
        try:
            return await Webhook(service, Handle(random=Random(1))).ask(WANTED)
        except ProvisioningError as error:
            return str(error)

    return asyncio.run(served(answer, use))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param({"accepted": True}, Answer(2), id="accepted"),
        pytest.param(
            {"accepted": True, "nodes": ["a", "b"]},
            Answer(2, ("a", "b"), "fewer nodes accepted than asked for"),
            id="with names",
        ),
        pytest.param(
            {"accepted": True, "nodes": ["a"], "reason": "sold out"},
            Answer(1, ("a",), "sold out"),
            id="in part",
        ),
        pytest.param({"accepted": False, "reason": "no quota"}, Answer(0, (), "no quota"), id="refused"),
        pytest.param({"accepted": False}, Answer(0, (), "refused without a reason"), id="without a reason"),
    ],
)
def test_answers(body: Any, expected: Answer) -> None:
    assert asked(http(200, json.dumps(body).encode()))[0] == expected


@pytest.mark.parametrize(
    ("answer", "seconds", "told"),
    [
        pytest.param(http(500, b"broken"), 5.0, "webhook: status 500: 'broken'", id="500"),
        pytest.param(NEVER, 0.05, "webhook: no answer within 0.05s", id="timeout"),
        pytest.param(http(200, b"<html>"), 5.0, "webhook: the answer is not JSON: '<html>'", id="no JSON"),
        pytest.param(
            http(200, b"[]"),
            5.0,
            'webhook: the answer must be an object with "accepted": true or false',
            id="a list",
        ),
        pytest.param(
            http(200, b'{"accepted": 1}'),
            5.0,
            'webhook: the answer must be an object with "accepted": true or false',
            id="a number",
        ),
        pytest.param(
            http(200, b'{"accepted": true, "nodes": [1]}'),
            5.0,
            'webhook: "nodes" of the answer must be a list of names',
            id="numbers as names",
        ),
        pytest.param(
            http(200, b'{"accepted": true, "nodes": ["a", "b", "c"]}'),
            5.0,
            'webhook: "nodes" of the answer must be different names, at most 2',
            id="more than asked for",
        ),
        pytest.param(
            http(200, b'{"accepted": false, "reason": 1}'),
            5.0,
            'webhook: "reason" of the answer must be a text',
            id="a reason that is none",
        ),
    ],
)
def test_what_is_no_answer(answer: bytes, seconds: float, told: str) -> None:
    assert asked(answer, seconds)[0] == told


def test_what_the_service_is_told() -> None:
    _, bodies = asked(http(200, b'{"accepted": true}'))
    (told,) = [json.loads(body) for body in bodies]
    assert len(told.pop("id")) == 16
    assert told == {
        "apiVersion": "moorage.io/v1",
        "kind": "NodeRequest",
        "shape": {
            "name": "small",
            "pricePerHour": 0.5,
            "resources": {"cpu": "4", "memory": "16Gi"},
            "zones": ["west"],
            "labels": {},
            "taints": [],
            "max": None,
        },
        "zone": "west",
        "count": 2,
        "names": ["small-west-0", "small-west-1"],
        "pods": [
            {
                "namespace": "default",
                "name": "p",
                "uid": "p",
                "requests": {"cpu": "2", "memory": "1Gi"},
                "message": "0/1 nodes are available",
            }
        ],
    }
