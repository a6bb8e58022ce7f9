"""Nodes that fall silent, are under pressure or go, and what becomes of their pods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from moorage.api.manifests import Manifest
from moorage.client.kinds import LEASE, NODE, POD
from moorage_cluster.controllers.cluster import Cluster
from moorage_cluster.controllers.node_lifecycle import NodeLifecycle
from moorage_cluster.controllers.node_pod_gc import PodGarbageCollection
from moorage_cluster.controllers.node_taint_eviction import TaintEviction
from tests.controllers.harness import Harness
from tests.controllers.infrastructure.objects import (
    Kubelets,
    condition,
    conditions,
    pod,
    running,
    taints,
)

UNREACHABLE = {"unreachable:NoSchedule", "unreachable:NoExecute"}


@pytest.fixture
def harness() -> Iterator[Harness]:
    with Harness(NodeLifecycle, TaintEviction) as harness:
        yield harness


@pytest.fixture
def kubelets(harness: Harness) -> Kubelets:
    """Two nodes, so that losing one is not losing all."""
    kubelets = Kubelets(harness)
    kubelets.add("a")
    kubelets.add("b")
    return kubelets


def tolerating(key: str, **further: Any) -> Manifest:
    return {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", **further}


# -- silence


def test_nodes_that_renew_their_leases_stay_as_they_are(harness: Harness, kubelets: Kubelets) -> None:
    before = harness.get(NODE, "a")["metadata"]["resourceVersion"]
    kubelets.pass_time(300)
    assert taints(harness, "a") == set()
    assert harness.get(NODE, "a")["metadata"]["resourceVersion"] == before
    assert harness.events("a") == [("RegisteredNode", "Node a event: Registered Node a in Controller")]


def test_a_node_that_falls_silent_is_unknown_after_fifty_seconds(
    harness: Harness, kubelets: Kubelets
) -> None:
    running(harness, "p", "a")
    kubelets.alive.remove("a")
    kubelets.pass_time(49)
    assert conditions(harness.get(NODE, "a"))["Ready"] == "True"
    kubelets.pass_time(2)
    node = harness.get(NODE, "a")
    assert conditions(node) == dict.fromkeys(
        ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready"), "Unknown"
    )
    ready = condition(node, "Ready")
    assert (ready["reason"], ready["message"]) == (
        "NodeStatusUnknown",
        "Kubelet stopped posting node status.",
    )
    assert ready["lastHeartbeatTime"] < ready["lastTransitionTime"]
    assert taints(harness, "a") == UNREACHABLE
    assert all("timeAdded" in taint for taint in node["spec"]["taints"])
    assert harness.events("a")[-1] == ("NodeNotReady", "Node a status is now: NodeNotReady")
    assert conditions(harness.get(POD, "p"))["Ready"] == "False"
    assert ("NodeNotReady", "Node is not ready") in harness.events("p")
    assert taints(harness, "b") == set()


def test_a_node_that_never_reports_gets_a_minute() -> None:
    with Harness(NodeLifecycle) as harness:
        Kubelets(harness).add("well")
        harness.create(NODE, {"metadata": {"name": "mute"}})
        harness.advance(59, step=59)
        assert conditions(harness.get(NODE, "mute")) == {}
        harness.advance(2)
        ready = condition(harness.get(NODE, "mute"), "Ready")
        assert (ready["status"], ready["reason"]) == ("Unknown", "NodeStatusNeverUpdated")
        assert ready["message"] == "Kubelet never posted node status."


def test_a_status_counts_as_a_sign_of_life_too(harness: Harness, kubelets: Kubelets) -> None:
    kubelets.alive.remove("a")
    kubelets.pass_time(40)
    kubelets.report("a")
    kubelets.pass_time(40)
    assert taints(harness, "a") == set()
    kubelets.pass_time(20)
    assert taints(harness, "a") == UNREACHABLE


def test_a_node_that_reports_again_is_clean(harness: Harness, kubelets: Kubelets) -> None:
    kubelets.alive.remove("a")
    kubelets.pass_time(60)
    assert taints(harness, "a") == UNREACHABLE
    kubelets.report("a")
    assert taints(harness, "a") == set()


def test_a_pod_that_comes_to_a_silent_node_is_not_ready(harness: Harness, kubelets: Kubelets) -> None:
    kubelets.alive.remove("a")
    kubelets.pass_time(60)
    late = pod("late")
    made = harness.create(POD, late)
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-03-01T12:00:00Z"}
    harness.patch(POD, "late", {"status": {"conditions": [ready]}}, subresource="status")
    harness.bind(made, "a")
    assert conditions(harness.get(POD, "late"))["Ready"] == "False"


# -- conditions and taints

REPORTS: dict[str, tuple[dict[str, str], set[str]]] = {
    "is well": ({}, set()),
    "is not ready": ({"Ready": "False"}, {"not-ready:NoSchedule", "not-ready:NoExecute"}),
    "lacks memory": ({"MemoryPressure": "True"}, {"memory-pressure:NoSchedule"}),
    "lacks disk": ({"DiskPressure": "True"}, {"disk-pressure:NoSchedule"}),
    "lacks processes": ({"PIDPressure": "True"}, {"pid-pressure:NoSchedule"}),
    "has no network": ({"NetworkUnavailable": "True"}, {"network-unavailable:NoSchedule"}),
    "lacks two things": (
        {"MemoryPressure": "True", "DiskPressure": "True"},
        {"memory-pressure:NoSchedule", "disk-pressure:NoSchedule"},
    ),
    "does not know": ({"MemoryPressure": "Unknown"}, set()),
}


@pytest.mark.parametrize("case", REPORTS)
def test_taints_come_and_go_when_a_node(case: str, harness: Harness, kubelets: Kubelets) -> None:
    reported, expected = REPORTS[case]
    harness.patch(NODE, "a", {"spec": {"taints": [{"key": "mine", "effect": "NoSchedule"}]}})
    kubelets.report("a", **reported)
    assert taints(harness, "a") == {"mine:NoSchedule"} | expected
    kubelets.report("a")
    assert taints(harness, "a") == {"mine:NoSchedule"}


def test_a_cordoned_node_is_tainted_until_it_is_not(harness: Harness, kubelets: Kubelets) -> None:
    harness.patch(NODE, "a", {"spec": {"unschedulable": True}})
    assert taints(harness, "a") == {"unschedulable:NoSchedule"}
    harness.patch(NODE, "a", {"spec": {"unschedulable": None}})
    assert taints(harness, "a") == set()


def test_not_ready_turns_into_unreachable_at_once(harness: Harness, kubelets: Kubelets) -> None:
    kubelets.report("a", Ready="False")
    kubelets.alive.remove("a")
    kubelets.pass_time(60)
    assert taints(harness, "a") == UNREACHABLE


def test_old_names_of_labels_follow_the_new_ones(harness: Harness, kubelets: Kubelets) -> None:
    harness.patch(NODE, "a", {"metadata": {"labels": {"kubernetes.io/os": "linux"}}})
    assert harness.get(NODE, "a")["metadata"]["labels"]["beta.kubernetes.io/os"] == "linux"


def test_a_node_that_goes_is_reported(harness: Harness, kubelets: Kubelets) -> None:
    harness.delete(NODE, "a")
    assert harness.events("a")[-1] == ("RemovingNode", "Node a event: Removing Node a from Controller")


# -- zones


def test_nodes_of_a_zone_are_emptied_one_every_ten_seconds(harness: Harness) -> None:
    kubelets = Kubelets(harness)
    for name in ("a", "b", "c", "d", "e"):
        kubelets.add(name, zone="z")
    kubelets.add("f", zone="y")
    for name in ("a", "b"):
        kubelets.report(name, Ready="False")
    kubelets.report("f", Ready="False")

    def emptied() -> list[str]:
        return [name for name in "abcdef" if "not-ready:NoExecute" in taints(harness, name)]

    assert emptied() == ["a", "f"]  # Each zone has its own turns.
    harness.advance(9)
    assert emptied() == ["a", "f"]
    harness.advance(2)
    assert emptied() == ["a", "b", "f"]


def test_a_small_zone_that_is_mostly_down_is_not_emptied(harness: Harness) -> None:
    kubelets = Kubelets(harness)
    for name in ("a", "b", "c", "d"):
        kubelets.add(name, zone="z")
    for name in ("a", "b", "c"):
        kubelets.report(name, Ready="False")
    kubelets.pass_time(40)
    assert "not-ready:NoExecute" in taints(harness, "a")  # It was the first to fall, before the rest.
    assert taints(harness, "c") == {"not-ready:NoSchedule"}
    kubelets.report("a")
    kubelets.pass_time(20)
    assert taints(harness, "c") == {"not-ready:NoSchedule", "not-ready:NoExecute"}


def test_nothing_is_emptied_when_every_node_is_silent(harness: Harness, kubelets: Kubelets) -> None:
    running(harness, "p", "a", tolerations=[tolerating("unreachable", tolerationSeconds=30)])
    kubelets.alive.clear()
    kubelets.pass_time(400)
    assert taints(harness, "a") == taints(harness, "b") == {"unreachable:NoSchedule"}
    assert "deletionTimestamp" not in harness.get(POD, "p")["metadata"]
    kubelets.report("b")
    harness.settle()
    assert taints(harness, "a") == UNREACHABLE


# -- eviction


def test_pods_leave_an_unreachable_node_after_five_minutes(harness: Harness, kubelets: Kubelets) -> None:
    running(harness, "p", "a")
    running(harness, "elsewhere", "b")
    kubelets.alive.remove("a")
    kubelets.pass_time(60)
    kubelets.pass_time(280)
    assert "deletionTimestamp" not in harness.get(POD, "p")["metadata"]
    kubelets.pass_time(20)
    to_delete = harness.get(POD, "p")
    assert "deletionTimestamp" in to_delete["metadata"]
    target = condition(to_delete, "DisruptionTarget")
    assert (target["status"], target["reason"]) == ("True", "DeletionByTaintManager")
    assert target["message"] == "Taint manager: deleting due to NoExecute taint"
    assert ("TaintManagerEviction", "Marking for deletion Pod default/p") in harness.events("p")
    assert "deletionTimestamp" not in harness.get(POD, "elsewhere")["metadata"]


def test_pods_stay_if_the_node_comes_back_in_time(harness: Harness, kubelets: Kubelets) -> None:
    running(harness, "p", "a")
    kubelets.alive.remove("a")
    kubelets.pass_time(200)
    kubelets.report("a")
    kubelets.alive.append("a")
    assert ("TaintManagerEviction", "Cancelling deletion of Pod default/p") in harness.events("p")
    kubelets.pass_time(400)
    assert "deletionTimestamp" not in harness.get(POD, "p")["metadata"]


TOLERATIONS: dict[str, tuple[list[Manifest], int | None]] = {
    "none": ([], 0),
    "of another effect": ([{"key": "k", "operator": "Exists", "effect": "NoSchedule"}], 0),
    "of another value": ([{"key": "k", "operator": "Equal", "value": "w", "effect": "NoExecute"}], 0),
    "for ever": ([{"key": "k", "operator": "Exists", "effect": "NoExecute"}], None),
    "of everything": ([{"operator": "Exists"}], None),
    "for a while": ([{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}], 30),
    "for no time": ([{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}], 0),
    "the first that covers it counts": (
        [
            {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 20},
            {"operator": "Exists"},
        ],
        20,
    ),
}


@pytest.mark.parametrize("case", TOLERATIONS)
def test_a_pod_leaves_a_tainted_node_by_its_tolerations(case: str) -> None:
    tolerations, seconds = TOLERATIONS[case]
    with Harness(TaintEviction) as harness:
        harness.add_node("a")
        running(harness, "p", "a", tolerations=tolerations)
        taint = {"key": "k", "value": "v", "effect": "NoExecute"}
        harness.patch(NODE, "a", {"spec": {"taints": [taint]}})
        left_after = None
        for second in range(61):
            if "deletionTimestamp" in harness.get(POD, "p")["metadata"]:
                left_after = second
                break
            harness.advance(1)
        assert left_after == seconds


def test_a_pod_that_comes_to_a_tainted_node_leaves_it_too() -> None:
    with Harness(TaintEviction) as harness:
        harness.add_node("a")
        harness.patch(NODE, "a", {"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}})
        made = harness.create(POD, pod("p"))
        harness.settle()
        assert "deletionTimestamp" not in harness.get(POD, "p")["metadata"]
        harness.bind(made, "a")
        assert "deletionTimestamp" in harness.get(POD, "p")["metadata"]


def test_a_second_taint_does_not_start_the_time_again() -> None:
    with Harness(TaintEviction) as harness:
        harness.add_node("a")
        running(
            harness,
            "p",
            "a",
            tolerations=[{"operator": "Exists", "tolerationSeconds": 60, "effect": "NoExecute"}],
        )
        taints = [{"key": "k", "effect": "NoExecute"}]
        harness.patch(NODE, "a", {"spec": {"taints": taints}})
        harness.advance(40, step=40)
        harness.patch(NODE, "a", {"spec": {"taints": [*taints, {"key": "l", "effect": "NoExecute"}]}})
        harness.advance(21)
        assert "deletionTimestamp" in harness.get(POD, "p")["metadata"]


# -- garbage


def collector(cluster: Cluster) -> PodGarbageCollection:
    return PodGarbageCollection(cluster, ended_pods_kept=2)


def test_pods_of_a_node_that_is_gone_fail_and_go() -> None:
    with Harness(collector) as harness:
        for name in ("a", "b"):
            harness.add_node(name)
        running(harness, "p", "a")
        running(harness, "q", "b")
        harness.patch(POD, "p", {"metadata": {"finalizers": ["example.com/look"]}})
        harness.delete(NODE, "a")
        harness.advance(40, step=10)
        assert harness.get(POD, "p")["status"]["phase"] == "Running"
        harness.advance(30, step=10)
        gone = harness.get(POD, "p")
        assert gone["status"]["phase"] == "Failed"
        target = condition(gone, "DisruptionTarget")
        assert (target["reason"], target["message"]) == ("DeletionByPodGC", "PodGC: node no longer exists")
        harness.patch(POD, "p", {"metadata": {"finalizers": None}})
        assert harness.names(POD) == ["q"]


def test_a_node_that_comes_back_keeps_its_pods() -> None:
    with Harness(collector) as harness:
        harness.add_node("a")
        running(harness, "p", "a")
        harness.delete(NODE, "a")
        harness.advance(30, step=10)
        harness.add_node("a")
        harness.advance(100, step=10)
        assert harness.names(POD) == ["p"]


def test_pods_go_from_a_node_that_is_out_of_service() -> None:
    with Harness(collector) as harness:
        harness.add_node("a")
        running(harness, "p", "a")
        harness.delete(POD, "p")
        harness.advance(60, step=20)
        assert harness.names(POD) == ["p"]
        harness.patch(
            NODE,
            "a",
            {"spec": {"taints": [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]}},
        )
        harness.advance(20, step=20)
        assert harness.names(POD) == ["p"]  # It is ready: its kubelet will see to the pod.
        down = [{"type": "Ready", "status": "Unknown"}]
        harness.patch(NODE, "a", {"status": {"conditions": down}}, subresource="status")
        harness.advance(20, step=20)
        assert harness.names(POD) == []


def test_of_too_many_pods_that_ended_the_oldest_go() -> None:
    with Harness(collector) as harness:
        harness.add_node("a")
        for name in ("d", "c", "b", "a"):
            running(harness, name, "a")
            harness.run_pods("Succeeded")
            harness.advance(1)
        harness.advance(20, step=20)
        assert harness.names(POD) == ["a", "b"]


def test_many_heartbeats_cause_no_requests() -> None:
    with Harness(NodeLifecycle) as harness:
        kubelets = Kubelets(harness)
        for number in range(20):
            kubelets.add(f"n{number}")
        [controller] = harness.manager.controllers
        looks = 0
        reconcile = controller.reconcile

        async def counted(namespace: str, name: str) -> float | None:
            nonlocal looks
            looks += 1
            return await reconcile(namespace, name)

        controller.reconcile = counted  # type: ignore[method-assign]
        kubelets.pass_time(100)
        assert len(harness.list(LEASE)) == 20
        assert looks <= 3 * 20  # Each node once in fifty seconds, though it was heard of every ten.
