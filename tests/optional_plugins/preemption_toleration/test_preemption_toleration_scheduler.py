"""PreemptionToleration in a running scheduler, and the examples of its page."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage.client.kinds import PRIORITY_CLASS
from moorage.optional_plugins.preemption_toleration.policy import (
    MINIMUM_PREEMPTABLE_PRIORITY,
    TOLERATION_SECONDS,
)
from moorage.scheduler.observers import MetricsObserver
from moorage.services.metrics import Metrics
from tests.optional_plugins.shown_examples import ROOT, check_examples
from tests.scheduler.running import SchedulerHarness, in_harness

OURS = yaml.safe_load((ROOT / "examples/preemption-toleration/scheduler.yaml").read_text())
SWAPPED = {"enabled": [{"name": "PreemptionToleration"}], "disabled": [{"name": "DefaultPreemption"}]}
AT_POST_FILTER = {
    "apiVersion": OURS["apiVersion"],
    "kind": OURS["kind"],
    "profiles": [{"plugins": {"postFilter": SWAPPED}}],
}


async def add_class(harness: SchedulerHarness, name: str, value: int, seconds: str) -> None:
    annotations = {MINIMUM_PREEMPTABLE_PRIORITY: "5000", TOLERATION_SECONDS: seconds}
    metadata = {"name": name, "annotations": annotations}
    body = {"apiVersion": PRIORITY_CLASS.api_version, "kind": "PriorityClass", "metadata": metadata}
    await harness.client.create(PRIORITY_CLASS, "", {**body, "value": value})


def shown(metrics: Metrics) -> list[str]:
    lines = metrics.text().decode().splitlines()
    return sorted(line for line in lines if line.startswith("moorage_preemption_toleration"))


@pytest.mark.parametrize("config", [OURS, AT_POST_FILTER], ids=["the example", "that of the model"])
def test_a_preemptor_gets_its_room_when_the_toleration_ends(config: Any) -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        await add_class(harness, "low", 10, "120")
        await harness.add_priority("high", 1000)
        await harness.add_node("n1", cpu="4")
        metrics = Metrics()
        scheduler = harness.scheduler(config=config, observer=MetricsObserver(metrics))
        await harness.add_pod("old", cpu="3", priorityClassName="low", terminationGracePeriodSeconds=0)
        await harness.passes(30)
        await harness.add_pod("new", cpu="3", priorityClassName="high")
        await harness.passes(85)
        assert "There will be room when pods no longer" in (await harness.condition("new"))["message"]
        assert shown(metrics) == [
            "moorage_preemption_toleration_retries_total 0",
            "moorage_preemption_toleration_waiting 1",
        ]
        await harness.passes(10)
        assert await harness.node_of("new") == "n1"
        assert shown(metrics) == [
            "moorage_preemption_toleration_retries_total 1",
            "moorage_preemption_toleration_waiting 0",
        ]
        attempts = metrics.preemption_attempts.value
        assert attempts >= 2
        assert f"scheduler_preemption_attempts_total {attempts:.0f}" in metrics.text().decode()
        await harness.check(scheduler)

    in_harness(scenario)


def test_the_page_shows_what_is_printed(tmp_path: Path) -> None:
    assert check_examples("docs/optional-plugins/preemption-toleration.md", tmp_path) == 1


CLUSTER = """
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata:
  name: safe
  annotations:
    preemption-toleration.scheduling.x-k8s.io/minimum-preemptable-priority: "5000"
    preemption-toleration.scheduling.x-k8s.io/toleration-seconds: "-1"
value: 10
---
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "2", pods: "10"}}
---
apiVersion: v1
kind: Pod
metadata: {name: old, namespace: default, uid: old}
spec:
  nodeName: n1
  schedulerName: default-scheduler
  priorityClassName: safe
  priority: 10
  containers: [{name: main, image: app, resources: {requests: {cpu: "2"}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: new, namespace: default, uid: new}
spec:
  schedulerName: default-scheduler
  priority: 1000
  containers: [{name: main, image: app, resources: {requests: {cpu: "2"}}}]
"""
IN_PYTHON = """
import pathlib, sys, yaml, moorage
file = pathlib.Path(sys.argv[2])
config, objects = moorage.load_config(pathlib.Path(sys.argv[1])), list(yaml.safe_load_all(file.read_text()))
print(moorage.decide(objects[-1], objects[:-1], config=config).message)
print(moorage.Cluster.from_yaml(file, config=sys.argv[1]).decide("default/new").message)
print(moorage.Cluster.from_dump(sys.argv[2], config=sys.argv[1]).decide("default/new").message)
"""
EXPLAINED = ["-m", "moorage", "explain", "pod/new"]
CONFIG = str(ROOT / "examples/preemption-toleration/scheduler.yaml")
NO_VICTIMS = "1 No preemption victims found for incoming pod."


def test_priority_classes_of_files_are_read_in_a_process_that_is_new(tmp_path: Path) -> None:
    """The plugin is loaded, and declares its kind, before the objects are read."""
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    file = str(tmp_path / "cluster.yaml")
    in_python = _printed(["-c", IN_PYTHON, CONFIG, file])
    assert in_python.count(NO_VICTIMS) == 3, in_python
    explained = _printed([*EXPLAINED, "--from", file, "--config", CONFIG])
    assert NO_VICTIMS in explained


def _printed(words: list[str]) -> str:
    ended = subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "200"},
    )
    assert not ended.stderr, ended.stderr
    return ended.stdout
