"""Pods that wait for different things: each change wakes the pod that it helps, and nobody else."""

from __future__ import annotations

import json
import signal
from typing import Any

from tests.end_to_end.scenarios.stage import Stage, lift_gates, node_of
from tests.run.running import RunningScheduler
from tests.up.objects import Manifest, pod

EVERYTHING: Manifest = {"tolerations": [{"operator": "Exists"}]}
WAITING = {
    "for-a-label": ("NodeAffinity", 1),
    "for-another-label": ("NodeAffinity", 1),
    "for-a-taint-to-go": ("TaintToleration", 1),
    "for-another-taint-to-go": ("TaintToleration", 1),
    "for-a-node": ("NodeResourcesFit", 1),
    "for-a-larger-node": ("NodeResourcesFit", 1),
}
"""Who refused each pod, and how often it was tried."""


def tolerating(taint: str) -> Manifest:
    return {"tolerations": [{"key": taint, "operator": "Exists"}]}


def waiting(stage: Stage, scheduler: RunningScheduler, token: str) -> dict[str, Any]:
    """Who refused each pod that waits for a change, and how often it was tried."""
    places = scheduler.get("/debug/queue", token).json
    return summary(stage, places["unschedulable"])


def summary(stage: Stage, entries: list[Any]) -> dict[str, Any]:
    return {
        entry["pod"].removeprefix(f"{stage.namespace}/"): (*entry["refusedBy"], entry["attempts"])
        for entry in entries
    }


def test_each_change_wakes_the_pod_that_it_helps_and_no_other(stage: Stage, admin_token: str) -> None:
    stage.add_node("n1")
    stage.kubectl("taint", "nodes", "n1", "one=yes:NoSchedule", "two=yes:NoSchedule")
    scheduler = stage.start()
    stage.user.create(
        pod("for-a-label", nodeSelector={"disk": "ssd"}, **EVERYTHING),
        pod("for-another-label", nodeSelector={"disk": "tape"}, **EVERYTHING),
        pod("for-a-taint-to-go", **tolerating("two")),
        pod("for-another-taint-to-go", **tolerating("one")),
        pod("for-a-node", cpu="64", **EVERYTHING),
        pod("for-a-larger-node", cpu="128", **EVERYTHING),
        pod("for-its-gate", schedulingGates=[{"name": "example.com/later"}], **EVERYTHING),
        pod("there-already", cpu="1", **EVERYTHING),
    )
    stage.wait("PodScheduled=False", *WAITING)
    stage.wait("Ready", "there-already")
    left = dict(WAITING)
    assert waiting(stage, scheduler, admin_token) == left

    scheduler.send(signal.SIGUSR2)
    cache = json.loads(scheduler.says("Dump of cached NodeInfo").partition("nodes=")[2])
    assert cache["nodes"] == {"n1": {"isKnown": True, "pods": [f"{stage.namespace}/there-already"]}}
    queue = json.loads(scheduler.says("Dump of scheduling queue").partition("pods=")[2])
    assert summary(stage, queue["unschedulable"]) == left
    (gated,) = queue["gated"]
    assert (gated["pod"], gated["gatedBy"]) == (f"{stage.namespace}/for-its-gate", "SchedulingGates")
    scheduler.says("Cache matches the API server")

    stage.kubectl("label", "node", "n1", "disk=ssd")
    stage.wait("PodScheduled", "for-a-label")
    del left["for-a-label"]
    assert waiting(stage, scheduler, admin_token) == left

    lift_gates(stage, "for-its-gate")
    stage.wait("PodScheduled", "for-its-gate")
    assert waiting(stage, scheduler, admin_token) == left

    stage.kubectl("taint", "nodes", "n1", "one-")
    stage.wait("PodScheduled", "for-a-taint-to-go")
    del left["for-a-taint-to-go"]
    assert waiting(stage, scheduler, admin_token) == left

    stage.add_node("n2", cpu="65")
    stage.wait("PodScheduled", "for-a-node", "for-another-taint-to-go")
    del left["for-a-node"], left["for-another-taint-to-go"]
    assert waiting(stage, scheduler, admin_token) == left
    assert {name: node_of(each) for name, each in stage.pods().items()} == {
        "for-a-label": "n1",
        "for-another-label": "",
        "for-a-taint-to-go": "n1",
        "for-another-taint-to-go": "n2",
        "for-a-node": "n2",
        "for-a-larger-node": "",
        "for-its-gate": "n1",
        "there-already": "n1",
    }
    scheduler.stop()
