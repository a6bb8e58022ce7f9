"""What is told of a pod that waits for long, under virtual time."""

from __future__ import annotations

from moorage.client.kinds import CORE_EVENT, NODE, POD
from moorage_cluster.local import LocalSettings
from tests.up.harness import ClusterHarness
from tests.up.objects import node, pod


def test_what_fails_again_and_again_is_one_series() -> None:
    with ClusterHarness(LocalSettings(nodes=1)) as world:
        world.create(POD, pod("large", cpu="64"))
        world.advance(1800, step=10)  # Even without any news, it is tried again every five minutes.
        told = [each for each in world.list(CORE_EVENT) if each["reason"] == "FailedScheduling"]
        counts = sorted((each.get("series") or {}).get("count", 1) for each in told)
        assert len(told) == 2  # The first one is about the pod before its condition said the same.
        assert counts[0] == 1
        assert counts[1] >= 4
        world.create(NODE, node("large", cpu="65"))
        world.advance(30)
        assert world.phases() == {"large": "Running"}
