"""NodeUnschedulable: cordoned nodes."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.plugins.node_unschedulable import UNSCHEDULABLE
from tests.builders import make_node, make_pod
from tests.plugins.plugin_rules import refusals

KEY = "node.kubernetes.io/unschedulable"

RULES: dict[str, tuple[list[dict[str, Any]], str]] = {
    "a cordoned node is refused": ([], UNSCHEDULABLE),
    "a pod that tolerates the taint fits": (
        [{"key": KEY, "operator": "Exists", "effect": "NoSchedule"}],
        "",
    ),
    "a toleration without effect covers it": ([{"key": KEY, "operator": "Exists"}], ""),
    "a toleration of everything covers it": ([{"operator": "Exists"}], ""),
    "a toleration of another effect does not": (
        [{"key": KEY, "operator": "Exists", "effect": "NoExecute"}],
        UNSCHEDULABLE,
    ),
    "a toleration of another taint does not": ([{"key": "other", "operator": "Exists"}], UNSCHEDULABLE),
}


@pytest.mark.parametrize(("tolerations", "reason"), RULES.values(), ids=RULES.keys())
def test_filter(tolerations: list[dict[str, Any]], reason: str) -> None:
    pod = make_pod("p", tolerations=tolerations)
    nodes = make_node("cordoned", unschedulable=True), make_node("open")
    assert refusals("NodeUnschedulable", pod, *nodes) == {"cordoned": reason, "open": ""}
