"""NodePorts: host ports by address and protocol."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.plugins.node_ports import PORT_TAKEN
from tests.builders import container, make_node, make_pod, port
from tests.plugins.plugin_rules import refusals

Port = dict[str, Any]

RULES: dict[str, tuple[list[Port], list[Port], str]] = {
    "no host port is wanted": ([], [port(80)], ""),
    "no host port is taken": ([port(80)], [], ""),
    "the same port is taken": ([port(80)], [port(80)], PORT_TAKEN),
    "another port is taken": ([port(80)], [port(81)], ""),
    "another protocol": ([port(80)], [port(80, "UDP")], ""),
    "another address": ([port(80, ip="10.0.0.1")], [port(80, ip="10.0.0.2")], ""),
    "every address is wanted": ([port(80, ip="0.0.0.0")], [port(80, ip="10.0.0.2")], PORT_TAKEN),
    "every address is taken": ([port(80, ip="10.0.0.1")], [port(80)], PORT_TAKEN),
    "one of two ports is taken": ([port(80), port(81)], [port(81)], PORT_TAKEN),
}


@pytest.mark.parametrize(("wanted", "taken", "reason"), RULES.values(), ids=RULES.keys())
def test_filter(wanted: list[Port], taken: list[Port], reason: str) -> None:
    existing = make_pod("existing", on="n", containers=[container(ports=taken)])
    pod = make_pod("p", containers=[container(ports=wanted)])
    assert refusals("NodePorts", pod, make_node("n"), make_node("free"), existing) == {
        "n": reason,
        "free": "",
    }
