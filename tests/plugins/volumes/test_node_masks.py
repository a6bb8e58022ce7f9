"""Masks by node follow changes of nodes, evaluate only those, and are bounded."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from moorage.api.node import Node
from moorage.cluster.cache import Cache
from moorage.framework.interface.nodes import Nodes
from moorage.plugins.volumes import node_masks
from moorage.plugins.volumes.node_masks import NodeMasks
from tests.builders import ZONE, make_node
from tests.plugins.volumes.volume_objects import pod_with
from tests.strategies import one_of

MEMBERS = tuple(make_node(name, labels={ZONE: zone}) for name in "abc" for zone in "xy")


class Counted:
    """Whether nodes are in a zone; with the number of nodes of each evaluation."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def __call__(self, zone: str, nodes: Nodes) -> NDArray[np.bool_]:
        self.sizes.append(len(nodes))
        return nodes.label(ZONE).is_in(frozenset((zone,)))


@given(st.lists(st.tuples(st.booleans(), one_of(*MEMBERS), st.booleans()), max_size=12))
def test_masks_follow_nodes(changes: list[tuple[bool, Node, bool]]) -> None:
    cache, masks = Cache([make_node("n")]), NodeMasks(Counted())
    for is_put, node, is_read in changes:
        (cache.put if is_put else cache.remove)(node)
        if is_read:
            nodes = Nodes(cache.snapshot())
            for view in (nodes, nodes.where(np.arange(len(nodes)) % 2 == 0)):
                for zone in "xy":
                    expected = [each.labels.get(ZONE) == zone for each in view]
                    assert masks.mask(zone, view).tolist() == expected


def test_only_changed_nodes_are_evaluated_again() -> None:
    cache, counted = Cache([make_node(name, labels={ZONE: "x"}) for name in "abc"]), Counted()
    masks = NodeMasks(counted)
    before = masks.mask("x", Nodes(cache.snapshot()))
    cache.put(pod_with(on="a"))
    assert masks.mask("x", Nodes(cache.snapshot())).tolist() == [True, True, True]
    cache.put(make_node("b"))
    assert masks.mask("x", Nodes(cache.snapshot())).tolist() == [True, False, True]
    assert counted.sizes == [3, 1]
    assert before.tolist() == [True, True, True]


def test_masks_are_bounded_and_the_least_recently_used_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_masks, "_MAX_BYTES", 10_000)
    nodes, counted = Nodes(Cache([make_node("n", labels={ZONE: "9"})]).snapshot()), Counted()
    masks = NodeMasks(counted)
    for number in range(50):
        assert masks.mask(str(number), nodes).tolist() == [number == 9]
        masks.mask("0", nodes)
    assert len(masks) <= 10
    assert len(counted.sizes) == 50
