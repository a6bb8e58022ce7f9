"""NodeName: spec.nodeName."""

from __future__ import annotations

import pytest

from moorage.plugins.node_name import OTHER_NODE
from tests.builders import make_node, make_pod
from tests.plugins.plugin_rules import refusals

RULES = {
    "a pod without nodeName fits everywhere": ("", {"a": "", "b": ""}),
    "a pod with nodeName fits on that node only": ("a", {"a": "", "b": OTHER_NODE}),
    "a node that does not exist is no node": ("c", {"a": OTHER_NODE, "b": OTHER_NODE}),
}


@pytest.mark.parametrize(("node_name", "expected"), RULES.values(), ids=RULES.keys())
def test_filter(node_name: str, expected: dict[str, str]) -> None:
    pod = make_pod("p", on=node_name)
    assert refusals("NodeName", pod, make_node("a"), make_node("b")) == expected
