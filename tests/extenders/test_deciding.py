"""Decisions with extenders: what passes, what counts, whom to evict, and what the pod's message says."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from moorage.api.base import Object
from moorage.api.pod import Pod
from moorage.clock import VirtualClock
from moorage.cluster.cache import Cache
from moorage.config.load import parse_config
from moorage.engine.decision import Decision
from moorage.engine.engine import Engine
from moorage.framework.extenders.extenders import ExtenderError
from moorage.framework.interface.effects import EvictPods
from moorage.framework.interface.handle import Handle
from moorage.framework.loading.registry import RegistryError
from moorage.framework.runtime.framework import Framework
from moorage.framework.runtime.profiles import Profiles
from moorage.http.transport import Response
from moorage.plugins import default_registry
from moorage.services.extender_client import http_extenders
from tests.builders import make_node, make_pod
from tests.extenders.extender_responses import Service, configuration_with, keeping, names_in, scoring

FAILING = Response(500, b"")


def extender(url: str = "http://one", **fields: Any) -> dict[str, Any]:
    return {"urlPrefix": url, "nodeCacheCapable": True, **fields}


FILTERING = extender(filterVerb="filter")
SCORING = extender(prioritizeVerb="prioritize", weight=1)
PREEMPTING = extender(filterVerb="filter", preemptVerb="preempt")


def framework_of(service: Service, *extenders: dict[str, Any], plugins: Any = None) -> Framework:
    """The default profile with extenders, or with other plugins."""
    profile = {"plugins": plugins} if plugins else {}
    config = parse_config(configuration_with({"profiles": [profile], "extenders": list(extenders)}), "test")
    handle = Handle(extenders=http_extenders(config.extenders, VirtualClock(), service.connect))
    return next(iter(Profiles(config, default_registry(), handle).values()))


def decided(
    framework: Framework, objects: Iterable[Object], pod: Pod | None = None, seed: int = 0
) -> Decision:
    snapshot = Cache(objects).snapshot()
    deciding = Engine(seed=seed).decide_async(framework, pod or make_pod("p", uid="p"), snapshot)
    return asyncio.run(deciding)


ABC = [make_node(name) for name in "abc"]


def test_extenders_are_asked_one_after_another_about_what_is_left() -> None:
    def answer(question: Any) -> Any:
        return keeping("a", "b")(question) if len(names_in(question)) == 3 else keeping("b", "c")(question)

    service = Service(filter=answer)
    framework = framework_of(service, FILTERING, extender("http://two", filterVerb="filter"))
    decision = decided(framework, ABC)
    assert (decision.node, decision.evaluated) == ("b", 3)
    assert [(each.url, names_in(each.question)) for each in service.asked] == [
        ("http://one/filter", ["a", "b", "c"]),
        ("http://two/filter", ["a", "b"]),
    ]


def test_ignorable_extenders_come_last() -> None:
    service = Service(filter=keeping("a"))
    first = extender("http://first", filterVerb="filter", ignorable=True)
    decided(framework_of(service, first, extender("http://second", filterVerb="filter")), ABC)
    assert [each.url for each in service.asked] == ["http://second/filter", "http://first/filter"]


def test_what_plugins_refuse_is_not_asked_about() -> None:
    service = Service(filter=keeping("b"))
    decision = decided(framework_of(service, FILTERING), [make_node("a", unschedulable=True), make_node("b")])
    assert (decision.node, names_in(service.questions("filter")[0])) == ("b", ["b"])
    service = Service(filter=keeping("b"))
    decision = decided(framework_of(service, FILTERING), [make_node("a", unschedulable=True)])
    assert (decision.node, service.asked) == (None, [])


NOT_HELPFUL = "Preemption is not helpful for scheduling."
NO_VICTIMS = "No preemption victims found for incoming pod."
MESSAGES = {
    "refused": (keeping(why="too far"), f"3 too far. preemption: 0/3 nodes are available: 3 {NO_VICTIMS}"),
    "refused for good": (
        keeping(why="too far", unresolvable=True),
        f"3 too far. preemption: 0/3 nodes are available: 3 {NOT_HELPFUL}",
    ),
    "without a word": (
        lambda question: {"NodeNames": []},
        f"preemption: 0/3 nodes are available: 3 {NOT_HELPFUL}",
    ),
    "with empty words": (
        keeping(why="", unresolvable=True),
        f"3 . preemption: 0/3 nodes are available: 3 {NOT_HELPFUL}",
    ),
    "of nodes that are not there": (
        lambda question: {"NodeNames": [], "FailedNodes": {"z": "who?", "a": "me"}},
        f"1 me. preemption: 0/3 nodes are available: 1 {NO_VICTIMS[:-1]}, 2 {NOT_HELPFUL}",
    ),
}


@pytest.mark.parametrize(("answer", "message"), MESSAGES.values(), ids=MESSAGES)
def test_what_the_message_says(answer: Any, message: str) -> None:
    decision = decided(framework_of(Service(filter=answer), FILTERING), ABC)
    assert decision.message == f"0/3 nodes are available: {message}"
    assert decision.diagnosis.plugins == {"Extender"}


def test_nodes_that_are_refused_are_evaluated_if_there_is_a_word_for_it() -> None:
    with_words = Service(filter=keeping("a"))
    assert decided(framework_of(with_words, FILTERING), ABC).evaluated == 3
    without = Service(filter=lambda question: {"NodeNames": ["a"]})
    assert decided(framework_of(without, FILTERING), ABC).evaluated == 1


STRANGE = 'extender "http://one" claims a filtered node "z" which is not found in the input node list'
ERRORS = {
    "an error": (lambda question: {"Error": "confused"}, "confused"),
    "another status": (
        lambda question: FAILING,
        "failed filter with extender at URL http://one/filter, code 500",
    ),
    "a node that was not asked about": (lambda question: {"NodeNames": ["a", "z"]}, STRANGE),
}


@pytest.mark.parametrize(("answer", "message"), ERRORS.values(), ids=ERRORS)
@pytest.mark.parametrize("ignorable", [False, True])
def test_an_extender_that_fails_fails_the_attempt_unless_it_is_ignorable(
    answer: Any, message: str, ignorable: bool
) -> None:
    service = Service(filter=answer)
    decision = decided(framework_of(service, {**FILTERING, "ignorable": ignorable}), ABC)
    if ignorable:
        assert (decision.error, len(decision.feasible)) == (None, 3)
    else:
        assert isinstance(decision.error, ExtenderError)
        assert (decision.node, decision.message) == (None, message)


def test_only_pods_that_want_a_managed_resource_are_asked_about() -> None:
    service = Service(filter=keeping("a"), prioritize=scoring())
    managing = {**FILTERING, **SCORING, "managedResources": [{"name": "example.com/gpu"}]}
    framework = framework_of(service, managing)
    assert len(decided(framework, ABC).feasible) == 3
    assert not service.asked


def test_a_resource_that_the_scheduler_ignores_is_not_counted() -> None:
    pod = make_pod("p", requests={"example.com/gpu": "1"})
    counted = {**FILTERING, "managedResources": [{"name": "example.com/gpu"}]}
    ignored = {**FILTERING, "managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}]}
    service = Service(filter=keeping("a"))
    assert decided(framework_of(service, counted), ABC, pod).node is None
    assert decided(framework_of(service, ignored), ABC, pod).node == "a"
    without = {"multiPoint": {"disabled": [{"name": "NodeResourcesFit"}]}}
    with pytest.raises(RegistryError, match="can't find NodeResourcesFitArgs in plugin config"):
        framework_of(service, ignored, plugins=without)


# Scores


NOTHING_ELSE = {
    "multiPoint": {
        "enabled": [{"name": name} for name in ("PrioritySort", "NodeName", "DefaultBinder")],
        "disabled": [{"name": "*"}],
    }
}


def test_scores_are_weighted_times_ten_and_added() -> None:
    service = Service(prioritize=scoring(a=3, b=10, z=9))
    framework = framework_of(service, {**SCORING, "weight": 7})
    decision = decided(framework, ABC)
    without = decided(framework_of(Service()), ABC)
    assert decision.node == "b"
    for name, extra in (("a", 210), ("b", 700), ("c", 0)):
        assert decision.scores_of(name) == {**without.scores_of(name), "http://one": extra}
    assert names_in(service.questions("prioritize")[0]) == ["a", "b", "c"]


def test_extenders_of_one_address_are_added_up() -> None:
    service = Service(prioritize=scoring(a=1))
    decision = decided(framework_of(service, SCORING, SCORING, plugins=NOTHING_ELSE), ABC)
    assert decision.scores_of("a") == {"http://one": 20}
    assert decision.node == "a"


def test_extenders_score_at_the_same_time() -> None:
    async def scenario() -> None:
        service = Service(prioritize=scoring(a=1))
        service.may_answer.clear()
        framework = framework_of(
            service, SCORING, extender("http://two", prioritizeVerb="prioritize", weight=2)
        )
        deciding = asyncio.ensure_future(
            Engine(seed=0).decide_async(framework, make_pod("p"), Cache(ABC).snapshot())
        )
        while len(service.asked) < 2:
            await asyncio.sleep(0)
        assert framework.handle.extenders.prioritizing == 2
        service.may_answer.set()
        assert (await deciding).node == "a"
        assert framework.handle.extenders.prioritizing == 0

    asyncio.run(scenario())


def test_scores_that_cannot_be_had_are_done_without() -> None:
    def answer(question: Any) -> Any:
        return FAILING

    decision = decided(framework_of(Service(prioritize=answer), SCORING, plugins=NOTHING_ELSE), ABC)
    assert (decision.error, decision.node is not None) == (None, True)
    assert decision.scores_of("a") == {"http://one": 0}


def test_scores_are_not_looked_at_for_being_too_large() -> None:
    decision = decided(
        framework_of(Service(prioritize=scoring(a=(1 << 62), b=11)), SCORING, plugins=NOTHING_ELSE), ABC
    )
    assert decision.scores_of("a") == {"http://one": -(1 << 63)}  # Times ten, in 64 bits.
    assert decision.scores_of("b") == {"http://one": 110}


def test_one_node_is_not_scored() -> None:
    service = Service(prioritize=scoring(a=1))
    assert decided(framework_of(service, SCORING), ABC[:1]).node == "a"
    assert not service.asked


def test_ties_are_broken_at_random_among_the_nodes_that_an_extender_spoke_of() -> None:
    service = Service(prioritize=scoring(a=0, c=0))
    framework = framework_of(service, SCORING, plugins=NOTHING_ELSE)
    chosen = Counter(decided(framework, ABC, seed=seed).node for seed in range(60))
    assert chosen.keys() == {"a", "c"}
    assert min(chosen.values()) > 15


def test_extenders_that_filter_or_score_see_every_node() -> None:
    service = Service(filter=keeping("c"))
    assert decided(framework_of(service, FILTERING, plugins=NOTHING_ELSE), ABC).node == "c"
    service = Service(prioritize=scoring(c=1))
    assert decided(framework_of(service, SCORING, plugins=NOTHING_ELSE), ABC).node == "c"


# The nominated node


def nominated_to(name: str) -> Pod:
    return make_pod("p", uid="p", status={"nominatedNodeName": name})


def test_a_nominated_node_that_passes_is_the_only_one_looked_at() -> None:
    service = Service(filter=keeping("b"))
    assert decided(framework_of(service, FILTERING), ABC, nominated_to("b")).node == "b"
    assert [names_in(question) for question in service.questions("filter")] == [["b"]]


def test_a_nominated_node_that_an_extender_refuses_is_looked_at_with_the_others() -> None:
    service = Service(filter=keeping("a"))
    assert decided(framework_of(service, FILTERING), ABC, nominated_to("b")).node == "a"
    assert [names_in(question) for question in service.questions("filter")] == [["b"], ["a", "b", "c"]]


def test_an_extender_that_fails_at_the_nominated_node_is_asked_about_all() -> None:
    def answer(question: Any) -> Any:
        return FAILING if len(names_in(question)) == 1 else keeping("c")(question)

    decision = decided(framework_of(Service(filter=answer), FILTERING), ABC, nominated_to("b"))
    assert decision.node == "c"


# Preemption


def full(name: str, *victims: Pod) -> list[Object]:
    return [make_node(name, allocatable={"cpu": "1", "memory": "8Gi", "pods": "10"}), *victims]


def victim(name: str, node: str, priority: int = 0) -> Pod:
    return make_pod(name, uid=name, on=node, priority=priority, requests={"cpu": "500m"})


CLUSTER = [
    *full("a", victim("a1", "a"), victim("a2", "a")),
    *full("b", victim("b1", "b", 5), victim("b2", "b", 5)),
]
IMPORTANT = make_pod("p", uid="p", priority=10, requests={"cpu": "1"})


def meta(**nodes: list[str]) -> dict[str, Any]:
    return {
        "NodeNameToMetaVictims": {
            name: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": 0}
            for name, uids in nodes.items()
        }
    }


def outcome(answer: Any, *extenders: dict[str, Any]) -> tuple[str | None, set[str], str]:
    """The node that is being freed, whom that costs, and what the pod's message ends with."""
    service = Service(filter=keeping(), preempt=answer)
    decision = decided(framework_of(service, *extenders or (PREEMPTING,)), CLUSTER, IMPORTANT)
    arranged = decision.post_filter
    assert arranged is not None
    evicted = {
        pod.name for effect in arranged.effects if isinstance(effect, EvictPods) for pod in effect.victims
    }
    return arranged.nominated_node, evicted, decision.message.partition("Insufficient cpu. ")[2]


def found(node: str, *victims: str) -> tuple[str, set[str], str]:
    placement = f"found a potential placement for pod on node {node}, preempting {len(victims)} victims"
    return node, set(victims), f"preemption: {placement}"


def test_without_a_word_from_extenders_the_least_important_go() -> None:
    assert outcome(None, FILTERING) == found("a", "a1", "a2")


LEFT = {
    "a node is taken out": (meta(b=["b1", "b2"]), found("b", "b1", "b2")),
    "a victim is taken out": (meta(a=["a2"]), found("a", "a2")),
    "both are left, the better one wins": (meta(b=["b1"], a=["a1", "a2"]), found("a", "a1", "a2")),
    "none is left": (
        {},
        (None, set(), "preemption: no candidate node for preemption"),
    ),
}


@pytest.mark.parametrize(("answer", "expected"), LEFT.values(), ids=LEFT)
def test_extenders_may_take_nodes_and_victims_out(answer: Any, expected: Any) -> None:
    assert outcome(lambda question: answer) == expected


def test_budgets_are_counted_by_the_extender_s_word() -> None:
    answer = meta(a=["a1", "a2"], b=["b1", "b2"])
    answer["NodeNameToMetaVictims"]["a"]["NumPDBViolations"] = 1
    assert outcome(lambda question: answer)[0] == "b"


BAD_VICTIMS = {
    "a stranger": (
        meta(a=["zz"]),
        "extender: http://one claims to preempt pod (UID: &{zz}) on node: a, "
        "but the pod is not found on that node",
    ),
    "an unknown node": (meta(z=["a1"]), 'nodeinfo not found for node name "z"'),
    "nobody": (meta(a=[]), 'expected at least one victim pod on node "a"'),
    "a failure": (FAILING, "failed preempt with extender at URL http://one/preempt, code 500"),
}


@pytest.mark.parametrize(("answer", "message"), BAD_VICTIMS.values(), ids=BAD_VICTIMS)
def test_answers_that_fail_the_preemption(answer: Any, message: str) -> None:
    assert outcome(lambda question: answer) == (None, set(), f"preemption: {message}")


IGNORED = {
    "a stranger": (meta(a=["zz"]), "a"),
    "a failure": (FAILING, "a"),
    "nobody on one node": (meta(a=[], b=["b1", "b2"]), "b"),
    "nobody anywhere": (meta(a=[]), None),
}


@pytest.mark.parametrize(("answer", "node"), IGNORED.values(), ids=IGNORED)
def test_an_ignorable_extender_is_gone_on_without(answer: Any, node: str | None) -> None:
    assert outcome(lambda question: answer, FILTERING, {**PREEMPTING, "ignorable": True})[0] == node


def test_each_extender_sees_what_the_one_before_it_left() -> None:
    service = Service(
        filter=keeping(),
        preempt=lambda question: meta(b=["b2"] if len(question["NodeNameToMetaVictims"]) == 2 else ["b1"]),
    )
    framework = framework_of(service, PREEMPTING, extender("http://two", preemptVerb="preempt"))
    decision = decided(framework, CLUSTER, IMPORTANT)
    first, second = (question["NodeNameToMetaVictims"] for question in service.questions("preempt"))
    assert {name: {pod["UID"] for pod in each["Pods"]} for name, each in first.items()} == {
        "a": {"a1", "a2"},
        "b": {"b1", "b2"},
    }
    assert list(second) == ["b"]
    assert decision.post_filter is not None
    assert decision.post_filter.nominated_node == "b"


def test_nodes_that_are_refused_for_good_are_no_candidates() -> None:
    roomy = [make_node("a"), victim("a1", "a")]
    service = Service(filter=keeping(unresolvable=True), preempt=lambda question: meta(a=["a1"]))
    decision = decided(framework_of(service, PREEMPTING), roomy, IMPORTANT)
    assert decision.post_filter is not None
    assert (decision.post_filter.nominated_node, service.questions("preempt")) == ("", [])


# Binding


def test_the_extender_that_binds() -> None:
    def bound(*extenders: dict[str, Any], answer: Any = None) -> Any:
        service = Service(bind=lambda question: answer or {})
        extenders_of = framework_of(service, *extenders).handle.extenders
        try:
            return asyncio.run(extenders_of.bind(make_pod("p"), "a")), len(service.asked)
        except ExtenderError as error:
            return str(error)

    binding = extender(bindVerb="bind")
    managing = {**binding, "managedResources": [{"name": "example.com/gpu"}]}
    assert bound(FILTERING) == (False, 0)
    assert bound(binding) == (True, 1)
    assert bound(managing) == (False, 0)
    assert bound(binding, answer={"Error": "no"}) == "no"
    assert bound({**binding, "ignorable": True}, answer={"Error": "no"}) == (False, 1)


def test_a_decision_that_has_to_wait_is_not_made_at_once() -> None:
    framework = framework_of(Service(filter=keeping("a")), FILTERING)
    with pytest.raises(RuntimeError, match="suspended; await it"):
        asyncio.run(_not_waiting(framework))


async def _not_waiting(framework: Framework) -> Decision:
    return Engine().decide(framework, make_pod("p"), Cache(ABC).snapshot())
