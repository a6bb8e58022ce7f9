"""NodeResourcesBalancedAllocation: how a pod changes the balance of the resources in use on a node.

balance = 100 * (1 - standard deviation of the fractions in use); score = 50 + (50 + after - before) / 2.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import make_node, make_pod
from tests.plugins.plugin_rules import scores

Requests = dict[str, str]

RULES: dict[str, tuple[Requests, Requests, dict[str, int]]] = {
    # Fractions 1/2 and 1/2 on both nodes.
    "a pod that keeps the balance is neutral": ({"cpu": "2", "memory": "4Gi"}, {}, {"used": 75, "empty": 75}),
    # From 0 and 0 to 1 and 0: a deviation of 1/2.
    "a pod that breaks the balance": ({"cpu": "4"}, {}, {"used": 50, "empty": 50}),
    # From 1/2 and 0 (a deviation of 1/4) to 1/2 and 1/2.
    "a pod that restores the balance is best": ({"memory": "4Gi"}, {"cpu": "2"}, {"used": 87, "empty": 62}),
    "a pod that requests nothing is not scored": ({}, {"cpu": "2"}, {}),
    # 5 of 4 cpus count as all 4: from 1 and 0 to 1 and 0.
    "more than there is counts as full": ({"cpu": "1"}, {"cpu": "4"}, {"used": 75, "empty": 68}),
}


@pytest.mark.parametrize(("requests", "existing", "expected"), RULES.values(), ids=RULES.keys())
def test_score(requests: Requests, existing: Requests, expected: dict[str, int]) -> None:
    objects = make_node("used"), make_node("empty"), make_pod("existing", on="used", requests=existing)
    pod = make_pod("p", requests=requests)
    assert scores("NodeResourcesBalancedAllocation", pod, *objects) == expected


def test_only_configured_resources_count() -> None:
    args: dict[str, Any] = {"resources": [{"name": "memory", "weight": 1}]}
    pod = make_pod("p", requests={"cpu": "4"})
    nodes = make_node("a"), make_node("b")
    assert scores("NodeResourcesBalancedAllocation", pod, *nodes, args=args) == {}
