"""Ports for servers that are told where to listen."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from moorage.http.free_port import free_port

EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")


def test_a_port_that_no_connection_takes() -> None:
    ports = {free_port() for _ in range(20)}
    assert len(ports) > 1
    if EPHEMERAL.exists():
        assert max(ports) < int(EPHEMERAL.read_text().split()[0])


def test_a_port_in_use_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    free = free_port()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        tried = [free, taken.getsockname()[1]]
        monkeypatch.setattr("moorage.http.free_port.random.choice", lambda _: tried.pop())
        assert free_port() == free
