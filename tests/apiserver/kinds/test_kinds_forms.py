"""Conversions, scales, finalizers, and what can be selected."""

from __future__ import annotations

import pytest

from moorage.api.manifests import Manifest, copy
from moorage.apimachinery.validation.selectors import selector_text
from moorage_cluster.apiserver.kinds.events import (
    EventsEventStrategy,
    EventStrategy,
    to_core,
    to_events,
)
from moorage_cluster.apiserver.kinds.jobs import JobStrategy
from moorage_cluster.apiserver.kinds.namespaces import (
    NamespaceStrategy,
    finalize,
    prepare_finalize,
    validate_finalize,
)
from moorage_cluster.apiserver.kinds.nodes import NodeStrategy
from moorage_cluster.apiserver.kinds.scale import check_scale, scale_of, with_scale
from tests.apiserver.kinds.object_builders import an_object, status_problems, updated

CORE_EVENT: Manifest = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "web.1", "namespace": "default"},
    "involvedObject": {"kind": "Pod", "namespace": "default", "name": "web", "uid": "u"},
    "reason": "Scheduled",
    "message": "Successfully assigned",
    "source": {"component": "old-scheduler", "host": "h"},
    "firstTimestamp": "2026-01-01T00:00:00Z",
    "lastTimestamp": "2026-01-01T00:00:01Z",
    "count": 2,
    "type": "Normal",
    "eventTime": "2026-01-01T00:00:00.000000Z",
    "action": "Binding",
    "reportingComponent": "default-scheduler",
    "reportingInstance": "i",
}
NEW_EVENT: Manifest = {
    "apiVersion": "events.k8s.io/v1",
    "kind": "Event",
    "metadata": {"name": "web.1", "namespace": "default"},
    "regarding": {"kind": "Pod", "namespace": "default", "name": "web", "uid": "u"},
    "reason": "Scheduled",
    "note": "Successfully assigned",
    "deprecatedSource": {"component": "old-scheduler", "host": "h"},
    "deprecatedFirstTimestamp": "2026-01-01T00:00:00Z",
    "deprecatedLastTimestamp": "2026-01-01T00:00:01Z",
    "deprecatedCount": 2,
    "type": "Normal",
    "eventTime": "2026-01-01T00:00:00.000000Z",
    "action": "Binding",
    "reportingController": "default-scheduler",
    "reportingInstance": "i",
}


def test_an_event_has_two_forms() -> None:
    before = copy(CORE_EVENT)
    assert to_events(CORE_EVENT) == NEW_EVENT
    assert to_core(NEW_EVENT) == CORE_EVENT
    assert before == CORE_EVENT


@pytest.mark.parametrize("form", [CORE_EVENT, NEW_EVENT], ids=["core", "events"])
def test_events_can_be_chosen_under_the_names_of_both_groups(form: Manifest) -> None:
    chosen = EventStrategy().selectable(form)
    assert chosen == EventsEventStrategy().selectable(form)
    assert chosen["involvedObject.name"] == chosen["regarding.name"] == "web"
    assert chosen["involvedObject.fieldPath"] == ""
    assert chosen["source"] == "old-scheduler"
    assert chosen["reportingComponent"] == chosen["reportingController"] == "default-scheduler"
    assert chosen["reason"] == "Scheduled"


def test_the_source_of_a_new_event_is_its_reporter() -> None:
    assert EventStrategy().selectable({**CORE_EVENT, "source": {}})["source"] == "default-scheduler"


SELECTORS: dict[str, tuple[Manifest | None, str]] = {
    "nothing": (None, "<nothing>"),
    "everything": ({}, ""),
    "labels": ({"matchLabels": {"b": "2", "a": "1"}}, "a=1,b=2"),
    "expressions": (
        {
            "matchLabels": {"c": "x"},
            "matchExpressions": [
                {"key": "b", "operator": "NotIn", "values": ["z", "y"]},
                {"key": "a", "operator": "In", "values": ["one"]},
                {"key": "d", "operator": "Exists"},
                {"key": "e", "operator": "DoesNotExist"},
            ],
        },
        "a in (one),b notin (y,z),c=x,d,!e",
    ),
    "an operator that only nodes' selectors know": (
        {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]},
        "<error>",
    ),
}


@pytest.mark.parametrize(("selector", "text"), SELECTORS.values(), ids=SELECTORS)
def test_selectors_as_text(selector: Manifest | None, text: str) -> None:
    assert selector_text(selector) == text


def test_the_scale_of_a_deployment() -> None:
    meta = {"resourceVersion": "7", "labels": {"not": "shown"}}
    obj = an_object(
        {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}}, meta=meta, kind="Deployment"
    )
    obj["status"] = {"replicas": 2}
    assert scale_of(obj) == {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": "web",
            "namespace": "default",
            "uid": obj["metadata"]["uid"],
            "resourceVersion": "7",
        },
        "spec": {"replicas": 3},
        "status": {"replicas": 2, "selector": "app=web"},
    }


def test_the_scale_of_a_replication_controller_at_rest() -> None:
    obj = an_object({"replicas": 0, "selector": {"b": "2", "a": "1"}}, kind="ReplicationController")
    scale = scale_of(obj)
    assert scale["spec"] == {}
    assert scale["status"] == {"replicas": 0, "selector": "a=1,b=2"}


@pytest.mark.parametrize(("scale", "replicas"), [({"spec": {"replicas": 4}}, 4), ({"spec": {}}, 0), ({}, 0)])
def test_scaling_changes_the_replicas_and_nothing_else(scale: Manifest, replicas: int) -> None:
    obj = an_object({"replicas": 1, "selector": {}})
    scaled = with_scale(obj, scale)
    assert scaled == {**obj, "spec": {"replicas": replicas, "selector": {}}}
    assert obj["spec"]["replicas"] == 1


def test_a_negative_scale_is_refused() -> None:
    assert [str(error) for error in check_scale({"spec": {"replicas": -1}})] == [
        "spec.replicas: Invalid value: -1: must be greater than or equal to 0"
    ]


def test_an_update_does_not_finalize_a_namespace() -> None:
    old = {"metadata": {"name": "a"}, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}
    new = updated(NamespaceStrategy(), old, {"metadata": {"name": "a"}})
    assert new["spec"] == {"finalizers": ["kubernetes"]}


def test_the_finalize_subresource_changes_finalizers_and_keeps_the_status() -> None:
    old = {
        "metadata": {},
        "spec": {"finalizers": ["kubernetes", "a.b/c"]},
        "status": {"phase": "Terminating"},
    }
    new: Manifest = {"metadata": {}, "spec": {"finalizers": ["a.b/c"]}, "status": {"phase": "Active"}}
    prepare_finalize(new, old)
    assert new == {**old, "spec": {"finalizers": ["a.b/c"]}}
    assert validate_finalize(new) == []
    new["spec"]["finalizers"] = ["mine"]
    assert [error.path for error in validate_finalize(new)] == ["spec.finalizers[0]"]


def test_finalizing_takes_one_finalizer() -> None:
    namespace = {"metadata": {}, "spec": {"finalizers": ["a.b/c", "kubernetes"]}}
    left = finalize(namespace)
    assert left["spec"] == {"finalizers": ["a.b/c"]}
    assert finalize(left, "a.b/c")["spec"] == {}
    assert namespace["spec"] == {"finalizers": ["a.b/c", "kubernetes"]}


@pytest.mark.parametrize(
    ("deleted", "phase", "problems"),
    [
        (False, "Active", []),
        (True, "Terminating", []),
        (
            False,
            "Terminating",
            [
                'status.Phase: Invalid value: "Terminating": '
                "may only be 'Active' if `deletionTimestamp` is empty"
            ],
        ),
        (
            True,
            "Active",
            [
                'status.Phase: Invalid value: "Active": '
                "may only be 'Terminating' if `deletionTimestamp` is not empty"
            ],
        ),
    ],
)
def test_a_namespaces_phase_says_whether_it_goes(deleted: bool, phase: str, problems: list[str]) -> None:
    meta = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleted else {}
    assert status_problems(NamespaceStrategy(), an_object({}, meta=meta), {"phase": phase}) == problems


@pytest.mark.parametrize(
    ("strategy", "obj", "fields"),
    [
        (NodeStrategy(), {"spec": {"unschedulable": True}}, {"spec.unschedulable": "true"}),
        (NodeStrategy(), {}, {"spec.unschedulable": "false"}),
        (JobStrategy(), {"status": {"succeeded": 3}}, {"status.successful": "3"}),
        (NamespaceStrategy(), {"status": {"phase": "Active"}}, {"status.phase": "Active"}),
    ],
)
def test_what_objects_can_be_chosen_by(strategy: NodeStrategy, obj: Manifest, fields: dict[str, str]) -> None:
    assert strategy.selectable(obj) == fields
