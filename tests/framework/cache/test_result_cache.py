"""Whatever has happened to the cluster: what is remembered for a template is what would be worked out anew.

The machine below lets nodes, pods and other objects come, change and go, assumes the pods that it places, and
asks two engines about pods of a few templates: one that remembers, and one that does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np
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

from moorage.api.base import Object
from moorage.api.pod import Pod
from moorage.cluster.cache import Cache
from moorage.engine.decision import Decision
from moorage.engine.engine import Engine
from moorage.framework.cache.plugin_answers import SharedAnswers
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.nodes import Nodes, NodeView
from moorage.framework.runtime.framework import Framework
from moorage.framework.runtime.plugin_call import PluginCall
from tests.builders import (
    HOSTNAME,
    PREFERRED,
    REQUIRED,
    ZONE,
    expression,
    make,
    make_framework,
    make_namespace,
    make_node,
    make_pod,
    make_replica_set,
    make_service,
    owner,
    pod_term,
    port,
    spread,
)
from tests.strategies import GPU, any_of, examples, one_of, present, subset

Parts = dict[str, Any]

NODE_NAMES = tuple(f"n{number}" for number in range(6))
UIDS = tuple(f"u{number}" for number in range(12))
NODE_NAME, UID = one_of(*NODE_NAMES), one_of(*UIDS)
APP = {"matchLabels": {"app": "a"}}
TEAM = {"matchLabels": {"team": "x"}}

TEMPLATES: tuple[Parts, ...] = (
    {"requests": {"cpu": "1"}},
    {"requests": {"cpu": "2", "memory": "3Gi"}, "priority": 10},
    {},
    {"requests": {"cpu": "1"}, "tolerations": [{"key": "a", "operator": "Exists"}]},
    {"requests": {"cpu": "1", GPU: "1"}},
    {"containers": [{"name": "main", "image": "web:1", "ports": [port(80)]}]},
    {"node_selector": {"disk": "ssd"}, "requests": {"memory": "1Gi"}},
    {
        "affinity": {
            "nodeAffinity": {
                PREFERRED: [
                    {"weight": 3, "preference": {"matchExpressions": [expression("disk", "Exists")]}},
                    {"weight": 5, "preference": {"matchExpressions": [expression(ZONE, "In", "a")]}},
                ]
            }
        }
    },
    {"labels": {"app": "a"}, "topology_spread_constraints": [spread(ZONE, APP)]},
    {"labels": {"app": "a"}, "topology_spread_constraints": [spread(HOSTNAME, APP, hard=False)]},
    {"labels": {"app": "a"}, "affinity": {"podAntiAffinity": {REQUIRED: [pod_term(HOSTNAME, APP)]}}},
    {"labels": {"app": "b"}, "affinity": {"podAffinity": {REQUIRED: [pod_term(ZONE, APP)]}}},
    {
        "labels": {"app": "b"},
        "affinity": {
            "podAffinity": {
                PREFERRED: [
                    {
                        "weight": 7,
                        "podAffinityTerm": pod_term(
                            ZONE, APP, namespace_selector={"matchLabels": {"team": "x"}}
                        ),
                    }
                ]
            }
        },
    },
    {"labels": {"app": "a"}, "owners": [owner("ReplicaSet", "rs")]},
    {"labels": {"app": "c"}, "requests": {"cpu": "3"}, "priority": -5},
    {"host_network": True, "host_users": False, "labels": {"app": "a"}},
    {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "absent"}}]},
)
CHOSEN = 3
TEMPLATE = one_of(*range(CHOSEN))

NODE_PARTS = any_of(
    lambda labels, room, taints, images, unschedulable: {
        "labels": labels,
        "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "4", **room},
        "taints": taints,
        "images": images,
        "unschedulable": unschedulable,
        "features": ["UserNamespacesHostNetworkSupport"] if images else [],
    },
    ({ZONE: "a"}, {ZONE: "b", "disk": "ssd"}, {ZONE: "", "disk": ""}, {}),
    present(cpu=(None, "2", "8"), **{GPU: (None, "2")}),
    subset(("a:NoSchedule", "b=1:PreferNoSchedule", "c:PreferNoSchedule")),
    ([], [(["web:1"], 300_000_000)], [(["web:1", "db:1"], 900_000_000)]),
    (False, False, False, True),
)

ITEM = one_of(
    make_namespace("default", team="x"),
    make_namespace("default", team="y"),
    make_service("web", {"app": "a"}),
    make_replica_set("rs", APP),
    make({"kind": "DeviceClass", "metadata": {"name": "gpus"}, "spec": {"extendedResourceName": GPU}}),
)


def _outcome(decision: Decision) -> Any:
    """All that an attempt says, by node."""
    scores = {}
    if decision.scores is not None:
        for plugin, values in decision.scores.by_plugin.items():
            scores[plugin] = dict(zip(decision.feasible.names, values.tolist(), strict=True))
        totals = dict(zip(decision.feasible.names, decision.scores.totals.tolist(), strict=True))
        scores["total"] = totals
    refused = {name: decision.diagnosis.of(row) for name, row in decision.feasible.snapshot.row_of.items()}
    return (
        sorted(decision.feasible.names),
        scores,
        refused,
        decision.message,
        decision.evaluated,
        decision.diagnosis.plugins,
        None if decision.post_filter is None else decision.post_filter.status,
    )


class RememberingCluster(RuleBasedStateMachine):
    """A cluster in which pods of a few templates are placed while all sorts of things happen."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = Cache()
        self.remembering = Engine(seed=1, remembers=True)
        self.plain = Engine(seed=1, remembers=False)
        self.framework, self.other = make_framework(), make_framework()
        self.placed: dict[str, Pod] = {}
        self.templates: list[Parts] = []

    @initialize(chosen=st.permutations(TEMPLATES))
    def some_nodes_are_there(self, chosen: list[Parts]) -> None:
        self.templates = chosen[:CHOSEN]
        for number, name in enumerate(NODE_NAMES[:4]):
            self.put_node(name, {"labels": {ZONE: "ab"[number % 2]}})

    @rule(name=NODE_NAME, parts=NODE_PARTS)
    def put_node(self, name: str, parts: Parts) -> None:
        labels = {HOSTNAME: name, **parts["labels"]}
        self.cache.put_node(make_node(name, **{**parts, "labels": labels}))

    @rule(name=NODE_NAME)
    def remove_node(self, name: str) -> None:
        """Often one in the middle: then the last one's row moves into its place."""
        self.cache.remove_node(name)

    @rule(item=ITEM)
    def put_object(self, item: Object) -> None:
        self.cache.put(item)

    @rule(item=ITEM)
    def remove_object(self, item: Object) -> None:
        self.cache.remove(item)

    @rule(uid=UID)
    def remove_pod(self, uid: str) -> None:
        if (pod := self.placed.pop(uid, None)) is not None:
            self.cache.remove_pod(pod)

    @rule(uid=UID)
    def pod_is_confirmed(self, uid: str) -> None:
        if uid in self.placed:
            self.cache.put_pod(self.placed[uid])

    @rule(uid=UID, name=NODE_NAME, template=TEMPLATE)
    def pod_is_nominated(self, uid: str, name: str, template: int) -> None:
        if uid not in self.placed:
            self.cache.nominations.put(self._pod(uid, template), name)

    @rule(uid=UID)
    def remove_nomination(self, uid: str) -> None:
        self.cache.nominations.remove(uid)

    @rule(uid=UID, template=TEMPLATE)
    def pod_is_placed(self, uid: str, template: int) -> None:
        if uid in self.placed:
            return
        pod, cycle = self._pod(uid, template), CycleState()
        decision = self.remembering.decide(self.framework, pod, self.cache.snapshot(), cycle)
        if decision.node is not None:
            assert cycle.equivalence_class is not None
            self.placed[uid] = self.cache.assume_pod(pod, decision.node, cycle.equivalence_class.info(pod))

    @invariant()
    def both_engines_agree(self) -> None:
        """On pods that are new, and on one that may be nominated to a node, whether its status says so."""
        nominated = self.cache.nominations.node_of(UIDS[0]) or ""
        for template in range(len(self.templates)):
            for uid, node_name in (("new", ""), (UIDS[0], ""), (UIDS[0], nominated)):
                pod = self._pod(uid, template)
                self._compare(replace(pod, status=replace(pod.status, nominated_node_name=node_name)))

    def _compare(self, pod: Pod) -> None:
        snapshot = self.cache.snapshot()
        decision = self.remembering.decide(self.framework, pod, snapshot)
        outcome = _outcome(decision)
        expected = self.plain.decide(self.other, pod, snapshot)
        assert outcome == _outcome(expected)
        assert decision.node is None or decision.node in expected.best()

    def _pod(self, uid: str, template: int) -> Pod:
        return make_pod(f"pod-{uid}", uid=uid, **self.templates[template])

    def teardown(self) -> None:
        """In the end, the cache is what it would be if it were built anew."""
        self.cache.validate()


@pytest.mark.slow
def test_cached_results_equal_uncached_ones() -> None:
    run_state_machine_as_test(RememberingCluster, settings=examples(50, stateful_step_count=30))


def _merged(parts: Iterable[Parts]) -> Parts:
    """Parts of a pod together; labels and requests are added up."""
    merged: Parts = {}
    for each in parts:
        for key, value in each.items():
            merged[key] = {**merged[key], **value} if isinstance(merged.get(key), dict) else value
    return merged


CHOICES: tuple[tuple[Parts, ...], ...] = (
    tuple({"labels": {"app": app}} for app in "abcd"),
    tuple({"requests": {"cpu": cpu}} for cpu in ("100m", "1", "2")),
    ({}, {"tolerations": [{"operator": "Exists"}]}, {"tolerations": [{"key": "b", "operator": "Exists"}]}),
    ({}, {"node_selector": {"disk": "ssd"}}, {"node_selector": {ZONE: "a"}}),
    ({}, {"containers": [{"name": "main", "image": "web:1", "ports": [port(80)]}]}, {"requests": {GPU: "1"}}),
    (
        {},
        {"topology_spread_constraints": [spread(ZONE, APP, hard=False)]},
        {"affinity": {"podAntiAffinity": {REQUIRED: [pod_term(HOSTNAME, APP)]}}},
    ),
)
"""What hundreds of templates differ in: each has one part of every row."""
MANY_TEMPLATES = tuple(map(_merged, product(*CHOICES)))


class ClusterOfManyTemplates(RememberingCluster):
    """The same with hundreds of templates, which share the answers of plugins that read equal parts."""

    @initialize(chosen=st.permutations(TEMPLATES))
    def some_nodes_are_there(self, chosen: list[Parts]) -> None:
        super().some_nodes_are_there(chosen)
        self.templates = list(MANY_TEMPLATES)

    @rule(uid=UID, first=st.integers(0, len(MANY_TEMPLATES) - 1), step=one_of(1, 3, 108))
    def pods_of_several_templates_are_placed(self, uid: str, first: int, step: int) -> None:
        for number in range(first, first + 4 * step, step):
            template = number % len(MANY_TEMPLATES)
            self._compare(self._pod("new", template))
            self.pod_is_placed(f"{uid}-{template}", template)

    @invariant()
    def both_engines_agree(self) -> None:
        """Compared where pods are placed: there are too many templates for all of them."""


@pytest.mark.slow
def test_many_templates_share_what_would_be_worked_out_for_each() -> None:
    run_state_machine_as_test(ClusterOfManyTemplates, settings=examples(25, stateful_step_count=20))


def test_templates_share_the_answers_of_plugins_that_read_equal_parts() -> None:
    framework, engine = make_framework(), Engine()
    snapshot = Cache(make_node(name, labels={HOSTNAME: name}) for name in "ab").snapshot()
    called: list[str] = []
    for name in ("TaintToleration", "NodeAffinity", "NodeResourcesFit"):
        for call in framework.at("filter"):
            if call.plugin == name:
                count_calls(call, called)
    for number in range(3):
        pod = make_pod("p", requests={"cpu": str(number + 1)}, node_selector={HOSTNAME: "a"})
        engine.decide(framework, pod, snapshot)
    assert Counter(called) == {"TaintToleration": 1, "NodeAffinity": 1, "NodeResourcesFit": 3}


def test_of_a_new_template_only_what_differs_from_the_last_one_is_looked_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_up: list[str] = []
    of = SharedAnswers.of

    def noting(self: SharedAnswers, plugin: str, *args: Any, **kwargs: Any) -> Any:
        looked_up.append(plugin)
        return of(self, plugin, *args, **kwargs)

    monkeypatch.setattr(SharedAnswers, "of", noting)
    framework, engine = make_framework(), Engine()
    cache = Cache(make_node(name, labels={HOSTNAME: name}) for name in "ab")

    def decide(**parts: Any) -> list[str]:
        looked_up.clear()
        engine.decide(framework, make_pod("p", **parts), cache.snapshot())
        return list(looked_up)

    assert len(decide(requests={"cpu": "1"})) > 10
    assert decide(requests={"cpu": "2"}, containers=[{"name": "main", "image": "web:2"}]) == ["ImageLocality"]
    assert decide(requests={"cpu": "3"}, node_selector={HOSTNAME: "a"}) == ["ImageLocality", "NodeAffinity"]
    assert decide(requests={"cpu": "4"}, node_selector={HOSTNAME: "b"}) == ["ImageLocality", "NodeAffinity"]
    assert decide(requests={"cpu": "5"}) == ["ImageLocality", "NodeAffinity"]
    cache.put(make({"kind": "DeviceClass", "metadata": {"name": "gpu"}}))
    assert len(decide(requests={"cpu": "6"})) > 10, "a table changed that some of them depend on"


@pytest.mark.parametrize(("weight", "dtype"), [(1, np.int16), (400, np.int32), (1 << 28, np.int64)])
def test_totals_take_no_more_bytes_than_the_weights_of_plugins_need(weight: int, dtype: type[Any]) -> None:
    framework = make_framework("NodeResourcesFit", "NodeResourcesBalancedAllocation")
    for call in framework.at("score"):
        object.__setattr__(call, "weight", weight)
    cache = Cache(make_node(f"n{number}") for number in range(20))
    for number in range(30):
        cache.put_pod(make_pod(f"p{number}", uid=str(number), on=f"n{number % 7}", requests={"cpu": "500m"}))
    pod, snapshot = make_pod("p", requests={"cpu": "1", "memory": "3Gi"}), cache.snapshot()
    scores, expected = (
        Engine(remembers=remembers).decide(framework, pod, snapshot).scores for remembers in (True, False)
    )
    assert scores is not None
    assert expected is not None
    assert scores.totals.dtype == dtype
    assert scores.totals.tolist() == expected.totals.tolist()
    for plugin, points in expected.by_plugin.items():
        assert scores.by_plugin[plugin].tolist() == points.tolist()


def _asked_of_nodes(framework: Framework) -> list[tuple[str, str]]:
    """The plugins and nodes for which filters are called in their form for one node, from now on."""
    asked: list[tuple[str, str]] = []
    for call in framework.at("filter"):
        if call.one_node is not None:
            object.__setattr__(call, "one_node", _noting(call, asked))
    return asked


def _noting(call: PluginCall, asked: list[tuple[str, str]]) -> Any:
    one_node = call.one_node
    assert one_node is not None

    def noted(cycle: CycleState, pod: Pod, node: NodeView) -> Any:
        asked.append((call.plugin, node.name))
        return one_node(cycle, pod, node)

    return noted


def _full_nodes(count: int) -> Cache:
    """Nodes of two cores, each with a pod that requests both."""
    cache = Cache(make_node(f"n{number}", allocatable={"cpu": "2", "pods": "9"}) for number in range(count))
    for number in range(count):
        cache.put_pod(make_pod(f"p{number}", uid=f"p{number}", on=f"n{number}", requests={"cpu": "2"}))
    return cache


def test_of_a_full_node_only_filters_that_may_answer_otherwise_are_asked_again() -> None:
    framework, engine, cache = make_framework(), Engine(), _full_nodes(40)
    pod = make_pod("p", requests={"cpu": "1"})
    engine.decide(framework, pod, cache.snapshot())
    asked = _asked_of_nodes(framework)
    cache.put_pod(make_pod("x", uid="x", on="n7"))
    assert engine.decide(framework, pod, cache.snapshot()).node is None
    assert ("NodeResourcesFit", "n7") in asked
    assert not {"TaintToleration", "NodeUnschedulable", "NodeName"} & {plugin for plugin, _ in asked}


def test_a_node_that_nominated_pods_fill_is_filtered_once() -> None:
    framework, engine, cache = make_framework(), Engine(), _full_nodes(40)
    pod = make_pod("p", requests={"cpu": "1"})
    engine.decide(framework, pod, cache.snapshot())
    asked = _asked_of_nodes(framework)
    cache.nominations.put(make_pod("rival", uid="rival", requests={"cpu": "2"}), "n7")
    assert engine.decide(framework, pod, cache.snapshot()).node is None
    assert asked.count(("NodeResourcesFit", "n7")) == 1


def test_for_a_nominated_pod_only_its_node_is_filtered() -> None:
    framework, engine, cache = make_framework(), Engine(), _full_nodes(40)
    pod = make_pod("p", uid="p", requests={"cpu": "1"}, status={"nominatedNodeName": "n7"})
    engine.decide(framework, pod, cache.snapshot())
    asked = _asked_of_nodes(framework)
    cache.nominations.put(pod, "n7")
    for number in (3, 5, 7):
        cache.remove_pod(make_pod(f"p{number}", uid=f"p{number}"))
    assert engine.decide(framework, pod, cache.snapshot()).node == "n7"
    assert {node for _, node in asked} == {"n7"}


def count_calls(call: PluginCall, called: list[str]) -> None:
    """Note the calls of a plugin."""
    method = call.method

    def counted(*arguments: Any) -> Any:
        called.append(call.plugin)
        return method(*arguments)

    object.__setattr__(call, "method", counted)


@pytest.mark.parametrize(
    ("changed", "in_columns"), [(20, False), (60, True)], ids=["some nodes", "many nodes"]
)
def test_of_some_nodes_with_other_pods_only_filters_that_depend_on_pods_are_asked(
    changed: int, in_columns: bool
) -> None:
    framework, engine, cache = make_framework(), Engine(), _full_nodes(80)
    for number in range(80):
        rival = make_pod(f"rival{number}", uid=f"rival{number}", requests={"cpu": "2"})
        cache.nominations.put(rival, f"n{number}")
    pod = make_pod("p", requests={"cpu": "1"})
    engine.decide(framework, pod, cache.snapshot())
    asked, called = _asked_of_nodes(framework), list[str]()
    for call in framework.at("filter"):
        count_calls(call, called)
    for number in range(changed):
        cache.remove_pod(make_pod(f"p{number}", uid=f"p{number}"))
    decision = engine.decide(framework, pod, cache.snapshot())
    assert ("TaintToleration" in called) is in_columns
    assert asked.count(("NodeResourcesFit", "n7")) == (not in_columns)
    assert not {"TaintToleration", "NodeUnschedulable", "NodeName"} & {plugin for plugin, _ in asked}
    expected = Engine(remembers=False).decide(framework, pod, cache.snapshot())
    assert (decision.node, decision.message) == (None, expected.message)


@pytest.mark.parametrize(
    ("placed", "scored"), [(3, 3), (13, 13), (40, 1000)], ids=["few changes", "some changes", "many changes"]
)
def test_many_changes_are_evaluated_as_whole_columns(placed: int, scored: int) -> None:
    """Picking rows from columns costs more than the columns, from a sixty-fourth of the nodes on."""
    framework, engine = make_framework(), Engine()
    cache = Cache(make_node(f"n{number}", allocatable={"cpu": "64", "pods": "110"}) for number in range(1000))
    seen: list[int] = []
    for call in framework.at("score"):
        if call.plugin == "NodeResourcesFit":
            _count_nodes(call, seen)
    pod = make_pod("p", requests={"cpu": "1"})
    engine.decide(framework, pod, cache.snapshot())
    seen.clear()
    for number in range(placed):
        cache.put_pod(make_pod(f"q{number}", uid=f"q{number}", on=f"n{number}", requests={"cpu": "2"}))
    engine.decide(framework, pod, cache.snapshot())
    assert sum(seen) == scored


def _count_nodes(call: PluginCall, seen: list[int]) -> None:
    method, one_node = call.method, call.one_node
    assert one_node is not None

    def counted(cycle: CycleState, pod: Pod, nodes: Nodes) -> Any:
        seen.append(len(nodes))
        return method(cycle, pod, nodes)

    def counted_one(cycle: CycleState, pod: Pod, node: NodeView) -> Any:
        seen.append(1)
        return one_node(cycle, pod, node)

    object.__setattr__(call, "method", counted)
    object.__setattr__(call, "one_node", counted_one)
