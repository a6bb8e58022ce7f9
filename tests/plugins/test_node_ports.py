"""NodePorts: host ports by address and protocol."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.cluster.cache import Cache
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.nodes import Nodes
from moorage.plugins import node_ports
from moorage.plugins.node_ports import PORT_TAKEN, NodePorts
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


def test_sets_of_ports_without_a_wanted_one_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    collide = node_ports._collide
    monkeypatch.setattr(
        node_ports, "_collide", lambda wanted, used: seen.append(used) or collide(wanted, used)
    )
    cache = Cache(make_node(f"n{n}") for n in range(50))
    for number in range(50):
        taken = [container(ports=[port(8000 + number), port(9000)])]
        cache.put(make_pod(f"p{number}", on=f"n{number}", containers=taken))
    cache.snapshot()
    cache.remove_pod(make_pod("p8"))
    pod = make_pod("p", containers=[container(ports=[port(8007), port(8008)])])
    result = NodePorts().filter(CycleState(), pod, Nodes(cache.snapshot()))
    assert result.codes is not None
    assert [name for name, code in zip(cache.snapshot().names, result.codes, strict=True) if code] == ["n7"]
    assert len(seen) == 1
