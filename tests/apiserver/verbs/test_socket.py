"""What only a real connection shows: who is let in, and how much they may send."""

from __future__ import annotations

import json
import re
import ssl
import stat
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPSConnection
from typing import Any, NamedTuple

import pytest

from moorage.http.guard import MAX_BODY_BYTES
from tests.apiserver.client import configmap
from tests.apiserver.running import RunningServer, start_server

MAPS = "/api/v1/namespaces/default/configmaps"


class Reply(NamedTuple):
    code: int
    body: Any


class Door:
    """Requests as anybody could send them."""

    def __init__(self, server: RunningServer) -> None:
        found = re.search(r"token: (\S+)", server.kubeconfig.read_text())
        assert found is not None
        self.token = found[1]
        self.port = int(server.url.rpartition(":")[2])

    def knock(self, method: str, path: str, body: bytes = b"", **headers: str | None) -> Reply:
        """Send a request with the right headers, except for those given; None leaves one out."""
        right = {"Host": f"127.0.0.1:{self.port}", "Authorization": f"Bearer {self.token}"}
        connection = HTTPSConnection("127.0.0.1", self.port, context=ssl._create_unverified_context())
        try:
            connection.putrequest(method, path, skip_host=True)
            sent = {**right, **headers}
            if body:
                sent |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
            for name, value in sent.items():
                if value is not None:
                    connection.putheader(name, value)
            connection.endheaders()
            with suppress(OSError):  # Refused before all was read: the answer is there all the same.
                connection.send(body)
            answer = connection.getresponse()
            content = answer.read()
            return Reply(answer.status, json.loads(content) if content.startswith(b"{") else content)
        finally:
            connection.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with start_server(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture
def door(server: RunningServer) -> Door:
    return Door(server)


REFUSED: dict[str, tuple[dict[str, str | None], int]] = {
    "no token": ({"Authorization": None}, 403),
    "wrong token": ({"Authorization": "Bearer wrong"}, 401),
    "empty token": ({"Authorization": "Bearer "}, 403),
    "other scheme": ({"Authorization": "Basic YTpi"}, 403),
    "foreign host": ({"Host": "evil.example"}, 403),
    "foreign host with port": ({"Host": "evil.example:6443"}, 403),
    "foreign host that looks like ours": ({"Host": "127.0.0.1.evil.example"}, 403),
    "foreign origin": ({"Origin": "https://evil.example"}, 403),
    "no origin": ({"Origin": "null"}, 403),
}


@pytest.mark.parametrize(("headers", "code"), REFUSED.values(), ids=REFUSED)
def test_refused(door: Door, headers: dict[str, Any], code: int) -> None:
    reply = door.knock("GET", MAPS, **headers)
    assert reply.code == code, reply
    assert reply.body["kind"] == "Status"
    assert reply.body["code"] == code


LET_IN: dict[str, dict[str, str | None]] = {
    "as it should be": {},
    "localhost": {"Host": "localhost"},
    "in a cluster": {"Host": "kubernetes.default.svc"},
    "IPv6": {"Host": "[::1]:6443"},
    "own origin": {"Origin": "https://127.0.0.1"},
}


@pytest.mark.parametrize("headers", LET_IN.values(), ids=LET_IN)
def test_let_in(door: Door, headers: dict[str, Any]) -> None:
    assert door.knock("GET", MAPS, **headers).code == 200


def test_oversized_body(door: Door) -> None:
    almost = json.dumps(configmap("almost", k="x" * (900 * 1024))).encode()
    assert door.knock("POST", MAPS, almost).code == 201
    too_long = json.dumps(configmap("b", k="x" * MAX_BODY_BYTES)).encode()
    reply = door.knock("POST", MAPS, too_long)
    assert (reply.code, reply.body["reason"]) == (413, "RequestEntityTooLarge")
    assert reply.body["message"] == f"Request entity too large: limit is {MAX_BODY_BYTES}"
    assert door.knock("GET", f"{MAPS}/b").code == 404


def test_oversized_body_without_a_length(door: Door) -> None:
    piece = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    many = piece * (MAX_BODY_BYTES // 0x10000 + 2)
    connection = HTTPSConnection("127.0.0.1", door.port, context=ssl._create_unverified_context())
    connection.putrequest("POST", MAPS)
    connection.putheader("Authorization", f"Bearer {door.token}")
    connection.putheader("Content-Type", "application/json")
    connection.putheader("Transfer-Encoding", "chunked")
    connection.endheaders()
    with suppress(OSError):
        connection.send(many + b"0\r\n\r\n")
    assert connection.getresponse().status == 413
    connection.close()


def test_health_needs_no_token(door: Door) -> None:
    assert door.knock("GET", "/readyz", Authorization=None).code == 200


def test_kubeconfig_is_for_its_owner_only(server: RunningServer) -> None:
    assert stat.S_IMODE(server.kubeconfig.stat().st_mode) == 0o600
