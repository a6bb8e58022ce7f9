"""Plans for clusters in Python; that they are right is tested where they are made."""

from __future__ import annotations

import asyncio

import pytest

from moorage import Cluster, InputError
from tests.research.making import pod

SHAPE = "name=a,count=3,cpu=4,memory=8Gi"
CATALOGUE = [
    {"name": "small", "pricePerHour": 1.0, "resources": {"cpu": "4", "memory": "8Gi"}},
    {"name": "large", "pricePerHour": 1.5, "resources": {"cpu": "8", "memory": "16Gi"}},
]


def test_plans_are_of_the_cluster_as_it_is() -> None:
    cluster = Cluster.from_shapes(SHAPE)
    assert cluster.plan.fit(pod("web", "2")).result.pods == 6
    cluster.schedule(pod("first", "3"))
    before = cluster.objects
    plan = cluster.plan.fit(pod("web", "2"))
    assert (plan.result.pods, plan.result.runs_out) == (4, "cpu")
    assert plan.to_pandas()["pods"].to_list() == [4]
    assert sum(plan.to_polars("nodes")["pods"]) == 4
    drain = cluster.plan.drain(cluster.pods[0].spec.node_name)
    assert not drain.result.succeeds
    assert len(cluster.plan.failures().result.domains) == 3
    assert cluster.plan.consolidation().result.complete
    assert cluster.objects == before


def test_nodes_are_planned_for_what_is_pending_also_in_a_notebook() -> None:
    cluster = Cluster.from_shapes(SHAPE)
    assert cluster.schedule(pod("large", "7")).node is None

    async def notebook() -> float:
        return cluster.plan.nodes(CATALOGUE).result.cost_per_hour

    assert asyncio.run(notebook()) == 1.5


def test_bad_input_is_one_line() -> None:
    plan = Cluster.from_shapes(SHAPE).plan
    for call in (lambda: plan.drain("none"), lambda: plan.nodes([{"name": "x"}]), lambda: plan.fit([])):
        with pytest.raises(InputError):
            call()
