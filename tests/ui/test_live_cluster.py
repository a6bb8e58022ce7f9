"""What the page learns of a cluster, from an embedded API server under virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from moorage.api.manifests import Manifest
from moorage.client.kinds import NODE, POD
from moorage.ui.scheduler_link import entries_of_conditions
from moorage.ui.sources.live_cluster import LiveCluster
from tests.apiserver.client import node
from tests.client.harness import ClientHarness, in_harness
from tests.scheduler.running import pod


def in_cluster(scenario: Callable[[ClientHarness, LiveCluster], Coroutine[Any, Any, None]]) -> None:
    """Run a scenario with a source that follows an empty cluster."""

    async def run(harness: ClientHarness) -> None:
        source = LiveCluster(harness.client, harness.clock, "a cluster")
        await source.check()
        following = asyncio.ensure_future(source.run())
        await harness.passes(1)
        await source.synced()
        await scenario(harness, source)
        following.cancel()
        await asyncio.wait((following,))

    in_harness(run)


def condition(**fields: str) -> Manifest:
    return {"status": {"conditions": [{"type": "PodScheduled", "status": "False", **fields}]}}


def test_nodes_and_pods_come_change_and_go() -> None:
    async def scenario(harness: ClientHarness, source: LiveCluster) -> None:
        client, timeline = harness.client, source.timeline
        assert timeline.state().nodes == {}
        await client.create(NODE, "", node("n1"))
        await client.create(POD, "default", pod("p1", cpu="250m"))
        await harness.passes(1)
        known = timeline.state()
        assert known.nodes["n1"].allocatable["cpu"] > 0
        assert (known.pods["default/p1"].node, known.pods["default/p1"].requests["cpu"]) == ("", 250)

        await client.patch(NODE, "", "n1", {"spec": {"unschedulable": True}}, "merge")
        await harness.passes(1)
        changes = timeline.since(known.revision)
        assert changes is not None
        assert changes.nodes["n1"] is not None
        assert changes.nodes["n1"].unschedulable
        assert changes.pods == {}

        await client.delete(POD, "default", "p1")
        await client.delete(NODE, "", "n1")
        await harness.passes(1)
        changes = timeline.since(changes.revision)
        assert changes is not None
        assert (changes.nodes, changes.pods) == ({"n1": None}, {"default/p1": None})
        assert (timeline.nodes, timeline.pods) == ({}, {})

    in_cluster(scenario)


def test_changes_of_one_moment_are_one_batch() -> None:
    async def scenario(harness: ClientHarness, source: LiveCluster) -> None:
        before = source.timeline.revision
        for number in range(20):
            await harness.client.create(POD, "default", pod(f"p{number}", cpu="1m"))
        await harness.passes(1)
        assert source.timeline.revision == before + 1

    in_cluster(scenario)


def test_the_queue_of_a_cluster_whose_scheduler_tells_none() -> None:
    async def scenario(harness: ClientHarness, source: LiveCluster) -> None:
        client = harness.client
        for name in ("new", "refused", "gated"):
            await client.create(POD, "default", pod(name, cpu="1m"))
        refused = condition(reason="Unschedulable", message="0/1 nodes are available.")
        await client.patch(POD, "default", "refused", refused, "merge", subresource="status")
        await client.patch(
            POD, "default", "gated", condition(reason="SchedulingGated"), "merge", subresource="status"
        )
        await harness.passes(1)
        entries = {each.pod: each for each in entries_of_conditions(source.timeline)}
        assert {key: each.place for key, each in entries.items()} == {
            "default/new": "active",
            "default/refused": "unschedulable",
            "default/gated": "gated",
        }
        assert entries["default/refused"].message == "0/1 nodes are available."

    in_cluster(scenario)
