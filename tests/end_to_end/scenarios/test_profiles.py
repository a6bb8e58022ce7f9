"""Several profiles in one process, and profiles that are changed while pods wait."""

from __future__ import annotations

import signal

from tests.end_to_end.scenarios.stage import Stage, condition, lift_gates, node_of, profile, uids, without
from tests.up.objects import POOL, Manifest, pod

PACKING = profile(
    "packing",
    plugins={"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeResourcesFit"}]}},
    pluginConfig=[
        {
            "name": "NodeResourcesFit",
            "args": {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu"}]}},
        }
    ],
)
CARELESS = profile("careless", plugins=without("TaintToleration"))


def test_profiles_of_one_process_place_equal_pods_differently(stage: Stage) -> None:
    for name in ("busy", "roomy", "closed"):
        stage.add_node(name, **{POOL: name})
    stage.kubectl("taint", "nodes", "closed", "closed=yes:NoSchedule")
    stage.user.create(pod("already-there", cpu="2", nodeName="busy"))
    stage.start(stage.configure(profile("default-scheduler"), PACKING, CARELESS))
    closed = {"nodeSelector": {POOL: "closed"}}
    stage.user.create(
        pod("spread", cpu="1"),
        pod("packed", cpu="1", schedulerName="packing"),
        pod("refused", cpu="1", **closed),
        pod("let-in", cpu="1", schedulerName="careless", **closed),
    )
    stage.wait("PodScheduled", "spread", "packed", "let-in")
    stage.wait("PodScheduled=False", "refused")
    pods = stage.pods()
    assert {name: node_of(each) for name, each in pods.items()} == {
        "already-there": "busy",
        "spread": "roomy",
        "packed": "busy",
        "refused": "",
        "let-in": "closed",
    }
    assert "1 node(s) had untolerated taint(s)" in condition(pods["refused"], "PodScheduled")["message"]
    reporters = {
        event["regarding"]["name"]: event["reportingController"] for event in stage.events("Scheduled")
    }
    assert reporters == {"spread": "default-scheduler", "packed": "packing", "let-in": "careless"}


def is_reported_unschedulable(pod: Manifest) -> bool:
    """Whether it is said of a pod that it does not fit."""
    return any(each["reason"] == "Unschedulable" for each in pod["status"].get("conditions", ()))


def test_profiles_are_reloaded_while_many_pods_wait(stage: Stage) -> None:
    stage.add_node("closed")
    stage.kubectl("taint", "nodes", "closed", "closed=yes:NoSchedule")
    scheduler = stage.start(stage.configure(profile("default-scheduler")))
    names = [f"waits-{number}" for number in range(20)]
    stage.user.create(
        pod("gated", cpu="10m", schedulingGates=[{"name": "example.com/later"}]),
        *(pod(name, cpu="10m") for name in names),
    )
    pods = stage.watch()
    pods.until(lambda there: sum(map(is_reported_unschedulable, there.values())) == len(names))
    stage.configure(profile("default-scheduler", plugins=without("TaintToleration")))
    scheduler.send(signal.SIGHUP)
    scheduler.says("Reloaded the configuration")
    there = pods.until_bound(len(names))
    assert node_of(there["gated"]) == ""
    lift_gates(stage, "gated")
    stage.wait("PodScheduled", "gated")
    scheduler.stop()
    assert stage.scheduled_events() == dict.fromkeys(uids(stage.pods()), 1)
