"""What would be if pods came to a node, or went: a node alone says the same as a column of nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from moorage.cluster.cache import Cache
from moorage.cluster.pod_table import PodInfo
from moorage.framework.interface.hypothetical_pods import HypotheticalPods
from moorage.framework.interface.nodes import Nodes, NodeView
from tests.builders import make_node, make_pod, port

GPU = "example.com/gpu"
NAMES = ("web", "db", "batch")
NEEDS = {"cpu": 4000, "memory": 7 << 30, GPU: 1}
"""Amounts of which a node has too little, or enough, as pods come and go."""


def a_node() -> NodeView:
    """A node with three pods, between two empty ones."""
    cache = Cache(make_node(name, allocatable={"cpu": "8", "memory": "8Gi", "pods": "9"}) for name in "xyz")
    cache.put_pod(make_pod("web", uid="web", on="y", requests={"cpu": "1", "memory": "1Gi"}))
    cache.put_pod(make_pod("db", uid="db", on="y", requests={"cpu": "2", GPU: "1"}))
    cache.put_pod(make_pod("batch", uid="batch", on="y", containers=[{"name": "c", "ports": [port(80)]}]))
    snapshot = cache.snapshot()
    return NodeView(snapshot, snapshot.row_of["y"])


def contents_of(node: NodeView) -> dict[str, Any]:
    return {
        "pods": [info.pod.name for info in node.pods],
        "pod_count": node.pod_count,
        "requested": {name: node.requested(name) for name in ("cpu", "memory", GPU)},
        "scoring": {name: node.scoring_requested(name) for name in ("cpu", "memory", GPU)},
        "free": {name: node.free(name) for name in NEEDS},
        "short": node.short_of(NEEDS),
    }


def contents_by_columns(nodes: Nodes) -> dict[str, Any]:
    free = {name: nodes.allocatable(name) - nodes.requested(name) for name in NEEDS}
    return {
        "pods": [info.pod.name for info in nodes.pods_on(0)],
        "pod_count": int(nodes.pod_count[0]),
        "requested": {name: int(nodes.requested(name)[0]) for name in ("cpu", "memory", GPU)},
        "scoring": {name: int(nodes.scoring_requested(name)[0]) for name in ("cpu", "memory", GPU)},
        "free": {name: int(amount[0]) for name, amount in free.items()},
        "short": [name for name, amount in NEEDS.items() if free[name][0] < amount],
    }


def some(node: NodeView, *names: str) -> list[PodInfo]:
    return [node.snapshot.pods_of(node.row)[name] for name in names]


INCOMING = (PodInfo(make_pod("boss", uid="boss", requests={"cpu": "4", "memory": "2Gi"})),)


@pytest.mark.parametrize(
    "incoming", [pytest.param((), id="nobody comes"), pytest.param(INCOMING, id="one comes")]
)
@pytest.mark.parametrize(
    "removed", [(), ("web",), ("db", "batch"), NAMES], ids=lambda removed: f"without {removed}"
)
def test_a_node_says_the_same_as_its_columns(removed: tuple[str, ...], incoming: tuple[PodInfo, ...]) -> None:
    now = a_node()
    node = NodeView(now.snapshot, now.row, incoming).without(some(now, *removed))
    assert contents_of(node) == contents_by_columns(node.as_nodes())
    assert contents_of(node)["pods"] == [
        *(name for name in NAMES if name not in removed),
        *("boss" for _ in incoming),
    ]


def test_pods_can_go_one_after_the_other_and_be_put_back() -> None:
    now = a_node()
    before = contents_of(now)
    web, db = some(now, "web", "db")
    assert contents_of(now.without([web]).without([db])) == contents_of(now.without([db, web]))
    assert contents_of(now.without([web, db]).putting_back(db)) == contents_of(now.without([web]))
    assert contents_of(now.without([web]).putting_back(web)) == before
    assert contents_of(now) == before, "nothing has changed"


def test_filters_of_one_node_see_hypothetically_removed_pods() -> None:
    now = a_node()
    snapshot = now.snapshot
    db = snapshot.pods.rows_of(["db"])
    changes = HypotheticalPods(snapshot, 2, np.array([1]), np.array(db), [(0, INCOMING[0])])
    rows = np.array([snapshot.row_of["x"], now.row])
    first, second = Nodes(snapshot, rows, changes)
    assert [info.pod.name for info in first.pods] == ["boss"]
    assert [info.pod.name for info in second.pods] == ["web", "batch"]
    assert second.requested("cpu") == 1000


def test_pods_on_each_node_are_as_if_they_were_added_one_by_one() -> None:
    node = a_node()
    rows, ports = np.arange(3), PodInfo(make_pod("c", containers=[{"name": "c", "ports": [port(81)]}]))
    several = [*INCOMING, *INCOMING, ports]
    added = [(index, info) for index in range(3) for info in several]
    one_by_one = Nodes(node.snapshot, rows, HypotheticalPods(node.snapshot, 3, added=added))
    on_each = Nodes(node.snapshot, rows, HypotheticalPods(node.snapshot, 3, on_each=several))
    for nodes in ((one_by_one, on_each), (one_by_one.at(rows[1:]), on_each.at(rows[1:]))):
        expected, found = map(contents_by_columns, nodes)
        assert found == expected
        expected_ports, found_ports = (
            [sorted(each.ports.vocabulary.values[code]) for code in each.ports.codes] for each in nodes
        )
        assert found_ports == expected_ports
    assert on_each.hypothetical_pods is not None
    assert on_each.hypothetical_pods.indices() == [0, 1, 2]
    assert on_each.hypothetical_pods.adding([(0, ports)]).all_added() == [*several, ports]
