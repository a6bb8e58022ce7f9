"""What is told of a pod that waits for long, under virtual time."""

from __future__ import annotations

from moorage.client.kinds import CORE_EVENT, NODE, POD
from moorage_cluster.local import LocalSettings
from tests.up.harness import ClusterHarness
from tests.up.objects import node, pod


def test_what_fails_again_and_again_is_one_series() -> None:
    with ClusterHarness(LocalSettings(nodes=1)) as harness:
        harness.create(POD, pod("large", cpu="64"))
        harness.advance(1800, step=10)  # Even without any news, it is tried again every five minutes.
        events = [each for each in harness.list(CORE_EVENT) if each["reason"] == "FailedScheduling"]
        counts = sorted((each.get("series") or {}).get("count", 1) for each in events)
        assert len(events) == 2  # The first one is about the pod before its condition said the same.
        assert counts[0] == 1
        assert counts[1] >= 4
        harness.create(NODE, node("large", cpu="65"))
        harness.advance(30)
        assert harness.phases() == {"large": "Running"}
