"""Hints are evaluated once for each equivalence class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.api.pod import PodStatus
from moorage.queue import cluster_events as events
from moorage.queue import equivalent_pods
from moorage.queue.cluster_events import Action, ClusterEvent, Interest, Resource, on
from moorage.queue.equivalence_key import equivalence_key
from moorage.queue.equivalent_pods import equivalent_pods_key
from moorage.queue.queued_pod import QueuedPod
from moorage.queue.scheduling_queue import Place
from tests.builders import make_node, make_pod, owner
from tests.queue.helpers import Case

CREDENTIALS = {"name": "kube-api-access-a1b2c", "projected": {}}
OTHER_CREDENTIALS = {"name": "kube-api-access-x9y8z", "projected": {}}
CLAIM = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
EPHEMERAL = {"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}

TEMPLATES: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "nothing but the name": ({}, {}, True),
    "statuses": ({}, {"status": {"nominatedNodeName": "n"}}, True),
    "labels": ({}, {"labels": {"a": "b"}}, False),
    "namespaces": ({}, {"namespace": "else"}, False),
    "priorities": ({}, {"priority": 1}, False),
    "requests": ({"requests": {"cpu": "1"}}, {"requests": {"cpu": "2"}}, False),
    "requests that are written in another way": (
        {"requests": {"cpu": "1"}},
        {"requests": {"cpu": "1000m"}},
        True,
    ),
    "very large requests": ({"requests": {"memory": "100E"}}, {"requests": {"memory": "101E"}}, False),
    "owners": ({"owners": [owner("ReplicaSet", "a")]}, {"owners": [owner("ReplicaSet", "b")]}, False),
    "owners that do not manage": ({"owners": [owner("Node", "a", controller=False)]}, {"owners": []}, True),
    "the volumes for credentials": ({"volumes": [CREDENTIALS]}, {"volumes": [OTHER_CREDENTIALS]}, True),
    "a claim beside credentials": (
        {"volumes": [CREDENTIALS, CLAIM]},
        {"volumes": [CLAIM, OTHER_CREDENTIALS]},
        True,
    ),
    "claims": ({"volumes": [CREDENTIALS, CLAIM]}, {"volumes": [CREDENTIALS]}, False),
    "claims that have the pods' names": ({"volumes": [EPHEMERAL]}, {"volumes": [EPHEMERAL]}, False),
}


@pytest.mark.parametrize(("one", "other", "same"), TEMPLATES.values(), ids=TEMPLATES.keys())
def test_pods_differ_in(one: dict[str, Any], other: dict[str, Any], same: bool) -> None:
    first, second = make_pod("p", uid="p", **one), make_pod("q", uid="q", **other)
    assert (equivalence_key(first) == equivalence_key(second)) is same


@pytest.mark.parametrize(("one", "other"), [each[:2] for each in TEMPLATES.values()], ids=TEMPLATES.keys())
def test_a_version_of_a_pod_is_keyed_by_what_it_is_now(one: dict[str, Any], other: dict[str, Any]) -> None:
    queued = QueuedPod(make_pod("p", uid="p", **one), 0.0)
    assert equivalent_pods_key(queued).template == equivalence_key(queued.pod)
    queued.pod = replace(queued.pod, metadata=make_pod("p", uid="p", **other).metadata)
    assert equivalent_pods_key(queued).template == equivalence_key(queued.pod)
    queued.pod = make_pod("p", uid="p", **other)
    assert equivalent_pods_key(queued).template == equivalence_key(queued.pod)


def test_a_version_with_another_status_is_not_encoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    queued = QueuedPod(make_pod("p", uid="p", labels={"a": "b"}), 0.0)
    template = equivalent_pods_key(queued).template
    monkeypatch.delattr(equivalent_pods, "equivalence_key")
    queued.pod = replace(queued.pod, status=PodStatus(nominated_node_name="n"))
    assert equivalent_pods_key(queued).template is template


def test_a_hint_that_looks_at_templates_is_asked_once_a_template() -> None:
    case = Case()
    for number in range(10):
        case.refused(f"red {number}", "Template", labels={"a": "red"})
        case.refused(f"blue {number}", "Template", labels={"a": "blue"})
    case.queue.move_all(events.NODE_ADD, None, make_node("n", labels={"a": "red"}))
    assert case.observer.hints == {
        ("Template", "NodeAdd", "Queue"): 1,
        ("Template", "NodeAdd", "QueueSkip"): 1,
    }
    assert sorted(case.pop_all()) == [f"red {number}" for number in range(10)]
    assert case.queue.pending()[Place.UNSCHEDULABLE] == 10


def test_where_another_plugin_looks_at_pods_every_pod_is_asked_about() -> None:
    case = Case()
    for name in ("p", "q"):
        case.refused(name, "Template", "Named")
    case.queue.move_all(events.NODE_ADD, None, make_node("n", labels={"helps": "q"}))
    assert (case.where("p"), case.where("q")) == (Place.UNSCHEDULABLE, Place.ACTIVE)


def test_pods_of_a_template_that_others_refused_are_on_their_own() -> None:
    case = Case()
    case.refused("p", "Template", labels={"a": "b"})
    case.refused("q", "Silent", labels={"a": "b"})
    case.queue.move_all(events.NODE_ADD, None, make_node("n", labels={"a": "b"}))
    assert (case.where("p"), case.where("q")) == (Place.ACTIVE, Place.UNSCHEDULABLE)


def test_the_pod_that_an_event_is_about_is_asked_about_itself() -> None:
    interests: dict[str, Sequence[Interest]] = {
        "Itself": (
            on(
                Resource.POD, Action.ALL, lambda pod, old, new: new.uid == pod.uid, per_equivalence_class=True
            ),
        )
    }
    case = Case(interests)
    for name in ("p", "q", "r"):
        case.refused(name, "Itself")
    event = ClusterEvent(Resource.UNSCHEDULED_POD, Action.UPDATE)
    case.queue.move_all(event, make_pod("q", uid="q"), make_pod("q", uid="q"))
    assert [case.where(name) for name in "pqr"] == [Place.UNSCHEDULABLE, Place.ACTIVE, Place.UNSCHEDULABLE]


def test_an_update_leads_to_another_template() -> None:
    case = Case()
    pod = case.refused("p", "Template")
    case.refused("q", "Template")
    case.queue.update(pod, make_pod("p", uid="p", labels={"a": "b"}))
    case.queue.validate()
    case.queue.move_all(events.NODE_ADD, None, make_node("n", labels={"a": "b"}))
    assert (case.where("p"), case.where("q")) == (Place.ACTIVE, Place.UNSCHEDULABLE)
