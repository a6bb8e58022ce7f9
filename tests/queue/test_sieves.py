"""Where thousands of templates wait, only those are asked about that an event can concern."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.base import Object
from moorage.api.pod import DEFAULT_SCHEDULER, Pod
from moorage.cluster.objects import Objects
from moorage.config.load import default_config
from moorage.framework.interface.handle import Handle
from moorage.framework.runtime.profiles import Profiles
from moorage.plugins import default_registry
from moorage.queue import events
from moorage.queue.events import Action, Interest, Resource, Sieve, on
from moorage.queue.rules import QueueRules
from moorage.queue.scheduling_queue import Place
from tests.builders import make, make_node, make_pod
from tests.queue.helpers import BY_LABEL, GATE, INTERESTS, Case, by_priority, labelled
from tests.strategies import AFFINITY, SPREAD, examples, new_pods, other_objects, placed_pods

RED = make_node("red", labels={"a": "red"})


def cannot_tell(*given: Any) -> None:
    return None


def fails(*given: Any) -> Any:
    raise RuntimeError("this sieve is broken")


def asked(sieve: Sieve | None, **fields: Any) -> Case:
    """A queue where one of ten templates is helped by a red node, which has come."""
    case = Case({"P": (on(Resource.NODE, Action.ADD, labelled, per_template=True, sieve=sieve),)})
    for color in ("red", *(f"blue {number}" for number in range(9))):
        case.refused(color, "P", labels={"a": color})
    case.queue.move_all(events.NODE_ADD, None, RED)
    return case


SIEVES: dict[str, tuple[Sieve | None, int]] = {
    "none": (None, 10),
    "one that can tell": (BY_LABEL, 1),
    "one that cannot tell what pods want": (Sieve(cannot_tell, BY_LABEL.borne), 10),
    "one that cannot tell what has happened": (Sieve(BY_LABEL.wanted, cannot_tell), 10),
    "one that fails at pods": (Sieve(fails, BY_LABEL.borne), 10),
    "one that fails at what has happened": (Sieve(BY_LABEL.wanted, fails), 10),
    "one that lets nothing through": (Sieve(lambda pod: (), lambda old, new: ()), 0),
}


@pytest.mark.parametrize(("sieve", "times"), SIEVES.values(), ids=SIEVES.keys())
def test_how_often_a_hint_is_asked(sieve: Sieve | None, times: int) -> None:
    case = asked(sieve)
    assert sum(case.observer.hints.values()) == times
    assert case.pop_all() == (["red"] if times else [])


def test_who_comes_and_goes_is_found_and_not_found() -> None:
    case = asked(BY_LABEL)
    assert case.pop_all() == ["red"]
    case.refused("later", "P", labels={"a": "red"})
    case.queue.move_all(events.NODE_ADD, None, RED)
    assert case.pop_all() == ["later"]
    case.queue.move_all(events.NODE_ADD, None, RED)
    assert case.pop_all() == []
    assert sum(case.observer.hints.values()) == 2


def test_another_interest_without_a_sieve_is_asked_all_the_same() -> None:
    sieved, plain = INTERESTS["Sieve"][0], INTERESTS["Any"][0]
    case = Case({"P": (sieved, plain)})
    case.refused("p", "P")
    case.queue.move_all(events.NODE_ADD, None, RED)
    assert case.where("p") is Place.ACTIVE


def test_another_plugin_without_a_sieve_is_asked_all_the_same() -> None:
    case = Case()
    case.refused("p", "Sieve", "Any")
    case.queue.move_all(events.NODE_ADD, None, RED)
    assert case.where("p") is Place.ACTIVE


def test_the_pod_that_an_event_is_about_goes_through_every_sieve() -> None:
    closed = Sieve(lambda pod: (), lambda old, new: ())
    interest = on(Resource.POD, Action.ALL, lambda pod, old, new: new.uid == pod.uid, sieve=closed)
    case = Case({"P": (interest,)})
    for name in ("p", "q"):
        case.refused(name, "P")
    case.queue.move_all(events.UNSCHEDULED_POD_UPDATE, make_pod("q", uid="q"), make_pod("q", uid="q"))
    assert (case.where("p"), case.where("q")) == (Place.UNSCHEDULABLE, Place.ACTIVE)


def test_a_gates_sieve_does_not_speak_for_who_else_refused_the_pod() -> None:
    closed = Sieve(lambda pod: (), lambda old, new: ())
    never = on(Resource.NODE, Action.ADD, lambda pod, old, new: False, per_template=True, sieve=closed)
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
    everything = Sieve(lambda pod: ["all"], lambda old, new: ["all"])
    gate = on(Resource.NODE, Action.ADD, None, sieve=everything)
    rules = QueueRules(case._gate, {"P": (gate,), GATE: (gate,)})
    case.queue.reconfigure({DEFAULT_SCHEDULER: rules}, by_priority)
    case.queue.validate()
    assert case.queue.pending()[Place.GATED] == 9
    case.closed.clear()
    case.queue.move_all(events.NODE_ADD, None, RED)
    assert case.queue.pending()[Place.GATED] == 0


# The plugins' own: whatever helps a pod gets through.

ABOUT = (AFFINITY, SPREAD)


def sieved_interests(plugin: str, resource: Resource, objects: Objects) -> list[Interest]:
    framework = Profiles(default_config(), default_registry(), Handle(objects))[DEFAULT_SCHEDULER]
    interests = framework.queue_rules().interests[plugin]
    return [each for each in interests if each.sieve is not None and each.event.resource == resource]


def lets_through(sieve: Sieve, pod: Pod, old: Object | None, new: Object | None) -> bool:
    def told(tell: Callable[[], Any]) -> Any:
        try:
            return tell()
        except Exception:
            return None

    wanted, borne = told(lambda: sieve.wanted(pod)), told(lambda: sieve.borne(old, new))
    return wanted is None or borne is None or not set(wanted).isdisjoint(borne)


@examples(300)
@given(data=st.data())
def test_whatever_helps_gets_through(data: st.DataObject) -> None:
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
        assert interest.sieve is not None
        for old, new in ((None, after), (before, after), (before, None)):
            if not _covers(interest, old, new):
                continue
            try:
                helps = interest.hint(waiting, old, new)
            except Exception:
                continue
            assert not helps or lets_through(interest.sieve, waiting, old, new)


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
    assert interest.sieve is not None
    assert lets_through(interest.sieve, pod, old, new) is passes


FREED: dict[str, tuple[Pod, Pod, bool]] = {
    "its claim": (using("p", "a"), using("q", "a", on="n"), True),
    "another claim": (using("p", "a"), using("q", "b", on="n"), False),
    "a claim of this name elsewhere": (using("p", "a"), using("q", "a", on="n", namespace="else"), False),
    "nothing": (using("p", "a"), make_pod("q", on="n"), False),
    "a disk, for who wants one": (with_disk("p", "d"), with_disk("q", "d", on="n"), True),
    "a disk, for who wants a claim": (using("p", "a"), with_disk("q", "d", on="n"), False),
}


@pytest.mark.parametrize(("pod", "gone", "passes"), FREED.values(), ids=FREED.keys())
def test_what_a_pod_frees_that_goes(pod: Pod, gone: Pod, passes: bool) -> None:
    [interest] = sieved_interests("VolumeRestrictions", Resource.POD, Objects())
    assert interest.sieve is not None
    assert lets_through(interest.sieve, pod, gone, None) is passes
    assert interest.helps(pod, gone, None) is passes
