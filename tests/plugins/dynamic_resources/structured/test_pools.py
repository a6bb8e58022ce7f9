"""Pools: which slices count, what is wrong with some, and the order devices are tried in."""

from __future__ import annotations

import pytest

from moorage.api.devices import ResourceSlice
from moorage.cluster.object_tables import ObjectTable
from moorage.plugins.dynamic_resources.structured.inventory import Inventory
from tests.builders import expression, make_node
from tests.plugins.dynamic_resources.device_objects import device, pool_slice

NODE = make_node("n1", labels={"zone": "a"})


def see(*slices: ResourceSlice, node: str = "n1") -> Inventory:
    table: ObjectTable[ResourceSlice] = ObjectTable()
    for each in slices:
        table.put(each)
    inventory = Inventory()
    inventory.refresh(table)
    return inventory


def tried(*slices: ResourceSlice) -> list[str]:
    """The devices that node n1 would try, as pool/device; a pool that cannot be used as pool!."""
    node_devices = see(*slices).seen_from(NODE)
    bad = [
        f"{view.id[1]}!{'incomplete' if view.incomplete else 'invalid'}"
        for view in node_devices.views
        if not view.usable
    ]
    good = [
        f"{entry.id.pool}/{entry.id.device}"
        for block in node_devices.blocks
        for entry, reachable in zip(block.entries, block.reachable, strict=True)
        if reachable
    ]
    return good + bad


ZONE_A = {"nodeSelectorTerms": [{"matchExpressions": [expression("zone", "In", "a")]}]}
ZONE_B = {"nodeSelectorTerms": [{"matchExpressions": [expression("zone", "In", "b")]}]}
SLOW = device("x", bindingConditions=["ready"])

CASES: dict[str, tuple[list[ResourceSlice], list[str]]] = {
    "devices in their order": ([pool_slice("p", "b", "a")], ["p/b", "p/a"]),
    "pools by driver, then by name": (
        [
            pool_slice("s1", "x", pool="z", driver="a.example.com"),
            pool_slice("s2", "x", pool="y", driver="b.example.com"),
            pool_slice("s3", "x", pool="b", driver="a.example.com"),
        ],
        ["b/x", "z/x", "y/x"],
    ),
    "slices by name": (
        [pool_slice("s2", "x", pool="p", count=2), pool_slice("s1", "y", pool="p", count=2)],
        ["p/y", "p/x"],
    ),
    "pools whose devices take time come last": (
        [pool_slice("a", SLOW, "y"), pool_slice("b", "x")],
        ["b/x", "a/x", "a/y"],
    ),
    "another node's": ([pool_slice("p", "x", node="n2")], []),
    "on all nodes": ([pool_slice("p", "x", node=None, allNodes=True)], ["p/x"]),
    "on nodes with a label": (
        [
            pool_slice("p", "x", node=None, nodeSelector=ZONE_A),
            pool_slice("q", "x", node=None, nodeSelector=ZONE_B),
        ],
        ["p/x"],
    ),
    "device by device": (
        [
            pool_slice(
                "p",
                device("a", nodeName="n1"),
                device("b", nodeName="n2"),
                device("c", allNodes=True),
                device("d", nodeSelector=ZONE_B),
                node=None,
                perDeviceNodeSelection=True,
            )
        ],
        ["p/a", "p/c"],
    ),
    "nowhere": ([pool_slice("p", "x", node=None)], []),
    "an old generation": (
        [pool_slice("s1", "x", pool="p"), pool_slice("s2", "y", pool="p", generation=2)],
        ["p/y"],
    ),
    "a new generation on other nodes only": (
        [
            pool_slice("s1", "x", pool="p", count=2),
            pool_slice("s2", "y", pool="p", generation=2, node="n2"),
        ],
        [],
    ),
    "a slice is missing": ([pool_slice("p", "x", count=2)], ["p!incomplete"]),
    "the rest is on other nodes": (
        [pool_slice("s1", "x", pool="p", count=2), pool_slice("s2", "y", pool="p", count=2, node="n2")],
        ["p/x"],
    ),
    "two devices of one name": (
        [pool_slice("s1", "x", pool="p", count=2), pool_slice("s2", "x", pool="p", count=2)],
        ["p!invalid"],
    ),
    "counters": (
        [
            pool_slice("s1", pool="p", count=2, counters={"m": "1"}),
            pool_slice("s2", device("x", consumes={"m": "1"}), pool="p", count=2),
        ],
        ["p/x"],
    ),
    "a counter that does not exist": (
        [
            pool_slice("s1", pool="p", count=2, counters={"m": "1"}),
            pool_slice("s2", device("x", consumes={"k": "1"}), pool="p", count=2),
        ],
        ["p!invalid"],
    ),
    "a counter set that does not exist": ([pool_slice("p", device("x", consumes={"m": "1"}))], ["p!invalid"]),
    "two counter sets of one name": (
        [
            pool_slice("s1", pool="p", count=2, counters={"m": "1"}),
            pool_slice("s2", pool="p", count=2, counters={"m": "1"}),
        ],
        ["p!invalid"],
    ),
    "another node's pool with counters": (
        [
            pool_slice("s1", pool="p", count=2, counters={"m": "1"}, node="n2"),
            pool_slice("s2", device("x", consumes={"m": "1"}), pool="p", count=2, node="n2"),
        ],
        [],
    ),
    "another node's pool with wrong counters": (
        [
            pool_slice("s1", pool="p", count=2, counters={"m": "1"}, node="n2"),
            pool_slice("s2", device("x", consumes={"k": "1"}), pool="p", count=2, node="n2"),
        ],
        ["p!invalid"],
    ),
    "another node's pool with counters, of which a slice is missing": (
        [pool_slice("s1", pool="p", count=2, counters={"m": "1"}, node="n2")],
        ["p!incomplete"],
    ),
}


@pytest.mark.parametrize(("slices", "expected"), CASES.values(), ids=CASES)
def test_a_node_sees(slices: list[ResourceSlice], expected: list[str]) -> None:
    assert tried(*slices) == expected
    assert tried(*reversed(slices)) == expected


def test_changes_are_followed() -> None:
    table: ObjectTable[ResourceSlice] = ObjectTable()
    inventory = Inventory()

    def names() -> list[str]:
        inventory.refresh(table)
        blocks = inventory.seen_from(NODE).blocks
        return [str(entry.id.device) for block in blocks for entry in block.entries]

    assert names() == []
    table.put(pool_slice("p", "x"))
    assert names() == ["x"]
    table.put(pool_slice("q", "y"))
    table.put(pool_slice("p", "z", generation=2))
    assert names() == ["z", "y"]
    table.remove("", "p")
    assert names() == ["y"]
    table.put(pool_slice("q", "y", node="n2"))
    assert names() == []


def test_nodes_with_equal_pools_have_one_shape() -> None:
    inventory = see(
        pool_slice("p1", device("a", {"model": "x"}), node="n1"),
        pool_slice("p2", device("b", {"model": "x"}), node="n2"),
        pool_slice("p3", device("a", {"model": "y"}), node="n3"),
    )
    shapes = [inventory.seen_from(make_node(name)).views[0].shape for name in ("n1", "n2", "n3")]
    assert shapes[0] is shapes[1]
    assert shapes[0] is not shapes[2]
