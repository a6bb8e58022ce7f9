"""What plugins register for the queue, through the framework; and the queue with the default plugins."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.pod import DEFAULT_SCHEDULER, Pod
from moorage.clock import VirtualClock
from moorage.config.load import default_config
from moorage.framework.interface.events import Action, Interest, Resource, on
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.status import SUCCESS, Status, unresolvable
from moorage.framework.loading.registry import RegistryError
from moorage.framework.runtime.framework import Framework
from moorage.framework.runtime.profiles import Profiles
from moorage.plugins import default_registry
from moorage.queue import cluster_events as events
from moorage.queue.cluster_events import EVERYTHING
from moorage.queue.event_of_change import PodEvents, node_events
from moorage.queue.queueing_rules import watched_actions
from moorage.queue.scheduling_queue import Place, SchedulingQueue
from tests.builders import make_node, make_pod
from tests.framework.helpers import framework_of

ADDED_OR_UPDATED = Action.ADD | Action.UPDATE

REGISTERED: dict[str, dict[Resource, Action]] = {
    "SchedulingGates": {Resource.POD: Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED},
    "NodeUnschedulable": {
        Resource.NODE: Action.ADD | Action.UPDATE_NODE_TAINT,
        Resource.POD: Action.UPDATE_POD_TOLERATION,
    },
    "NodeName": {Resource.NODE: Action.ADD},
    "TaintToleration": {
        Resource.NODE: Action.ADD | Action.UPDATE_NODE_TAINT,
        Resource.POD: Action.UPDATE_POD_TOLERATION,
    },
    "NodeAffinity": {Resource.NODE: Action.ADD | Action.UPDATE_NODE_LABEL},
    "NodePorts": {Resource.NODE: Action.ADD, Resource.POD: Action.DELETE},
    "NodeResourcesFit": {
        Resource.POD: Action.DELETE | Action.UPDATE_POD_SCALE_DOWN,
        Resource.NODE: Action.ADD | Action.UPDATE_NODE_ALLOCATABLE,
        Resource.DEVICE_CLASS: ADDED_OR_UPDATED,
    },
    "VolumeRestrictions": {
        Resource.POD: Action.DELETE,
        Resource.NODE: Action.ADD,
        Resource.PERSISTENT_VOLUME_CLAIM: Action.ADD,
    },
    "NodeVolumeLimits": {
        Resource.CSI_NODE: ADDED_OR_UPDATED,
        Resource.POD: Action.DELETE,
        Resource.PERSISTENT_VOLUME_CLAIM: Action.ADD,
        Resource.VOLUME_ATTACHMENT: Action.DELETE,
    },
    "VolumeBinding": {
        Resource.STORAGE_CLASS: ADDED_OR_UPDATED,
        Resource.PERSISTENT_VOLUME_CLAIM: ADDED_OR_UPDATED,
        Resource.PERSISTENT_VOLUME: ADDED_OR_UPDATED,
        Resource.NODE: Action.ADD | Action.UPDATE_NODE_LABEL,
        Resource.CSI_NODE: ADDED_OR_UPDATED,
        Resource.CSI_DRIVER: Action.UPDATE,
        Resource.CSI_STORAGE_CAPACITY: ADDED_OR_UPDATED,
    },
    "VolumeZone": {
        Resource.STORAGE_CLASS: Action.ADD,
        Resource.NODE: Action.ADD | Action.UPDATE_NODE_LABEL,
        Resource.PERSISTENT_VOLUME_CLAIM: ADDED_OR_UPDATED,
        Resource.PERSISTENT_VOLUME: ADDED_OR_UPDATED,
    },
    "PodTopologySpread": {
        Resource.POD: Action.ADD | Action.DELETE | Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION,
        Resource.NODE: Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT,
    },
    "InterPodAffinity": {
        Resource.POD: Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE,
        Resource.NODE: Action.ADD | Action.UPDATE_NODE_LABEL,
    },
    "DynamicResources": {
        Resource.NODE: Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE,
        Resource.RESOURCE_CLAIM: ADDED_OR_UPDATED | Action.DELETE,
        Resource.POD: Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM,
        Resource.DEVICE_CLASS: ADDED_OR_UPDATED,
        Resource.RESOURCE_SLICE: ADDED_OR_UPDATED,
    },
    # Upstream registers a deletion with a hint that is always false: only the preemption itself lifts the
    # gate.
    "DefaultPreemption": {},
    "NodeDeclaredFeatures": {
        Resource.NODE: Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE,
        Resource.POD: Action.UPDATE,
    },
}
"""As kube-scheduler v1.37 registers them; pods that are assigned, unscheduled or the target are one here."""


def default_framework(handle: Handle | None = None) -> Framework:
    return Profiles(default_config(), default_registry(), handle)[DEFAULT_SCHEDULER]


def test_what_the_default_plugins_wait_for() -> None:
    rules = default_framework().queue_rules()
    found = {
        plugin: watched_actions([type(rules)(rules.gate, {plugin: interests})])
        for plugin, interests in rules.interests.items()
    }
    assert found == REGISTERED


def test_extenders_wait_for_everything() -> None:
    assert default_framework().queue_rules(extenders=True).interests["Extender"] == EVERYTHING


# Out-of-tree plugins


class Plugin:
    name = "Mine"

    def __init__(self, **answers: Any) -> None:
        if "events" in answers:
            self.events = lambda: answers["events"]
        self.answer = answers.get("answer")

    def pre_enqueue(self, pod: Pod) -> Status | None:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


NODES = (on(Resource.NODE, Action.ADD),)


def test_a_plugin_without_events_waits_for_everything() -> None:
    assert framework_of(Plugin()).queue_rules().interests["Mine"] == EVERYTHING


@pytest.mark.parametrize("answer", [NODES, list(NODES), iter(NODES)], ids=["tuple", "list", "iterator"])
def test_events_can_be_any_sequence(answer: Any) -> None:
    assert framework_of(Plugin(events=answer)).queue_rules().interests["Mine"] == NODES


def test_a_plugin_may_wait_for_nothing() -> None:
    assert framework_of(Plugin(events=())).queue_rules().interests["Mine"] == ()


@pytest.mark.parametrize("answer", [None, "Node", [events.NODE_ADD], 7])
def test_events_that_are_none_are_refused_at_the_start(answer: Any) -> None:
    with pytest.raises(RegistryError, match=r"plugin Mine: events returned .*return a tuple of on\(\.\.\.\)"):
        framework_of(Plugin(events=answer)).queue_rules()


def test_events_with_parameters_are_refused_at_the_start() -> None:
    class Wrong(Plugin):
        def events(self, pod: Pod) -> tuple[Interest, ...]:  # type: ignore[override]
            return ()

    with pytest.raises(RegistryError, match=r"plugin Mine: write def events\(self\)"):
        framework_of(Wrong())


def test_plugins_that_reject_no_pod_are_not_asked() -> None:
    class Scorer:
        name = "Scorer"

        def score(self, cycle: Any, pod: Pod, nodes: Any) -> Any:
            return [0] * len(nodes)

    assert "Scorer" not in framework_of(Scorer()).queue_rules().interests


GATES = {
    "silence": (None, ""),
    "success": (SUCCESS, ""),
    "a refusal": (unresolvable("no"), "Mine"),
    "a failure": (RuntimeError("oh"), "Mine"),
    "nonsense": ("no", "Mine"),
}


@pytest.mark.parametrize(("answer", "gate"), GATES.values(), ids=GATES.keys())
def test_gates(answer: Any, gate: str, caplog: pytest.LogCaptureFixture) -> None:
    framework = framework_of(Plugin(answer=answer))
    assert framework.gate(make_pod("p"), "") == gate
    assert bool(caplog.records) is (answer == "no" or isinstance(answer, Exception))


def test_the_plugin_that_gated_the_pod_last_is_called_first() -> None:
    asked = []

    class Second(Plugin):
        name = "Second"

        def pre_enqueue(self, pod: Pod) -> Status | None:
            asked.append(pod.name)
            return unresolvable("no")

    framework = framework_of(Plugin(answer=unresolvable("no")), Second())
    assert framework.gate(make_pod("p"), "") == "Mine"
    assert framework.gate(make_pod("q"), "Second") == "Second"
    assert asked == ["q"]


# The queue with the default plugins


@pytest.fixture
def queue() -> SchedulingQueue:
    framework = default_framework()
    return SchedulingQueue(
        {DEFAULT_SCHEDULER: framework.queue_rules()}, framework.sort_key, VirtualClock(1000)
    )


def test_a_pod_waits_for_room_until_a_node_comes_that_has_it(queue: SchedulingQueue) -> None:
    pod = make_pod("p", uid="p", requests={"cpu": "2"})
    queue.add(pod)
    queued = queue.pop_now()
    assert queued is not None
    queue.put_back(queued, pod, unschedulable_plugins=["NodeResourcesFit"])
    queue.move_all(events.NODE_ADD, None, make_node("small", allocatable={"cpu": "1", "pods": "9"}))
    assert queue.place_of("p") is Place.UNSCHEDULABLE
    queue.move_all(events.NODE_ADD, None, make_node("large"))
    assert queue.place_of("p") is Place.BACKOFF
    queue.validate()


def test_a_change_of_taints_does_not_requeue_a_pod_that_lacks_resources(queue: SchedulingQueue) -> None:
    pod = make_pod("p", uid="p", requests={"cpu": "2"})
    queue.add(pod)
    queued = queue.pop_now()
    assert queued is not None
    queue.put_back(queued, pod, unschedulable_plugins=["NodeResourcesFit"])
    old, new = make_node("n", taints=["a:NoSchedule"]), make_node("n")
    for event in node_events(old, new):
        queue.move_all(event, old, new)
    assert queue.place_of("p") is Place.UNSCHEDULABLE


def test_a_pod_is_gated_until_its_last_gate_is_lifted(queue: SchedulingQueue) -> None:
    steps = [
        make_pod("p", uid="p", scheduling_gates=[{"name": gate} for gate in gates])
        for gates in ("ab", "b", "")
    ]
    queue.add(steps[0])
    assert queue.place_of("p") is Place.GATED
    queue.update(steps[0], steps[1])
    assert queue.place_of("p") is Place.GATED
    assert PodEvents(tells_target=True).of_update(steps[1], steps[2])
    queue.update(steps[1], steps[2])
    assert queue.place_of("p") is Place.ACTIVE
    queue.validate()
