"""Several schedulers in one cluster: by different names, and for the same room."""

from __future__ import annotations

import json

from tests.end_to_end.scenarios.stage import Stage, condition, node_of, profile
from tests.end_to_end.scenarios.storage import SELECTED_NODE, mounted, provisioned, storage_class
from tests.run.running import RunningScheduler
from tests.up.objects import Manifest, claim, pod, priority_class, workload
from tests.up.running import TIMEOUT_SECONDS


def in_queue(scheduler: RunningScheduler, token: str) -> set[str]:
    """The names of the pods that wait in a scheduler's queue."""
    places = scheduler.get("/debug/queue", token).json
    return {entry["pod"].partition("/")[2] for entries in places.values() for entry in entries}


def test_schedulers_with_different_names_count_each_others_pods_and_touch_only_their_own(
    stage: Stage, admin_token: str
) -> None:
    stage.add_node("n1", cpu="2")
    first = stage.start()
    second = stage.start(stage.configure(profile("second")))
    stage.user.create(
        pod("theirs", cpu="1500m", schedulerName="second"),
        pod("nobodys", schedulerName="third"),
    )
    stage.wait("PodScheduled", "theirs")
    stage.user.create(
        pod("ours-waits", cpu="1"),
        pod("theirs-waits", cpu="1", schedulerName="second"),
    )
    stage.wait("PodScheduled=False", "ours-waits", "theirs-waits")
    assert in_queue(first, admin_token) == {"ours-waits"}
    assert in_queue(second, admin_token) == {"theirs-waits"}
    for name in ("ours-waits", "theirs-waits"):
        assert condition(stage.pod(name), "PodScheduled")["message"].startswith(
            "0/1 nodes are available: 1 Insufficient cpu."
        )
    stage.user("delete", "pod", "theirs-waits", "theirs", "--grace-period=0", "--force")
    stage.wait("PodScheduled", "ours-waits")
    assert stage.pod("nobodys")["status"].get("conditions") is None
    first.stop()
    second.stop()
    reporters = {
        (event["regarding"]["name"], event["reason"], event["reportingController"])
        for reason in ("Scheduled", "FailedScheduling")
        for event in stage.events(reason)
    }
    assert reporters == {
        ("theirs", "Scheduled", "second"),
        ("theirs-waits", "FailedScheduling", "second"),
        ("ours-waits", "FailedScheduling", "default-scheduler"),
        ("ours-waits", "Scheduled", "default-scheduler"),
    }


def test_the_node_refuses_the_loser_of_a_race_for_its_last_slot_and_the_loser_gets_another(
    stage: Stage,
) -> None:
    """The loser has decided before the winner is there, and is bound after it: its volume takes that long."""
    stage.kubectl.create(storage_class("by-hand", "WaitForFirstConsumer"), priority_class("first", 1000))
    stage.add_node("n1", cpu="2")
    stage.start()
    stage.start(stage.configure(profile("slow")))
    data = claim("data")
    data["spec"]["storageClassName"] = "by-hand"
    loser = {"cpu": "1500m", "schedulerName": "slow", "volumes": [mounted("data")]}
    stage.user.create(data, workload("ReplicaSet", "loser", replicas=1, pods=loser))
    stage.user("wait", "pvc/data", f"--for=jsonpath={SELECTED_NODE}=n1", TIMEOUT_SECONDS)

    winner = {"cpu": "1500m", "priorityClassName": "first"}
    stage.user.create(workload("ReplicaSet", "winner", replicas=1, pods=winner))
    stage.user("wait", "rs/winner", "--for=jsonpath={.status.readyReplicas}=1", TIMEOUT_SECONDS)
    pods = stage.watch()
    stage.kubectl.create(provisioned(stage.user.json("get", "pvc", "data")))
    there = pods.until(lambda there: any(each["status"]["phase"] == "Failed" for each in there.values()))
    failed = next(each for each in there.values() if each["status"]["phase"] == "Failed")
    assert (failed["metadata"]["labels"]["app"], node_of(failed)) == ("loser", "n1")
    assert failed["status"]["reason"] == "OutOfcpu"
    assert failed["status"]["message"] == (
        "Pod was rejected: Node didn't have enough resource: cpu, requested: 1500, used: 1500, capacity: 2000"
    )

    def waits(there: dict[str, Manifest]) -> bool:
        """Whether the loser's owner has made another pod, which has been told why it waits."""
        return any(
            each["metadata"]["labels"]["app"] == "loser"
            and each["status"]["phase"] == "Pending"
            and "Insufficient cpu" in json.dumps(each["status"])
            for each in there.values()
        )

    pods.until(waits)
    stage.add_node("n2", cpu="2")
    stage.user("wait", "rs/loser", "--for=jsonpath={.status.readyReplicas}=1", TIMEOUT_SECONDS)
    running = [each for each in stage.pods().values() if each["status"]["phase"] == "Running"]
    where = {each["metadata"]["labels"]["app"]: node_of(each) for each in running}
    assert where == {"winner": "n1", "loser": "n2"}


def test_two_of_the_same_name_fill_a_cluster_to_the_last_slot(stage: Stage) -> None:
    """Both try every pod: none is bound twice, and whom a node refuses is replaced until all is full."""
    for number in range(3):
        stage.add_node(f"n{number}")
    racers = [stage.start() for _ in range(2)]
    pods = stage.watch()
    stage.user.create(workload("ReplicaSet", "web", replicas=12, pods={"cpu": "1"}))
    stage.user("wait", "rs/web", "--for=jsonpath={.status.readyReplicas}=12", TIMEOUT_SECONDS)
    running: dict[str, int] = {}
    for each in stage.pods().values():
        if each["status"]["phase"] == "Running":
            running[node_of(each)] = running.get(node_of(each), 0) + 1
        else:
            assert each["status"]["reason"] == "OutOfcpu", each["status"]
    assert running == {"n0": 4, "n1": 4, "n2": 4}
    for racer in racers:
        racer.stop()
    reporters: dict[str, set[str]] = {}
    for event in stage.events("Scheduled"):
        reporters.setdefault(event["regarding"]["uid"], set()).add(event["note"].rpartition(" ")[2])
    assert all(len(nodes) == 1 for nodes in reporters.values())
    assert reporters == pods.nodes_by_uid
