"""Capacity: who is refused, and who is evicted for whom."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from moorage import Handle, Object, Pod, Profiles, RegistryError, default_registry
from moorage.config.load import ConfigError, parse_profiles
from moorage.optional_plugins.capacity.plugin import Capacity
from moorage.testing import check_plugin
from tests.builders import make
from tests.optional_plugins.capacity.quotas import Scene, evicted, node, pod, quota

LOW, MID, HIGH = 0, 100, 1000
FULL = "all ElasticQuotas: cpu: used {}, requested {}, min {}"


def test_it_keeps_the_rules_for_plugins() -> None:
    report = check_plugin(Capacity)
    assert report.ok, report


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            {"minCandidateNodesPercentage": 101},
            "args: minCandidateNodesPercentage: 101 is not in the range [0, 100]",
        ),
        ({"minCandidateNodesAbsolute": -1}, "args: minCandidateNodesAbsolute: -1 is negative"),
        ({"minCandidateNodes": 1}, "minCandidateNodes"),
    ],
)
def test_wrong_arguments_are_refused(args: dict[str, int], message: str) -> None:
    profile = {"plugins": {"multiPoint": {"enabled": [{"name": "Capacity"}]}}}
    profile["pluginConfig"] = [{"name": "Capacity", "args": args}]  # type: ignore[assignment]
    with pytest.raises((ConfigError, RegistryError), match=re.escape(message)):
        Profiles(parse_profiles([profile]), default_registry(), Handle())


# What scheduler-plugins' own tests expect of CapacityScheduling

PRE_FILTER = {
    "pod subjects to ElasticQuota": (
        [quota("ns1", {"memory": 1000}, {"memory": 2000})],
        [("ns1", 300)],
        [("ns1", 500, True), ("ns1", 1800, False)],
    ),
    "the sum of used is bigger than the sum of min": (
        [quota("ns1", {"memory": 1000}, {"memory": 2000}), quota("ns2", {"memory": 1000}, {"memory": 2000})],
        [("ns1", 1800), ("ns2", 200)],
        [("ns2", 500, False)],
    ),
    "without elasticQuotaInfo": ([], [], [("ns2", 500, True)]),
}


@pytest.mark.parametrize(("quotas", "used", "expected"), PRE_FILTER.values(), ids=PRE_FILTER)
def test_pre_filter_as_the_model(
    quotas: Sequence[Object], used: Sequence[tuple[str, int]], expected: Sequence[tuple[str, int, bool]]
) -> None:
    there = [
        pod(f"p{number}", namespace, on="a", requests={"memory": str(amount)})
        for number, (namespace, amount) in enumerate(used)
    ]
    scene = Scene(node("a", 8), *quotas, *there)
    for namespace, amount, passes in expected:
        assert bool(scene.node_of(pod("new", namespace, requests={"memory": str(amount)}))) is passes


def memory(name: str, namespace: str, amount: int, priority: int, on: str = "") -> Pod:
    return pod(name, namespace, on=on, priority=priority, requests={"memory": str(amount)})


def of_memory(name: str, least: int, most: int) -> Object:
    return quota(name, {"memory": least}, {"memory": most})


PREEMPTION: dict[str, tuple[Sequence[Object], Sequence[Pod], list[str]]] = {
    "in-namespace preemption": (
        [of_memory("ns1", 50, 200), of_memory("ns2", 200, 200)],
        [
            memory("p1", "ns1", 50, MID, "a"),
            memory("p2", "ns2", 50, MID, "a"),
            memory("p3", "ns2", 50, MID, "a"),
            memory("new", "ns1", 50, HIGH),
        ],
        ["p1"],
    ),
    "cross-namespace preemption": (
        [of_memory("ns1", 150, 200), of_memory("ns2", 50, 200)],
        [
            memory("p1", "ns1", 50, MID, "a"),
            memory("p2", "ns2", 50, HIGH, "a"),
            memory("p3", "ns2", 50, MID, "a"),
            memory("new", "ns1", 50, HIGH),
        ],
        ["p3"],
    ),
    "an overused quota does not preempt pods of others": (
        [of_memory("ns1", 100, 200), of_memory("ns2", 100, 200)],
        [
            memory("p1", "ns1", 50, MID, "a"),
            memory("p2", "ns2", 50, HIGH, "a"),
            memory("p3", "ns2", 50, HIGH, "a"),
            memory("new", "ns2", 50, HIGH),
        ],
        [],
    ),
    "without quotas, by priority": (
        [],
        [
            memory("p1", "ns1", 50, HIGH, "a"),
            memory("p2", "ns1", 50, LOW, "a"),
            memory("p3", "ns2", 50, HIGH, "a"),
            memory("new", "ns2", 50, MID),
        ],
        ["p2"],
    ),
    "a pod without a quota spares pods that have one": (
        [of_memory("ns1", 50, 200)],
        [
            memory("p1", "ns1", 100, LOW, "a"),
            memory("p2", "ns3", 50, LOW, "a"),
            memory("new", "ns2", 100, HIGH),
        ],
        [],
    ),
}


@pytest.mark.parametrize(("quotas", "pods", "victims"), PREEMPTION.values(), ids=PREEMPTION)
def test_preemption_as_the_model(quotas: Sequence[Object], pods: Sequence[Pod], victims: list[str]) -> None:
    scene = Scene(node("a", 8, memory="150"), *quotas, *pods[:-1])
    assert scene.evicted(pods[-1]) == victims


# Limits

TEAMS = (quota("red", {"cpu": 4}, {"cpu": 6}), quota("blue", {"cpu": 4}, {"cpu": 6}))


def on_a(prefix: str, namespace: str, count: int, *, first_age: float = 100.0, **fields: object) -> list[Pod]:
    """Pods of one CPU on node a, each newer than the one before."""
    return [
        pod(f"{prefix}{number}", namespace, on="a", age=first_age - number, **fields)  # type: ignore[arg-type]
        for number in range(count)
    ]


REFUSALS = {
    "borrowing": (4, 0, 2, ""),
    "up to max": (5, 0, 1, ""),
    "over max": (6, 0, 1, "ElasticQuota red/red: cpu: used 6, requested 1, max 6"),
    "over all that is guaranteed": (5, 3, 1, FULL.format(8, 1, 8)),
    "over both": (
        6,
        2,
        1,
        f"ElasticQuota red/red: cpu: used 6, requested 1, max 6, {FULL.format(8, 1, 8)}",
    ),
    "more than there ever is": (0, 0, 7, "ElasticQuota red/red: cpu: used 0, requested 7, max 6"),
}


@pytest.mark.parametrize(("red", "blue", "cpu", "message"), REFUSALS.values(), ids=REFUSALS)
def test_a_refusal_says_quota_resource_and_amounts(red: int, blue: int, cpu: int, message: str) -> None:
    scene = Scene(node("a", 20), *TEAMS, *on_a("r", "red", red), *on_a("b", "blue", blue))
    decision = scene.decide(pod("new", "red", cpu))
    assert bool(decision.node) is (not message)
    assert decision.message.startswith(f"0/1 nodes are available: {message}" if message else "")


def test_resources_of_no_quota_are_not_limited() -> None:
    """In the model, a quota that names GPUs alone has no CPU at all."""
    scene = Scene(node("a", 8, **{"x.com/gpu": "8"}), quota("red", {"x.com/gpu": 2}, {"x.com/gpu": 2}))
    assert scene.node_of(pod("new", "red", requests={"cpu": "4", "x.com/gpu": "2"})) == "a"
    assert scene.node_of(pod("new", "red", requests={"x.com/gpu": "3"})) == ""


def test_pods_are_counted_as_a_resource() -> None:
    scene = Scene(node("a", 8), quota("red", {"pods": 2}, {"pods": 2}), *on_a("r", "red", 1))
    assert scene.node_of(pod("second", "red", requests={})) == "a"
    scene.cache.put(pod("second", "red", on="a", requests={}))
    assert scene.node_of(pod("third", "red", requests={})) == ""


def test_a_change_of_the_quota_counts_at_once() -> None:
    scene = Scene(node("a", 20), *TEAMS, *on_a("r", "red", 6))
    assert scene.node_of(pod("new", "red")) == ""
    scene.cache.put(quota("red", {"cpu": 4}, {"cpu": 7}))
    assert scene.node_of(pod("new", "red")) == "a"
    scene.cache.put(quota("red", {"cpu": 4}, {"cpu": 7}, of="pink"))
    assert scene.node_of(pod("new", "pink", 7)) == "a"
    scene.cache.remove(quota("red"))
    assert scene.node_of(pod("new", "pink", 2)) == "a"


# Reclaiming

RECLAIMS: dict[str, tuple[list[Pod], Pod, list[str]]] = {
    "the newest of the borrower's pods": (
        [*on_a("r", "red", 6), *on_a("b", "blue", 2)],
        pod("new", "blue"),
        ["r5"],
    ),
    "the least important, although others are newer": (
        [pod("old", "red", on="a", age=500, priority=-1), *on_a("r", "red", 5), *on_a("b", "blue", 2)],
        pod("new", "blue"),
        ["old"],
    ),
    "whatever the priorities of the two": (
        [*on_a("r", "red", 6, priority=HIGH), *on_a("b", "blue", 2)],
        pod("new", "blue", 2),
        ["r4", "r5"],
    ),
    "what is not guaranteed is not reclaimed": (
        [*on_a("r", "red", 5), *on_a("b", "blue", 3)],
        pod("new", "blue", 2),
        [],
    ),
    "not below the victim's guarantee": (
        [pod("large", "red", 6, on="a"), *on_a("b", "blue", 2)],
        pod("new", "blue", 2),
        [],
    ),
    "those who leave already free their part": (
        [*on_a("r", "red", 5), pod("leaving", "red", on="a", terminating=True), *on_a("b", "blue", 2)],
        pod("new", "blue", 2),
        ["r4"],
    ),
    "one's own pods stay while others borrow": (
        [*on_a("r", "red", 6), *on_a("b", "blue", 2, first_age=1.0, priority=-5)],
        pod("new", "blue"),
        ["r5"],
    ),
    "one's own less important pods if nothing is borrowed": (
        [*on_a("r", "red", 4), *on_a("b", "blue", 4)],
        pod("new", "blue", priority=MID),
        ["b3"],
    ),
    "not one's own pods of equal priority": (
        [*on_a("r", "red", 4), *on_a("b", "blue", 4)],
        pod("new", "blue"),
        [],
    ),
    "a pod that never preempts": (
        [*on_a("r", "red", 6), *on_a("b", "blue", 2)],
        pod("new", "blue", preemption_policy="Never"),
        [],
    ),
}


@pytest.mark.parametrize(("there", "new", "victims"), RECLAIMS.values(), ids=RECLAIMS)
def test_what_was_borrowed_is_given_back(there: list[Pod], new: Pod, victims: list[str]) -> None:
    scene = Scene(node("a", 8), *TEAMS, *there)
    result = scene.decide(new).post_filter
    assert (evicted(result) if result is not None else []) == victims


def test_a_quota_gets_back_what_is_spread_over_nodes() -> None:
    """No node has victims enough: the nodes have room, it is the quota that lacks."""
    there = [pod(f"r{number}", "red", on=f"n{number}", age=100 - number) for number in range(6)]
    nodes = [node(f"n{number}", 4) for number in range(6)]
    scene = Scene(*nodes, *TEAMS, *there, pod("b0", "blue", 2, on="n0"))
    result = scene.decide(pod("new", "blue", 2)).post_filter
    assert result is not None
    assert evicted(result) == ["r4", "r5"]
    assert result.nominated_node in {"n1", "n2", "n3", "n4", "n5"}


def test_room_on_a_node_and_quota_on_others() -> None:
    """Only node n0 can have room, where one pod goes; that the newest goes elsewhere frees the rest."""
    there = [
        pod("r0", "red", on="n0", age=9),
        pod("r1", "red", on="n1", age=8),
        pod("r2", "red", on="n1", age=7),
        pod("x", "other", 2, on="n1"),
    ]
    scene = Scene(node("n0", 4), node("n1", 4), quota("red"), quota("blue", {"cpu": 5}), *there)
    result = scene.decide(pod("new", "blue", 4)).post_filter
    assert result is not None
    assert (result.nominated_node, evicted(result)) == ("n0", ["r0", "r2"])


def test_budgets_are_kept_if_possible() -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "keep", "namespace": "red"},
        "spec": {"selector": {"matchLabels": {"keep": "true"}}},
        "status": {"disruptionsAllowed": 0},
    }
    pods = [*on_a("r", "red", 5), pod("kept", "red", on="a", labels={"keep": "true"}), *on_a("b", "blue", 2)]
    scene = Scene(node("a", 8), quota("red"), quota("blue", {"cpu": 8}), *pods, make(budget))
    assert scene.evicted(pod("new", "blue")) == ["r4"]


def test_the_system_evicts_any_pod() -> None:
    scene = Scene(node("a", 4), quota("red", {"cpu": 4}), *on_a("r", "red", 4))
    assert scene.evicted(pod("new", "kube-system", priority=HIGH)) == []
    assert len(scene.evicted(pod("new", "kube-system", priority=2_000_001_000))) == 1


def test_a_nominated_pod_counts_for_its_quota() -> None:
    scene = Scene(node("a", 8), node("b", 8), *TEAMS, *on_a("r", "red", 5), *on_a("b", "blue", 2))
    assert scene.node_of(pod("new", "red")) != ""
    scene.cache.nominations.put(pod("waiting", "blue"), "a")
    assert scene.node_of(pod("new", "red")) == ""
    assert scene.node_of(pod("new", "blue", priority=1)) != "", "it is more important than that"
    assert scene.node_of(pod("new", "blue")) == ""
    assert scene.node_of(pod("waiting", "blue")) != ""


def test_what_others_borrow_by_nomination_does_not_count() -> None:
    scene = Scene(node("a", 8), node("b", 8), *TEAMS, *on_a("r", "red", 4), *on_a("b", "blue", 3))
    scene.cache.nominations.put(pod("waiting", "red"), "a")
    assert scene.node_of(pod("new", "blue")) != ""


# Hierarchy

DEPARTMENTS = (
    quota("lab", {"cpu": 8}, {"cpu": 10}, of=""),
    quota("physics", {"cpu": 4}, parent="lab/lab"),
    quota("maths", {"cpu": 2}, parent="lab/lab"),
    quota("shop", {"cpu": 4}, of="web, store"),
)

HIERARCHY: dict[str, tuple[list[Pod], Pod, str, list[str]]] = {
    "a part borrows in its department": (on_a("p", "physics", 6), pod("new", "physics", 2), "a", []),
    "and beyond": (on_a("p", "physics", 8), pod("new", "physics", 2), "a", []),
    "not over the department's max": (on_a("p", "physics", 9), pod("new", "physics", 2), "", []),
    "namespaces share a quota": (on_a("w", "web", 4), pod("new", "store", 8), "a", []),
    "a sister takes back what is guaranteed to her": (
        on_a("p", "physics", 10),
        pod("new", "maths", 2),
        "",
        ["p8", "p9"],
    ),
    "what is the department's alone is no sister's": (
        [*on_a("p", "physics", 8), *on_a("m", "maths", 2)],
        pod("new", "maths"),
        "",
        [],
    ),
    "a department takes back what others borrow": (
        [*on_a("w", "web", 6), *on_a("p", "physics", 6)],
        pod("new", "physics", 2),
        "",
        ["w4", "w5"],
    ),
    "but leaves what is guaranteed to them": (
        [*on_a("w", "web", 4), *on_a("p", "physics", 8)],
        pod("new", "physics"),
        "",
        [],
    ),
    "of a department, those parts that borrow": (
        [*on_a("p", "physics", 6), *on_a("m", "maths", 4, first_age=900), *on_a("w", "web", 2)],
        pod("new", "web", 2),
        "",
        ["p4", "p5"],
    ),
}


@pytest.mark.parametrize(("there", "new", "chosen", "victims"), HIERARCHY.values(), ids=HIERARCHY)
def test_hierarchy(there: list[Pod], new: Pod, chosen: str, victims: list[str]) -> None:
    scene = Scene(node("a", 12), *DEPARTMENTS, *there)
    decision = scene.decide(new)
    assert (decision.node or "") == chosen, decision.message
    if not chosen:
        assert evicted(decision.post_filter) == victims
