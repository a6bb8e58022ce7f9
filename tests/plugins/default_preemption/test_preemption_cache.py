"""Preemption that remembers: whatever has happened, it comes to what would be found out anew.

The machine below lets nodes, pods, budgets and nominations come, change and go, and asks two engines to make
room for pods of a few templates: one that remembers what it found out of nodes, and one that does not.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from msgspec.structs import replace

from moorage.api.decode import convert
from moorage.api.pod import Pod
from moorage.api.workloads import PodDisruptionBudget
from moorage.cluster.cache import Cache
from moorage.cluster.object_tables import Objects
from moorage.engine.decision import Decision
from moorage.engine.engine import Engine
from moorage.framework.cache import cached_filters
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.dependencies import NODE, NODE_AND_PODS, DependsOn
from moorage.framework.interface.effects import EvictPods
from moorage.framework.interface.filter_result import ALL, FilterResult
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.nodes import Nodes, NodeView
from moorage.framework.runtime.framework import Framework
from moorage.plugins import default_registry
from moorage.plugins.default_preemption import cache, candidate_ranking
from tests.builders import HOSTNAME, REQUIRED, ZONE, make_node, make_pod, make_profile, pod_term, port
from tests.strategies import examples, one_of

Parts = dict[str, Any]

NODE_NAMES = tuple(f"n{number}" for number in range(6))
UIDS = tuple(f"u{number}" for number in range(14))
NODE_NAME, UID = one_of(*NODE_NAMES), one_of(*UIDS)

TEMPLATES: tuple[Parts, ...] = (
    {"requests": {"cpu": "2"}, "priority": 10},
    {"requests": {"cpu": "1", "memory": "1Gi"}, "priority": 5},
    {"priority": 10, "containers": [{"name": "main", "ports": [port(80)]}]},
    {"requests": {"cpu": "3"}, "priority": 10, "tolerations": [{"key": "a", "operator": "Exists"}]},
    {"requests": {"cpu": "2"}, "priority": 3, "node_selector": {"disk": "ssd"}},
    {
        "requests": {"cpu": "1"},
        "priority": 10,
        "labels": {"app": "a"},
        "affinity": {
            "podAntiAffinity": {REQUIRED: [pod_term(HOSTNAME, {"matchLabels": {"app": "a"}})]},
        },
    },
    {"requests": {"cpu": "1"}, "priority": 0},
)
CHOSEN = 3
TEMPLATE = one_of(*range(CHOSEN))


def any_parts(**choices: tuple[Any, ...]) -> st.SearchStrategy[Parts]:
    """Some of the keys, each with one of its values."""
    return st.fixed_dictionaries({}, optional={key: one_of(*values) for key, values in choices.items()})


NODE_PARTS = any_parts(
    labels=({"disk": "ssd"}, {"disk": "hdd"}, {ZONE: "a"}),
    taints=([], ["a:NoSchedule"]),
    unschedulable=(False, True),
    allocatable=(
        {"cpu": "2", "memory": "4Gi", "pods": "4"},
        {"cpu": "4", "memory": "2Gi", "pods": "3"},
        {"cpu": "1", "memory": "4Gi", "pods": "4"},
    ),
)
POD_PARTS = any_parts(
    requests=({"cpu": "1"}, {"cpu": "500m", "memory": "1Gi"}, {"cpu": "2"}),
    priority=(0, 1, 4, 20),
    labels=({"app": "a"}, {"app": "b"}),
    containers=([{"name": "c", "ports": [port(80)]}],),
    status=({"startTime": "2026-01-01T00:00:00Z"}, {"startTime": "2026-02-01T00:00:00Z"}),
    terminating=(True,),
)
ROOMY = {"cpu": "2", "memory": "4Gi", "pods": "4"}


def budget(
    name: str, allowed: int, app: str, disrupted: tuple[str, ...] = (), namespace: str = "default"
) -> PodDisruptionBudget:
    return convert(
        {
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"selector": {"matchLabels": {"app": app}}},
            "status": {
                "disruptionsAllowed": allowed,
                "disruptedPods": dict.fromkeys(disrupted, "2026-01-01T00:00:00Z"),
            },
        },
        PodDisruptionBudget,
    )


BUDGET = st.builds(
    budget,
    one_of("x", "y"),
    st.integers(0, 2),
    one_of("a", "b"),
    one_of((), ("pod-u1",), ("pod-u1", "pod-u2")),
    one_of("default", "default", "elsewhere"),
)


def remembering_framework(*, enough: int) -> Framework:
    args = {"DefaultPreemption": {"minCandidateNodesPercentage": 1, "minCandidateNodesAbsolute": enough}}
    return Framework(make_profile(args=args), default_registry(), Handle(random=Random(1)))


def _outcome(decision: Decision) -> Any:
    """All that preemption says: where, who goes from which of the nodes that would do, or why nobody does."""
    arranged = decision.post_filter
    if arranged is None:
        return decision.message
    arranged.done()
    evicted = [effect for effect in arranged.effects if isinstance(effect, EvictPods)]
    tied = {node: [victim.uid for victim in victims] for node, victims in arranged.tied().items()}
    return (
        decision.message,
        arranged.status,
        arranged.nominated_node,
        len(arranged.effects),
        [[victim.uid for victim in effect.victims] for effect in evicted],
        list(tied.items()),
    )


class Crowd(RuleBasedStateMachine):
    """A full cluster, in which important pods ask for room while all sorts of things happen."""

    enough = 100

    def __init__(self) -> None:
        super().__init__()
        self.cache = Cache()
        self.remembering, self.plain = Engine(seed=1, remembers=True), Engine(seed=1, remembers=False)
        self.framework = remembering_framework(enough=self.enough)
        self.other = remembering_framework(enough=self.enough)
        self.placed: dict[str, Pod] = {}
        self.templates: list[Parts] = []

    @initialize(chosen=st.permutations(TEMPLATES))
    def some_nodes_are_full(self, chosen: list[Parts]) -> None:
        self.templates = chosen[:CHOSEN]
        for number, name in enumerate(NODE_NAMES[:5]):
            self.put_node(name, {})
            for uid, app in zip(UIDS[2 * number : 2 * number + 2], "ab", strict=True):
                self.put_pod(uid, name, {"requests": {"cpu": "1"}, "labels": {"app": app}})

    @rule(name=NODE_NAME, parts=NODE_PARTS)
    def put_node(self, name: str, parts: Parts) -> None:
        labels = {HOSTNAME: name, **parts.get("labels", {})}
        self.cache.put_node(make_node(name, **{"allocatable": ROOMY, **parts, "labels": labels}))

    @rule(name=NODE_NAME)
    def remove_node(self, name: str) -> None:
        """Often one in the middle: then the last one's row moves into its place."""
        self.cache.remove_node(name)

    @rule(uid=UID, name=NODE_NAME, parts=POD_PARTS)
    def put_pod(self, uid: str, name: str, parts: Parts) -> None:
        self.placed[uid] = make_pod(f"pod-{uid}", uid=uid, on=name, **parts)
        self.cache.put_pod(self.placed[uid])

    @rule(uid=UID)
    def remove_pod(self, uid: str) -> None:
        if (pod := self.placed.pop(uid, None)) is not None:
            self.cache.remove_pod(pod)

    @rule(item=BUDGET)
    def put_budget(self, item: PodDisruptionBudget) -> None:
        self.cache.put(item)

    @rule(item=BUDGET)
    def remove_budget(self, item: PodDisruptionBudget) -> None:
        self.cache.remove(item)

    @rule(uid=one_of("new", *UIDS), name=NODE_NAME, template=TEMPLATE)
    def pod_is_nominated(self, uid: str, name: str, template: int) -> None:
        if uid not in self.placed:
            self.cache.nominations.put(self._pod(uid, template), name)

    @rule(uid=one_of("new", *UIDS))
    def remove_nomination(self, uid: str) -> None:
        self.cache.nominations.remove(uid)

    @rule(template=TEMPLATE)
    def room_is_made(self, template: int) -> None:
        """As it goes: the victims leave, and the pod comes."""
        pod = self._pod("new", template)
        arranged = self.remembering.decide(self.framework, pod, self.cache.snapshot()).post_filter
        self.plain.decide(self.other, pod, self.cache.snapshot())
        if arranged is None or not arranged.nominated_node:
            return
        arranged.done()
        for effect in arranged.effects:
            for victim in effect.victims if isinstance(effect, EvictPods) else ():
                self.remove_pod(victim.uid)
        free = next((uid for uid in UIDS if uid not in self.placed), None)
        if free is not None:
            self.put_pod(free, arranged.nominated_node, self.templates[template])

    @invariant()
    def both_engines_agree(self) -> None:
        """For a pod that may be nominated to a node, whether its status says so, and for one that is not."""
        nominated = self.cache.nominations.node_of("new") or ""
        for template in range(len(self.templates)):
            for uid, node_name in (("new", ""), ("new", nominated), ("newer", "")):
                pod, snapshot = self._pod(uid, template, node_name), self.cache.snapshot()
                outcome = _outcome(self.remembering.decide(self.framework, pod, snapshot))
                assert outcome == _outcome(self.plain.decide(self.other, pod, snapshot))

    def _pod(self, uid: str, template: int, nominated: str = "") -> Pod:
        status = {"nominatedNodeName": nominated}
        return make_pod(f"pod-{uid}", uid=uid, **self.templates[template], status=status)

    def teardown(self) -> None:
        """In the end, the cache is what it would be if it were built anew."""
        self.cache.validate()


class PickyCrowd(Crowd):
    """The same, where two candidates are enough."""

    enough = 2


@pytest.mark.parametrize(
    ("machine", "columnar_rows"),
    [
        pytest.param(Crowd, 100, id="one node at a time"),
        pytest.param(Crowd, 3, id="many nodes in columns"),
        pytest.param(PickyCrowd, 2, id="until there are enough candidates"),
    ],
)
@pytest.mark.slow
def test_cached_dry_runs_equal_uncached_ones(
    machine: type[Crowd], columnar_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "_MIN_COLUMNAR_ROWS", columnar_rows)
    monkeypatch.setattr(cached_filters, "MIN_COLUMNAR_ROWS", columnar_rows // 2)
    monkeypatch.setattr(cached_filters, "_MIN_COLUMNAR_LOADS", columnar_rows // 2)
    monkeypatch.setattr(candidate_ranking, "_MIN_BATCH_ROWS", 2)
    run_state_machine_as_test(machine, settings=examples(25, stateful_step_count=20))


# What is asked


class Watchful:
    """Lets every pod in, and takes down what it is asked about."""

    name = "Watchful"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def depends_on(self, pod: Pod, objects: Objects) -> DependsOn:
        return NODE_AND_PODS

    def filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> FilterResult:
        self.asked += nodes.names
        return ALL

    def filter_node(self, cycle: CycleState, pod: Pod, node: NodeView) -> None:
        self.asked.append(node.name)


class Choosy(Watchful):
    """Refuses nodes with a certain label, and says that room might help."""

    name = "Choosy"

    def depends_on(self, pod: Pod, objects: Objects) -> DependsOn:
        return NODE

    def filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> FilterResult:
        return (~nodes.label("closed").exists()).otherwise("node(s) closed")

    def filter_node(self, cycle: CycleState, pod: Pod, node: NodeView) -> str | None:  # type: ignore[override]
        return "node(s) closed" if "closed" in node.labels else None


class Following(Watchful):
    """The same for one that keeps count of pods."""

    name = "Following"

    def add_pod(self, cycle: CycleState, pod: Pod, added: Any, node: NodeView) -> None:
        """Counts nothing."""

    def remove_pod(self, cycle: CycleState, pod: Pod, removed: Any, node: NodeView) -> None:
        """Counts nothing."""


class Room:
    """Twenty nodes, each full of two pods, and a framework with one more plugin that can be looked at."""

    def __init__(self, plugin: Watchful) -> None:
        registry = default_registry()
        registry.register(plugin.name, lambda: plugin)
        profile = make_profile("NodeResourcesFit", plugin.name, "DefaultPreemption")
        self.plugin = plugin
        self.framework = Framework(profile, registry, Handle(random=Random(1)))
        self.engine = Engine(seed=1)
        self.cache = Cache(make_node(f"n{number}", allocatable=ROOMY) for number in range(20))
        for number in range(20):
            for half in ("a", "b"):
                self.put(f"{number}{half}", f"n{number}", app=half)

    def put(self, name: str, node: str, app: str = "a", priority: int = 0) -> None:
        self.cache.put_pod(
            make_pod(name, uid=name, on=node, requests={"cpu": "1"}, labels={"app": app}, priority=priority)
        )

    def preempt(self, name: str = "boss", cpu: str = "1") -> tuple[str, set[str]]:
        """The node where room is made, and the nodes that were tried out for it."""
        pod = make_pod(name, uid=name, requests={"cpu": cpu}, priority=10)
        self.plugin.asked.clear()
        decision = self.engine.decide(self.framework, pod, self.cache.snapshot())
        assert decision.post_filter is not None
        decision.post_filter.done()
        assert decision.post_filter.nominated_node
        return decision.post_filter.nominated_node, set(self.plugin.asked)


ALL_NAMES = {f"n{number}" for number in range(20)}


def test_nodes_that_have_not_changed_are_not_tried_out_again() -> None:
    room = Room(Watchful())
    chosen, tried = room.preempt()
    assert tried == ALL_NAMES
    chosen, tried = room.preempt("second")
    assert tried == {chosen}, "whose victims are worked out"


@pytest.mark.parametrize(
    ("cpu", "tries"),
    [
        pytest.param("1", 1, id="one of two pods stays: the first that is put back"),
        pytest.param("2", 0, id="no pod stays"),
    ],
)
def test_pods_are_put_back_only_until_the_known_number_of_victims_is_reached(cpu: str, tries: int) -> None:
    room = Room(Watchful())
    room.preempt(cpu=cpu)
    chosen, _ = room.preempt("second", cpu)
    assert room.plugin.asked == [chosen] * tries


@pytest.mark.parametrize(
    ("change", "concerned"),
    [
        pytest.param(lambda room: room.put("0a", "n0", priority=3), {"n0"}, id="a pod"),
        pytest.param(
            lambda room: room.cache.put_node(make_node("n1", allocatable={**ROOMY, "memory": "9Gi"})),
            {"n1"},
            id="a node",
        ),
        pytest.param(
            lambda room: room.cache.nominations.put(make_pod("other", uid="other", priority=10), "n2"),
            {"n2"},
            id="a nomination",
        ),
        pytest.param(
            lambda room: room.cache.put(budget("x", 5, "c")), set(), id="a budget that covers nobody"
        ),
        pytest.param(
            lambda room: room.cache.put(budget("x", 5, "a", namespace="elsewhere")),
            set(),
            id="a budget of another namespace",
        ),
        pytest.param(lambda room: room.cache.put(budget("x", 0, "a")), ALL_NAMES, id="a budget"),
        pytest.param(
            lambda room: [room.cache.remove_node("n3"), room.cache.snapshot()],
            ALL_NAMES - {"n3"},
            id="a node that goes",
        ),
    ],
)
def test_what_makes_nodes_be_tried_out_again(change: Any, concerned: set[str]) -> None:
    room = Room(Watchful())
    room.preempt()
    change(room)
    chosen, tried = room.preempt("second")
    assert tried == concerned | {chosen}


def test_only_nodes_with_pods_of_a_changed_budget_are_tried_out_again() -> None:
    room = Room(Watchful())
    room.put("guarded", "n4", app="c", priority=3)
    room.cache.put(budget("x", 0, "c"))
    room.preempt()
    room.cache.put(budget("x", 1, "c"))
    chosen, tried = room.preempt("second")
    assert tried == {"n4", chosen}


def test_a_node_that_changes_is_seen_by_plugins_that_depend_on_the_node_alone() -> None:
    room = Room(Choosy())
    room.preempt()
    for number in range(20):
        if number != 7:
            room.cache.put_node(make_node(f"n{number}", allocatable=ROOMY, labels={"closed": ""}))
            room.preempt(f"boss-{number}")
    assert room.preempt("last")[0] == "n7"


def test_another_cluster_is_another_matter() -> None:
    room = Room(Watchful())
    room.preempt()
    room.cache = Cache(make_node(f"n{number}", allocatable=ROOMY) for number in range(20))
    for number in range(20):
        room.put(f"{number}", f"n{number}", priority=50 if number != 5 else 0)
        room.put(f"{number}+", f"n{number}", priority=50)
    assert room.preempt()[0] == "n5"


def test_plugins_that_keep_count_of_pods_are_asked_again() -> None:
    room = Room(Following())
    room.preempt()
    assert room.preempt("second")[1] == ALL_NAMES


def test_a_pod_does_not_count_against_itself_on_the_node_it_is_nominated_to() -> None:
    room = Room(Watchful())
    nominated = make_pod("boss", uid="boss", requests={"cpu": "1"}, priority=10)
    for number in range(1, 20):
        room.put(f"{number}a", f"n{number}", priority=50)
        room.put(f"{number}b", f"n{number}", priority=50)
    room.put("0a", "n0", priority=50)
    room.cache.nominations.put(nominated, "n0")
    assert room.preempt("boss")[0] == "n0"
    snapshot = room.cache.snapshot()
    other = make_pod("other", uid="other", requests={"cpu": "1"}, priority=10)
    decision = room.engine.decide(room.framework, other, snapshot)
    assert decision.message.endswith(
        "preemption: 0/20 nodes are available: "
        "1 Insufficient cpu, 19 No preemption victims found for incoming pod."
    )
    assert room.preempt("boss")[0] == "n0"


def test_a_pod_that_gets_the_labels_of_a_budget_is_spared() -> None:
    cluster = Cache([make_node(name, allocatable=ROOMY) for name in NODE_NAMES[:2]])
    pods = [make_pod(f"pod-{name}", uid=name, on=name, requests={"cpu": "2"}) for name in NODE_NAMES[:2]]
    for each in (*pods, budget("x", 0, "a")):
        cluster.put(each)
    framework, engine = remembering_framework(enough=2), Engine(seed=0)
    nominated = []
    for spared in pods:
        for each in pods:
            labels = {"app": "a"} if each is spared else {}
            cluster.put(replace(each, metadata=replace(each.metadata, labels=labels)))
        pod = make_pod("p", uid="p", **TEMPLATES[0])
        arranged = engine.decide(framework, pod, cluster.snapshot()).post_filter
        assert arranged is not None
        arranged.done()
        nominated.append(arranged.nominated_node)
    assert nominated == [NODE_NAMES[1], NODE_NAMES[0]]


def test_only_nodes_that_changed_are_filtered_again_where_many_have_nominated_pods() -> None:
    room = Room(Watchful())
    important = [make_pod(f"p{number}", uid=f"p{number}", priority=10) for number in range(20)]
    for number, pod in enumerate(important):
        room.cache.nominations.put(pod, f"n{number}")
    pod = make_pod("small", uid="small", requests={"cpu": "0"}, priority=10)
    room.engine.decide(room.framework, pod, room.cache.snapshot())
    for number in range(15):
        room.put(f"{number}a", f"n{number}", priority=1)
    room.plugin.asked.clear()
    room.engine.decide(room.framework, pod, room.cache.snapshot())
    assert set(room.plugin.asked) == {f"n{number}" for number in range(15)}
