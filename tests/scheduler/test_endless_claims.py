"""Pods whose claims would keep the scheduler busy: they are put back, and others are scheduled."""

from __future__ import annotations

from itertools import pairwise

import pytest

from bench.worst.claims import CLAIMS, DRIVER, slices
from moorage.api.manifests import Manifest
from moorage.client.kinds import DEVICE_CLASS, RESOURCE_CLAIM, RESOURCE_SLICE
from moorage.plugins.dynamic_resources.plugin import DynamicResources
from moorage.plugins.dynamic_resources.pod_devices import work_limit
from tests.scheduler.running import SchedulerHarness, in_harness

SELECTOR = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
GPU = {"metadata": {"name": "gpu"}, "spec": {"selectors": [SELECTOR]}}
USES = [{"name": "c", "resourceClaimName": "c"}]


def claim(name: str) -> Manifest:
    return {"metadata": {"name": "c", "namespace": "default"}, "spec": {"devices": CLAIMS[name]}}


@pytest.mark.parametrize("name", ["a loop within a loop", "32 requests on eight devices"])
def test_a_pod_with_an_endless_claim_is_tried_at_growing_intervals(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts: list[str] = []
    original_filter = DynamicResources.filter
    monkeypatch.setattr(
        DynamicResources,
        "filter",
        lambda self, cycle, pod, nodes: attempts.append(pod.name) or original_filter(self, cycle, pod, nodes),
    )

    async def scenario(harness: SchedulerHarness) -> None:
        harness.scheduler()
        await harness.add_node("n1")
        await harness.client.create(DEVICE_CLASS, "", GPU)
        await harness.client.create(RESOURCE_SLICE, "", slices("n1"))
        await harness.client.create(RESOURCE_CLAIM, "default", claim(name))
        await harness.add_pod("endless", resourceClaims=USES)
        moments = []
        for _ in range(160):
            before = len(attempts)
            await harness.passes(0.25)
            if len(attempts) > before:
                moments.append(harness.clock.now())
        condition = await harness.condition("endless")
        assert (condition["status"], condition["reason"]) == ("False", "SchedulerError")
        assert condition["message"] == (
            'running "DynamicResources" filter plugin: allocating devices exceeds the limit of '
            f"{work_limit(1)} units of work in one attempt"
        )
        pauses = [after - before for before, after in pairwise(moments)]
        assert pauses[:4] == sorted(pauses[:4])
        assert pauses[3] >= 8
        await harness.add_pod("other")
        await harness.passes(1)
        assert await harness.node_of("other") == "n1"

    in_harness(scenario)
