"""NodeDeclaredFeatures: features that a pod needs and a kubelet declares."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.plugins.node_declared_features import (
    MISSING_FEATURES,
    RESTART_ALL_CONTAINERS,
    USER_NAMESPACES_HOST_NETWORK,
)
from tests.builders import container, make_node, make_pod
from tests.plugins.plugin_rules import refusals

RESTARTING = container(
    restart_policy="Never",
    restart_policy_rules=[
        {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
    ],
)

RULES: dict[str, tuple[dict[str, Any], list[str], str]] = {
    "most pods need no feature": ({}, [], ""),
    "restarting all containers needs its feature": ({"containers": [RESTARTING]}, [], MISSING_FEATURES),
    "a node that declares it fits": ({"containers": [RESTARTING]}, [RESTART_ALL_CONTAINERS], ""),
    "an init container may need it as well": ({"init_containers": [RESTARTING]}, [], MISSING_FEATURES),
    "host network with user namespaces needs its feature": (
        {"host_network": True, "host_users": False},
        [RESTART_ALL_CONTAINERS],
        MISSING_FEATURES,
    ),
    "one of two features is not enough": (
        {"host_network": True, "host_users": False, "containers": [RESTARTING]},
        [RESTART_ALL_CONTAINERS],
        MISSING_FEATURES,
    ),
    "every feature is declared": (
        {"host_network": True, "host_users": False, "containers": [RESTARTING]},
        [RESTART_ALL_CONTAINERS, USER_NAMESPACES_HOST_NETWORK],
        "",
    ),
    "host network alone needs none": ({"host_network": True}, [], ""),
    "a user namespace alone needs none": ({"host_users": False}, [], ""),
}


@pytest.mark.parametrize(("spec", "declared", "reason"), RULES.values(), ids=RULES.keys())
def test_filter(spec: dict[str, Any], declared: list[str], reason: str) -> None:
    node = make_node("n", features=declared)
    assert refusals("NodeDeclaredFeatures", make_pod("p", **spec), node) == {"n": reason}
