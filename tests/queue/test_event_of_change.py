"""The events of an update of a pod or node."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.queue import event_of_change
from moorage.queue.event_of_change import PodEvents, lost_nomination, node_events
from tests.builders import container, make, make_node, make_pod, node, taint

SCALE_UP = "UpdatePodScaleUp"
"""Not told in v1.36."""

PODS: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "nothing in particular": ({}, {}, ["Update"]),
    "labels": ({}, {"labels": {"a": "b"}}, ["UpdatePodLabel"]),
    "a smaller request": ({"requests": {"cpu": "2"}}, {"requests": {"cpu": "1"}}, ["UpdatePodScaleDown"]),
    "a larger request": ({"requests": {"cpu": "1"}}, {"requests": {"cpu": "2"}}, [SCALE_UP]),
    "one larger, one smaller": (
        {"requests": {"cpu": "1", "memory": "2Gi"}},
        {"requests": {"cpu": "2", "memory": "1Gi"}},
        ["UpdatePodScaleDown", SCALE_UP],
    ),
    "a request goes": ({"requests": {"cpu": "1"}}, {}, ["UpdatePodScaleDown"]),
    "smaller by less than a thousandth": (
        {"requests": {"cpu": "1000001u"}},
        {"requests": {"cpu": "1000000001n"}},
        ["Update"],
    ),
    "what the kubelet has given is still there": (
        {"containers": [container({"cpu": "2"})]},
        {
            "containers": [container({"cpu": "1"})],
            "status": {"containerStatuses": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]},
        },
        ["Update"],
    ),
    "the kubelet refuses a resize": (
        {
            "containers": [container({"cpu": "2"})],
            "status": {"containerStatuses": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]},
        },
        {
            "containers": [container({"cpu": "2"})],
            "status": {
                "containerStatuses": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
                "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}],
            },
        },
        ["UpdatePodScaleDown"],
    ),
    "the last gate": ({"scheduling_gates": [{"name": "a"}]}, {}, ["UpdatePodSchedulingGatesEliminated"]),
    "a gate of two": (
        {"scheduling_gates": [{"name": "a"}, {"name": "b"}]},
        {"scheduling_gates": [{"name": "b"}]},
        ["Update"],
    ),
    "a toleration": ({}, {"tolerations": [{"key": "a"}]}, ["UpdatePodToleration"]),
    "a claim was made": (
        {},
        {"status": {"resourceClaimStatuses": [{"name": "c", "resourceClaimName": "c-1"}]}},
        ["UpdatePodGeneratedResourceClaim"],
    ),
    "a claim for extended resources was made": (
        {},
        {"status": {"extendedResourceClaimStatus": {"resourceClaimName": "c-1"}}},
        ["UpdatePodGeneratedResourceClaim"],
    ),
    "several at once, in order": (
        {"scheduling_gates": [{"name": "a"}], "requests": {"cpu": "2"}},
        {"tolerations": [{"key": "a"}], "labels": {"a": "b"}, "requests": {"cpu": "1"}},
        ["UpdatePodLabel", "UpdatePodScaleDown", "UpdatePodSchedulingGatesEliminated", "UpdatePodToleration"],
    ),
    "a condition": (
        {},
        {"status": {"conditions": [{"type": "PodScheduled", "status": "False"}]}},
        ["Update"],
    ),
}


@pytest.mark.parametrize(("old", "new", "actions"), PODS.values(), ids=PODS.keys())
def test_pod_events(old: dict[str, Any], new: dict[str, Any], actions: list[str]) -> None:
    def labels(events: PodEvents, *, is_target: bool = False, on: str = "") -> list[str]:
        before, after = make_pod("p", on=on, **old), make_pod("p", on=on, **new)
        return [event.label for event in events.of_update(before, after, is_target=is_target)]

    def named(resource: str, actions: list[str]) -> list[str]:
        return [f"{resource}{action}" for action in actions]

    newer, older = PodEvents(tells_target=True), PodEvents(tells_target=False)
    assert labels(newer, is_target=True) == named("TargetPod", actions)
    assert labels(newer) == named("UnscheduledPod", actions)
    assert labels(newer, on="n") == named("AssignedPod", actions)
    known = [action for action in actions if action != SCALE_UP] or ["Update"]
    assert labels(older, is_target=True) == labels(older) == named("UnschedulablePod", known)
    assert labels(older, on="n") == named("AssignedPod", known)


def with_status(**status: Any) -> Any:
    manifest = node("n")
    manifest["status"] |= status
    return make(manifest)


def annotated(**annotations: str) -> Any:
    manifest = node("n")
    manifest["metadata"]["annotations"] = annotations
    return make(manifest)


READY = {"type": "Ready", "status": "True"}
PLAIN = make_node("n")

NODES: dict[str, tuple[Any, Any, list[str]]] = {
    "a heartbeat": (
        with_status(conditions=[{**READY, "reason": "a"}]),
        with_status(conditions=[{**READY, "reason": "b"}]),
        [],
    ),
    "allocatable": (PLAIN, make_node("n", allocatable={"cpu": "8"}), ["UpdateNodeAllocatable"]),
    "a label": (PLAIN, make_node("n", labels={"a": "b"}), ["UpdateNodeLabel"]),
    "a taint": (PLAIN, make_node("n", taints=["a:NoSchedule"]), ["UpdateNodeTaint"]),
    "cordoned": (PLAIN, make_node("n", unschedulable=True), []),
    "uncordoned": (make_node("n", unschedulable=True), PLAIN, ["UpdateNodeTaint"]),
    "uncordoned, with the taint that goes with it": (
        make_node("n", unschedulable=True, taints=["node.kubernetes.io/unschedulable:NoSchedule"]),
        PLAIN,
        ["UpdateNodeTaint"],
    ),
    "a condition": (
        with_status(conditions=[READY]),
        with_status(conditions=[{**READY, "status": "False"}]),
        ["UpdateNodeCondition"],
    ),
    "an annotation": (PLAIN, annotated(a="b"), ["UpdateNodeAnnotation"]),
    "a declared feature": (PLAIN, make_node("n", features=["F"]), ["UpdateNodeDeclaredFeature"]),
    "several at once, in order": (
        PLAIN,
        make_node("n", features=["F"], taints=["a:NoSchedule"], labels={"a": "b"}, allocatable={}),
        ["UpdateNodeAllocatable", "UpdateNodeLabel", "UpdateNodeTaint", "UpdateNodeDeclaredFeature"],
    ),
}


@pytest.mark.parametrize(("old", "new", "actions"), NODES.values(), ids=NODES.keys())
def test_node_events(old: Any, new: Any, actions: list[str]) -> None:
    assert [event.label for event in node_events(old, new)] == [f"Node{action}" for action in actions]


def test_taints_are_compared_with_all_they_say() -> None:
    old, new = (make_node("n", taints=[text]) for text in ("a=1:NoSchedule", "a=2:NoSchedule"))
    assert old.spec.taints[0].value == taint("a=1:NoSchedule")["value"]
    assert [event.label for event in node_events(old, new)] == ["NodeUpdateNodeTaint"]


@pytest.mark.parametrize(("old", "new", "expected"), PODS.values(), ids=PODS.keys())
def test_updates_told_apart_at_once_have_no_specific_event(
    old: dict[str, Any], new: dict[str, Any], expected: list[str]
) -> None:
    pods = make_pod("p", **old), make_pod("p", **new)
    actions = list(event_of_change._pod_actions(*pods, tells_scale_up=True))
    assert not (actions and event_of_change._is_of_no_particular_field(*pods))


def test_an_update_of_conditions_is_told_apart_at_once() -> None:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    old, new = make_pod("p"), make_pod("p", status={"conditions": [condition]})
    assert event_of_change._is_of_no_particular_field(old, new)


NOMINATIONS = {
    "none": ("", "", False),
    "a new one": ("", "a", False),
    "the same": ("a", "a", False),
    "another": ("a", "b", True),
    "no more": ("a", "", True),
}


@pytest.mark.parametrize(("before", "after", "lost"), NOMINATIONS.values(), ids=NOMINATIONS.keys())
def test_lost_nomination(before: str, after: str, lost: bool) -> None:
    old, new = (make_pod("p", status={"nominatedNodeName": name}) for name in (before, after))
    assert lost_nomination(old, new) is lost


def test_requests_are_not_computed_for_a_condition_that_they_do_not_depend_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def computed(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("requests are computed")

    monkeypatch.setattr(event_of_change, "pod_requests", computed)
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    old = make_pod("p", requests={"cpu": "1"})
    new = make_pod("p", requests={"cpu": "1"}, status={"conditions": [condition]})
    assert len(PodEvents(tells_target=True).of_update(old, new)) == 1
