"""Numa in a running scheduler: the custom resource, reports of an agent, and pods that wait for one."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
import yaml

from moorage.client.kinds import Kind
from moorage.optional_plugins.numa.topology import NODE_RESOURCE_TOPOLOGY
from moorage.scheduler.observers import MetricsObserver
from moorage.services.metrics import Metrics
from tests.builders import Manifest
from tests.optional_plugins.numa.zones import topology_manifest, zone
from tests.optional_plugins.shown_examples import ROOT
from tests.scheduler.running import SchedulerHarness, in_harness

DEFINITIONS = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False
)
OURS = yaml.safe_load((ROOT / "examples/numa/scheduler.yaml").read_text())
THEIRS = {
    "apiVersion": OURS["apiVersion"],
    "kind": OURS["kind"],
    "profiles": [
        {
            "plugins": {
                point: {"enabled": [{"name": "NodeResourceTopologyMatch"}]} for point in ("filter", "score")
            },
            "pluginConfig": [
                {
                    "name": "NodeResourceTopologyMatch",
                    "args": {"scoringStrategy": {"type": "MostAllocated"}, "cacheResyncPeriodSeconds": 5},
                }
            ],
        }
    ],
}


def report(first: str, second: str) -> Manifest:
    """What is left of four cpus in each of two zones of n1."""
    left = (first, second)
    return topology_manifest(
        "n1", [zone(number, {"cpu": ("4", "4", cpu)}) for number, cpu in enumerate(left)]
    )


async def add(harness: SchedulerHarness, name: str, cpu: str) -> None:
    resources = {"limits": {"cpu": cpu, "memory": "1Gi"}}
    containers = [{"name": "main", "image": "registry.example/app:1", "resources": resources}]
    await harness.add_pod(name, containers=containers)


@pytest.mark.parametrize("config", [OURS, THEIRS], ids=["the example", "that of scheduler-plugins"])
def test_a_pod_waits_until_an_agent_reports_that_a_zone_has_room(config: Any) -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        definition = yaml.safe_load((ROOT / "examples/numa/crd.yaml").read_text())
        await harness.client.create(DEFINITIONS, "", definition)
        await harness.passes(1)
        await harness.client.create(NODE_RESOURCE_TOPOLOGY, "", report("3", "4"))
        await harness.add_node("n1", cpu="8")
        metrics = Metrics()
        scheduler = harness.scheduler(config=config, observer=MetricsObserver(metrics))
        await add(harness, "one", "2")
        await harness.passes(5)
        assert await harness.node_of("one") == "n1"
        await add(harness, "two", "3")
        await harness.passes(5)
        assert "1 cannot align container" in (await harness.condition("two"))["message"]
        zones = report("1", "4")["zones"]
        await harness.client.patch(NODE_RESOURCE_TOPOLOGY, "", "n1", {"zones": zones}, "merge")
        await harness.passes(20)
        assert await harness.node_of("two") == "n1"
        lines = metrics.text().decode().splitlines()
        assert 'moorage_numa_objects_total{fingerprint="none"} 1' in lines
        await harness.check(scheduler)

    in_harness(scenario)


def test_the_printed_role_allows_to_watch_the_objects() -> None:
    words = ["manifests", "--config", str(ROOT / "examples/numa/scheduler.yaml"), "--node", "n1"]
    ended = subprocess.run(
        [sys.executable, "-m", "moorage", *words],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "200"},
    )
    rules = [
        rule
        for each in yaml.safe_load_all(ended.stdout)
        if each["kind"] == "ClusterRole"
        for rule in each["rules"]
        if "noderesourcetopologies" in rule.get("resources", ())
    ]
    assert [(rule["apiGroups"], sorted(rule["verbs"])) for rule in rules] == [
        (["topology.node.k8s.io"], ["list", "watch"])
    ]
