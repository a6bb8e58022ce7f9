"""The nodes that a pod requires: evaluated once for all plugins that read them, until a node changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from moorage.api.selectors import RequiredNodes, required_nodes
from moorage.cluster.cache import Cache
from moorage.engine.engine import Engine
from moorage.framework.interface.nodes import Nodes
from tests.builders import REQUIRED, ZONE, expression, make_framework, make_node, make_pod, spread

SSD = expression("disk", "In", "ssd", "nvme")


def term(*expressions: Any, **fields: Any) -> dict[str, Any]:
    return {"matchExpressions": list(expressions), **fields}


def affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}


NAMED = {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["b"]}]}

REQUIREMENTS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "one label": {"node_selector": {"disk": "ssd"}},
    "two labels": {"node_selector": {"disk": "ssd", "size": "large"}},
    "one of several terms": {"affinity": affinity(term(SSD), term(expression("size", "Exists")))},
    "several conditions": {"affinity": affinity(term(SSD, expression("size", "NotIn", "small")))},
    "labels and terms": {"node_selector": {"disk": "ssd"}, "affinity": affinity(term(SSD, **NAMED))},
    "a term without conditions": {"affinity": affinity(term())},
}


def cluster() -> Cache:
    return Cache(
        (
            make_node("a", labels={"disk": "ssd", "size": "large", ZONE: "x"}),
            make_node("b", labels={"disk": "ssd", ZONE: "x"}),
            make_node("c", labels={"disk": "nvme", "size": "small", ZONE: "y"}),
            make_node("d", labels={ZONE: "y"}),
        )
    )


@pytest.mark.parametrize("parts", REQUIREMENTS.values(), ids=REQUIREMENTS)
def test_all_nodes_at_once_and_single_nodes_are_required_alike(parts: dict[str, Any]) -> None:
    snapshot, wanted = cluster().snapshot(), required_nodes(make_pod("p", **parts))
    expected = [wanted.matches(node) for node in snapshot.nodes]
    everywhere = Nodes(snapshot)
    assert everywhere.required_by(wanted).tolist() == expected
    assert everywhere.required_by(wanted) is everywhere.required_by(wanted)
    assert Nodes(snapshot, np.array([3, 1])).required_by(wanted).tolist() == [expected[3], expected[1]]


def test_plugins_share_the_nodes_that_a_pod_requires(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated: list[RequiredNodes] = []
    evaluate = Nodes._required_by

    def noting(self: Nodes, wanted: RequiredNodes) -> Any:
        evaluated.append(wanted)
        return evaluate(self, wanted)

    monkeypatch.setattr(Nodes, "_required_by", noting)
    cache, framework, engine = cluster(), make_framework(), Engine()

    def decide(disk: str) -> set[str]:
        constraint = spread(ZONE, {"matchLabels": {"app": "a"}}, hard=False)
        pod = make_pod(
            "p", node_selector={"disk": disk}, topology_spread_constraints=[constraint], labels={"app": "a"}
        )
        return set(engine.decide(framework, pod, cache.snapshot()).feasible.names)

    assert decide("ssd") == {"a", "b"}
    assert len(evaluated) == 1, "NodeAffinity and PodTopologySpread read the same"
    assert decide("nvme") == {"c"}
    cache.put_node(make_node("d", labels={"disk": "nvme", ZONE: "y"}))
    assert decide("nvme") == {"c", "d"}
