"""The vocabulary of events."""

from __future__ import annotations

import pytest

from moorage.queue import cluster_events as events
from moorage.queue.cluster_events import EVERYTHING, Action, ClusterEvent, Resource, on
from moorage.queue.event_of_change import PodEvents
from moorage.queue.queueing_rules import QueueRules, watched_actions

LABELS = {
    "AssignedPodAdd": events.ASSIGNED_POD_ADD,
    "AssignedPodDelete": events.ASSIGNED_POD_DELETE,
    "AssignedPodUpdatePodScaleDown": ClusterEvent(Resource.ASSIGNED_POD, Action.UPDATE_POD_SCALE_DOWN),
    "UnscheduledPodAdd": PodEvents(True).added,
    "UnscheduledPodUpdate": PodEvents(True).updated,
    "UnscheduledPodDelete": PodEvents(True).deleted,
    "UnschedulablePodAdd": PodEvents(False).added,
    "UnschedulablePodUpdate": PodEvents(False).updated,
    "UnschedulablePodDelete": PodEvents(False).deleted,
    "TargetPodUpdatePodSchedulingGatesEliminated": ClusterEvent(
        Resource.TARGET_POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
    ),
    "TargetPodUpdatePodGeneratedResourceClaim": ClusterEvent(
        Resource.TARGET_POD, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM
    ),
    "NodeAdd": events.NODE_ADD,
    "NodeDelete": events.NODE_DELETE,
    "NodeUpdateNodeTaint": ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT),
    "NodeUpdateNodeDeclaredFeature": ClusterEvent(Resource.NODE, Action.UPDATE_NODE_DECLARED_FEATURE),
    "PersistentVolumeClaimUpdate": ClusterEvent(Resource.PERSISTENT_VOLUME_CLAIM, Action.UPDATE),
    "storage.k8s.io/CSINodeUpdate": ClusterEvent(Resource.CSI_NODE, Action.UPDATE),
    "resource.k8s.io/ResourceClaimAdd": ClusterEvent(Resource.RESOURCE_CLAIM, Action.ADD),
    "foos.v1.example.comDelete": ClusterEvent("foos.v1.example.com", Action.DELETE),
    "UnschedulableTimeout": events.UNSCHEDULABLE_TIMEOUT,
    "ForceActivate": events.FORCE_ACTIVATE,
    "*All": ClusterEvent(Resource.ANY, Action.ALL),
}


@pytest.mark.parametrize(("label", "event"), LABELS.items(), ids=LABELS.keys())
def test_labels(label: str, event: ClusterEvent) -> None:
    assert event.label == label


ANYTHING = ClusterEvent(Resource.ANY, Action.ALL)
NODE_LABEL = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_LABEL)
NODE_UPDATE = ClusterEvent(Resource.NODE, Action.UPDATE)
POD_DELETE = ClusterEvent(Resource.POD, Action.DELETE)

COVERS = {
    "the same": (events.NODE_ADD, events.NODE_ADD, True),
    "another action": (events.NODE_ADD, events.NODE_DELETE, False),
    "another kind": (ClusterEvent(Resource.CSI_NODE, Action.ADD), events.NODE_ADD, False),
    "one of several actions": (
        ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
        NODE_LABEL,
        True,
    ),
    "any update means a certain one": (NODE_UPDATE, NODE_LABEL, True),
    "a certain update does not mean any": (NODE_LABEL, NODE_UPDATE, False),
    "two updates do not mean any": (
        ClusterEvent(Resource.NODE, Action.UPDATE_NODE_LABEL | Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM),
        NODE_UPDATE,
        False,
    ),
    "pods are assigned pods": (POD_DELETE, events.ASSIGNED_POD_DELETE, True),
    "pods are unscheduled pods": (POD_DELETE, PodEvents(True).deleted, True),
    "unscheduled pods are not assigned": (PodEvents(True).deleted, events.ASSIGNED_POD_DELETE, False),
    "everything covers all": (ANYTHING, events.NODE_ADD, True),
    "everything covers a wildcard": (ANYTHING, events.FORCE_ACTIVATE, True),
    "a wildcard is not about nodes": (ClusterEvent(Resource.NODE, Action.ALL), ANYTHING, False),
    "any kind, one action": (ClusterEvent(Resource.ANY, Action.ADD), events.NODE_ADD, True),
    "any kind, another action": (ClusterEvent(Resource.ANY, Action.ADD), events.NODE_DELETE, False),
}


@pytest.mark.parametrize(("asked", "happened", "covered"), COVERS.values(), ids=COVERS.keys())
def test_covers(asked: ClusterEvent, happened: ClusterEvent, covered: bool) -> None:
    assert asked.covers(happened) is covered


def test_the_actions_have_the_order_of_kube_scheduler() -> None:
    assert Action.ADD == 1
    assert Action.ALL == (1 << 14) - 1
    assert Action.UPDATE == Action.ALL - Action.ADD - Action.DELETE


def test_without_registered_events_all_kinds_requeue() -> None:
    kinds = {interest.event.resource for interest in EVERYTHING}
    assert all(interest.event.action == Action.ALL and interest.hint is None for interest in EVERYTHING)
    assert {Resource.POD, Resource.NODE, Resource.RESOURCE_SLICE, Resource.VOLUME_ATTACHMENT} <= kinds
    assert Resource.ANY not in kinds


def test_watched_events_are_those_that_plugins_register() -> None:
    one = QueueRules(lambda pod, first: "", {"A": (on(Resource.NODE, Action.ADD),), "B": ()})
    two = QueueRules(
        lambda pod, first: "",
        {"A": (on(Resource.NODE, Action.DELETE), on(Resource.CSI_NODE, Action.UPDATE))},
    )
    assert watched_actions([one, two]) == {
        Resource.NODE: Action.ADD | Action.DELETE,
        Resource.CSI_NODE: Action.UPDATE,
    }
