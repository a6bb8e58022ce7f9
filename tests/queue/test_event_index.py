"""With thousands of equivalence classes, hints are evaluated only for those that an event can concern."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.base import Object
from moorage.api.pod import DEFAULT_SCHEDULER, Pod
from moorage.cluster.object_tables import Objects
from moorage.config.load import default_config
from moorage.framework.interface.handle import Handle
from moorage.framework.runtime.profiles import Profiles
from moorage.plugins import default_registry
from moorage.queue import cluster_events as events
from moorage.queue.cluster_events import Action, EventIndex, Interest, Resource, Subjects, on
from moorage.queue.event_of_change import PodEvents
from moorage.queue.queueing_rules import QueueRules
from moorage.queue.scheduling_queue import Place
from tests.builders import make, make_node, make_pod
from tests.queue.helpers import BY_LABEL, GATE, INTERESTS, Case, by_priority, labelled
from tests.strategies import AFFINITY, SPREAD, examples, new_pods, other_objects, placed_pods

RED = make_node("red", labels={"a": "red"})


def cannot_tell(*given: Any) -> None:
    return None


def fails(*given: Any) -> Any:
    raise RuntimeError("this index is broken")


def asked(index: EventIndex | None, **fields: Any) -> Case:
    """A queue where a red node was added, which helps one of ten equivalence classes."""
    case = Case({"P": (on(Resource.NODE, Action.ADD, labelled, per_equivalence_class=True, index=index),)})
    for color in ("red", *(f"blue {number}" for number in range(9))):
        case.refused(color, "P", labels={"a": color})
    case.queue.move_all(events.NODE_ADD, None, RED)
    return case


INDEXES: dict[str, tuple[EventIndex | None, int]] = {
    "none": (None, 10),
    "one that can tell": (BY_LABEL, 1),
    "one that cannot tell what pods want": (EventIndex(cannot_tell, BY_LABEL.keys_of_event), 10),
    "one that cannot tell what has happened": (EventIndex(BY_LABEL.keys_of_pod, cannot_tell), 10),
    "one that fails at pods": (EventIndex(fails, BY_LABEL.keys_of_event), 10),
    "one that fails at what has happened": (EventIndex(BY_LABEL.keys_of_pod, fails), 10),
    "one that lets nothing through": (EventIndex(lambda pod: (), lambda old, new: ()), 0),
}


@pytest.mark.parametrize(("index", "times"), INDEXES.values(), ids=INDEXES.keys())
def test_how_often_a_hint_is_asked(index: EventIndex | None, times: int) -> None:
    case = asked(index)
    assert sum(case.observer.hints.values()) == times
    assert case.pop_all() == (["red"] if times else [])


SUBJECTS: dict[str, tuple[Subjects | None, int]] = {
    "none": (None, 10),
    "one that can tell": (lambda pod, old, new: ("p3", "unknown"), 1),
    "one that cannot tell": (cannot_tell, 10),
    "one that fails": (fails, 10),
    "one that lets nothing through": (lambda pod, old, new: (), 0),
}


@pytest.mark.parametrize(("subjects", "times"), SUBJECTS.values(), ids=SUBJECTS.keys())
def test_how_often_a_hint_is_asked_for_equivalent_pods(subjects: Subjects | None, times: int) -> None:
    case = Case(
        {"P": (on(Resource.NODE, Action.ADD, lambda pod, old, new: pod.name == "p3", subjects=subjects),)}
    )
    for number in range(10):
        case.refused(f"p{number}", "P")
    case.queue.move_all(events.NODE_ADD, None, RED)
    assert sum(case.observer.hints.values()) == times
    assert case.pop_all() == (["p3"] if times else [])


def test_added_pods_are_found_and_removed_ones_are_not() -> None:
    case = asked(BY_LABEL)
    assert case.pop_all() == ["red"]
    case.refused("later", "P", labels={"a": "red"})
    case.queue.move_all(events.NODE_ADD, None, RED)
    assert case.pop_all() == ["later"]
    case.queue.move_all(events.NODE_ADD, None, RED)
    assert case.pop_all() == []
    assert sum(case.observer.hints.values()) == 2


def test_another_interest_without_a_sieve_is_asked_all_the_same() -> None:
    indexed, plain = INTERESTS["EventIndex"][0], INTERESTS["Any"][0]
    case = Case({"P": (indexed, plain)})
    case.refused("p", "P")
    case.queue.move_all(events.NODE_ADD, None, RED)
    assert case.where("p") is Place.ACTIVE


def test_another_plugin_without_a_sieve_is_asked_all_the_same() -> None:
    case = Case()
    case.refused("p", "EventIndex", "Any")
    case.queue.move_all(events.NODE_ADD, None, RED)
    assert case.where("p") is Place.ACTIVE


def test_the_pod_that_an_event_is_about_goes_through_every_sieve() -> None:
    closed = EventIndex(lambda pod: (), lambda old, new: ())
    interest = on(Resource.POD, Action.ALL, lambda pod, old, new: new.uid == pod.uid, index=closed)
    case = Case({"P": (interest,)})
    for name in ("p", "q"):
        case.refused(name, "P")
    case.queue.move_all(PodEvents(True).updated, make_pod("q", uid="q"), make_pod("q", uid="q"))
    assert (case.where("p"), case.where("q")) == (Place.UNSCHEDULABLE, Place.ACTIVE)


def test_the_index_of_a_gate_does_not_count_for_other_rejectors() -> None:
    closed = EventIndex(lambda pod: (), lambda old, new: ())
    never = on(
        Resource.NODE, Action.ADD, lambda pod, old, new: False, per_equivalence_class=True, index=closed
    )
    case = Case({GATE: (never,), "Any": INTERESTS["Any"]})
    [pod] = case.add("p")
    queued = case.attempt("p")
    case.closed.add("p")
    case.queue.activate([pod])
    case.fail(queued, "Any")
    assert case.where("p") is Place.GATED
    case.closed.clear()
    case.queue.move_all(events.NODE_ADD, None, RED)
    assert case.where("p") is Place.BACKOFF


def test_other_plugins_have_their_own_sieves() -> None:
    case = asked(BY_LABEL)
    case.closed.update(f"blue {number}" for number in range(9))
    everything = EventIndex(lambda pod: ["all"], lambda old, new: ["all"])
    gate = on(Resource.NODE, Action.ADD, None, index=everything)
    rules = QueueRules(case._gate, {"P": (gate,), GATE: (gate,)})
    case.queue.reconfigure({DEFAULT_SCHEDULER: rules}, by_priority)
    case.queue.validate()
    assert case.queue.pending()[Place.GATED] == 9
    case.closed.clear()
    case.queue.move_all(events.NODE_ADD, None, RED)
    assert case.queue.pending()[Place.GATED] == 0


# The plugins' own indexes: an event that helps a pod is never filtered out.

ABOUT = (AFFINITY, SPREAD)


def sieved_interests(plugin: str, resource: Resource, objects: Objects) -> list[Interest]:
    framework = Profiles(default_config(), default_registry(), Handle(objects))[DEFAULT_SCHEDULER]
    interests = framework.queue_rules().interests[plugin]
    return [each for each in interests if each.index is not None and each.event.resource == resource]


def lets_through(index: EventIndex, pod: Pod, old: Object | None, new: Object | None) -> bool:
    def keys(compute: Callable[[], Any]) -> Any:
        try:
            return compute()
        except Exception:
            return None

    of_pod, of_event = keys(lambda: index.keys_of_pod(pod)), keys(lambda: index.keys_of_event(old, new))
    return of_pod is None or of_event is None or not set(of_pod).isdisjoint(of_event)


@examples(300)
@given(data=st.data())
def test_every_helpful_event_passes_the_index(data: st.DataObject) -> None:
    objects = Objects()
    for manifest in data.draw(other_objects(ABOUT)):
        objects.put(make(manifest))
    waiting = make(data.draw(new_pods("p", ABOUT)))
    before, after = (make(data.draw(placed_pods("q", "n", ABOUT))) for _ in range(2))
    assert isinstance(waiting, Pod)
    for interest in (
        *sieved_interests("InterPodAffinity", Resource.POD, objects),
        *sieved_interests("PodTopologySpread", Resource.POD, objects),
    ):
        assert interest.hint is not None
        assert interest.index is not None
        for old, new in ((None, after), (before, after), (before, None)):
            if not _covers(interest, old, new):
                continue
            try:
                helps = interest.hint(waiting, old, new)
            except Exception:
                continue
            assert not helps or lets_through(interest.index, waiting, old, new)


def _covers(interest: Interest, old: Any, new: Any) -> bool:
    action = Action.ADD if old is None else Action.DELETE if new is None else Action.UPDATE_POD_LABEL
    return interest.event.covers(events.event(Resource.ASSIGNED_POD, action))


def using(name: str, claim: str, **fields: Any) -> Pod:
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": claim}}
    return make_pod(name, uid=name, volumes=[volume], **fields)


def with_disk(name: str, disk: str, **fields: Any) -> Pod:
    volume = {"name": "v", "gcePersistentDisk": {"pdName": disk}}
    return make_pod(name, uid=name, volumes=[volume], **fields)


def claim(name: str, namespace: str = "default") -> Object:
    meta = {"name": name, "namespace": namespace}
    return make({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta})


OWN = make_pod(
    "p", uid="p", volumes=[{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {"resources": {}}}}}]
)

CLAIMS: dict[str, tuple[Pod, Object | None, Object | None, bool]] = {
    "its claim comes": (using("p", "a"), None, claim("a"), True),
    "its claim changes": (using("p", "a"), claim("a"), claim("a"), True),
    "another claim comes": (using("p", "a"), None, claim("b"), False),
    "a claim of this name comes elsewhere": (using("p", "a"), None, claim("a", "else"), False),
    "the claim comes that is made for it": (OWN, None, claim("p-v"), True),
    "a claim comes that a pod without volumes cannot use": (make_pod("p"), None, claim("a"), False),
}


@pytest.mark.parametrize("plugin", ["NodeVolumeLimits", "VolumeBinding", "VolumeRestrictions", "VolumeZone"])
@pytest.mark.parametrize(("pod", "old", "new", "passes"), CLAIMS.values(), ids=CLAIMS.keys())
def test_claims(plugin: str, pod: Pod, old: Object | None, new: Object | None, passes: bool) -> None:
    [interest] = sieved_interests(plugin, Resource.PERSISTENT_VOLUME_CLAIM, Objects())
    assert interest.index is not None
    assert lets_through(interest.index, pod, old, new) is passes


FREED: dict[str, tuple[Pod, Pod, bool]] = {
    "its claim": (using("p", "a"), using("q", "a", on="n"), True),
    "another claim": (using("p", "a"), using("q", "b", on="n"), False),
    "a claim of this name elsewhere": (using("p", "a"), using("q", "a", on="n", namespace="else"), False),
    "nothing": (using("p", "a"), make_pod("q", on="n"), False),
    "a disk, for a pod with one": (with_disk("p", "d"), with_disk("q", "d", on="n"), True),
    "a disk, for a pod with a claim": (using("p", "a"), with_disk("q", "d", on="n"), False),
}


@pytest.mark.parametrize(("pod", "gone", "passes"), FREED.values(), ids=FREED.keys())
def test_what_a_pod_frees_that_goes(pod: Pod, gone: Pod, passes: bool) -> None:
    [interest] = sieved_interests("VolumeRestrictions", Resource.POD, Objects())
    assert interest.index is not None
    assert lets_through(interest.index, pod, gone, None) is passes
    assert interest.helps(pod, gone, None) is passes
