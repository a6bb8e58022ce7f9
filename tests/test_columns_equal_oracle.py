"""The engine against the oracles: whatever the cluster, columns and plain loops give the same answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, note
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage.api.base import Object
from moorage.api.node import Namespace, Node
from moorage.api.pod import Pod
from moorage.cluster.cache import Cache
from moorage.cluster.pod_table import PodInfo
from moorage.cluster.snapshot import Snapshot
from moorage.config.defaults import ALL_PLUGINS
from moorage.engine.decision import Decision
from moorage.engine.engine import Engine
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.diagnosis import Diagnosis
from moorage.framework.interface.filter_result import FilterResult, Reason
from moorage.framework.interface.hypothetical_pods import HypotheticalPods
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import Code, PluginError
from moorage.framework.runtime.framework import Framework
from moorage.sim.recording import load_recording
from tests import strategies as s
from tests.builders import make_framework
from tests.oracle import BrokenPodError, Cluster, OraclePlugin, Outcome, Refusal, decide, oracle_plugin_of
from tests.strategies import Case, cases, examples, mixed_cases

ABOUT = {
    "NodeUnschedulable": (s.TAINTS,),
    "NodeName": (s.NODES,),
    "TaintToleration": (s.TAINTS,),
    "NodeAffinity": (s.NODES,),
    "NodePorts": (s.PORTS,),
    "NodeResourcesFit": (s.RESOURCES,),
    "NodeResourcesBalancedAllocation": (s.RESOURCES,),
    "PodTopologySpread": (s.SPREAD,),
    "InterPodAffinity": (s.AFFINITY,),
    "ImageLocality": (s.IMAGES,),
    "NodeDeclaredFeatures": (s.FEATURES,),
}
"""Every plugin that decides, and what its cases are about."""

DEEP = ("NodeAffinity", "NodeResourcesFit", "PodTopologySpread", "InterPodAffinity")
"""Plugins with the most to get wrong: they get more examples."""

FILTERS = [name for name in ABOUT if oracle_plugin_of(name).filters]
ABOUT_PODS = ("NodePorts", "NodeResourcesFit", "PodTopologySpread", "InterPodAffinity")
"""Filters whose answer depends on the pods that are on nodes."""


def each_plugin(*, few: int, many: int) -> Any:
    """Every plugin, with its number of examples."""
    return _parameters({name: many if name in DEEP else few for name in ABOUT})


def each_filter(*, few: int, many: int) -> Any:
    """Every plugin that filters; those that do not look at pods get few examples."""
    return _parameters({name: many if name in ABOUT_PODS else few for name in FILTERS})


def _parameters(counts: Mapping[str, int]) -> Any:
    parametrize = pytest.mark.parametrize(("plugin", "count"), counts.items(), ids=list(counts))
    return lambda test: pytest.mark.hypothesis(parametrize(test))


# Asking the engine


def explain(reason: Reason) -> Refusal:
    """A reason in the oracles' words."""
    return tuple(sorted(reason.texts)), reason.code is Code.UNSCHEDULABLE


def answers(nodes: Nodes, verdict: FilterResult) -> dict[str, Refusal | None]:
    """A filter's verdict by node."""
    codes = [0] * len(nodes) if verdict.codes is None else verdict.codes.tolist()
    return {
        name: explain(verdict.reasons[code - 1]) if code else None
        for name, code in zip(nodes.names, codes, strict=True)
    }


def ask_filter(framework: Framework, cycle: CycleState, pod: Pod, nodes: Nodes) -> dict[str, Refusal | None]:
    """What the framework's only filter says of nodes; nothing if it was told to be skipped."""
    (step,) = framework.at("filter")
    if not framework.plan(cycle).runs("filter", step.plugin):
        return dict.fromkeys(nodes.names)
    return answers(nodes, step(cycle, pod, nodes))


def prepared(framework: Framework, pod: Pod, nodes: Nodes) -> CycleState:
    """A cycle in which pre-filters have run."""
    cycle = CycleState()
    framework.pre_filter(cycle, pod, nodes, Diagnosis(len(nodes)))
    return cycle


def ask_scores(framework: Framework, cycle: CycleState, pod: Pod, nodes: Nodes) -> dict[str, dict[str, int]]:
    """Weighted scores by plugin and node; plugins that skip are absent."""
    table = framework.score(cycle, pod, nodes)
    return {
        plugin: dict(zip(nodes.names, scores.tolist(), strict=True))
        for plugin, scores in table.by_plugin.items()
    }


def expected_scores(oracle_plugin: OraclePlugin, feasible: list[Node]) -> dict[str, dict[str, int]]:
    """What an oracle says, in the same form."""
    if oracle_plugin.skips_score(feasible):
        return {}
    scores = zip(feasible, oracle_plugin.final_scores(feasible), strict=True)
    return {oracle_plugin.name: {node.name: score for node, score in scores}}


def some_nodes(data: st.DataObject, names: Iterable[str], least: int) -> list[str]:
    """A subset of nodes, in their order."""
    names = list(names)
    chosen = data.draw(st.sets(st.sampled_from(names), min_size=least), label="nodes")
    return [name for name in names if name in chosen]


def churned(objects: Iterable[Any], extra: bool) -> Snapshot:
    """A snapshot of objects; with `extra` one whose rows have moved and whose codes have been used before."""
    cache = Cache()
    if extra:
        for name in ("gone0", "gone1"):
            cache.put(
                s.b.make_node(
                    name,
                    labels={s.ZONE: "removed", "disk": name},
                    taints=[f"{name}:NoSchedule"],
                    features=[name],
                )
            )
            cache.put(s.b.make_pod(f"on-{name}", on=name, labels={"app": name}, requests={s.GPU: "1"}))
        cache.snapshot().label(s.ZONE)
    for item in objects:
        cache.put(item)
    if extra:
        cache.snapshot()
        for name in ("gone0", "gone1"):
            cache.remove_node(name)
            cache.remove_pod(s.b.make_pod(f"on-{name}"))
    return cache.snapshot()


# One plugin at a time


@each_plugin(few=50, many=150)
def test_a_plugin_alone_filters_and_scores_as_its_oracle_does(plugin: str, count: int) -> None:
    @examples(count)
    @given(cases(ABOUT[plugin]), st.booleans(), st.data())
    def check(case: Case, moved: bool, data: st.DataObject) -> None:
        check_alone(plugin, case, moved, data)

    check()


@examples(120)
@given(cases((s.OWNED,), nodes_at_least=2), st.booleans(), st.data())
def test_pods_that_are_owned_or_served_spread_by_default_as_the_oracle_says(
    case: Case, moved: bool, data: st.DataObject
) -> None:
    check_alone("PodTopologySpread", case, moved, data)


def check_alone(plugin: str, case: Case, moved: bool, data: st.DataObject) -> None:
    """A profile with only this plugin: what is narrowed, refused, left and scored."""
    framework = make_framework(plugin, args=case.args)
    cluster = Cluster.of(case.objects)
    oracle_plugin = oracle_plugin_of(plugin)(cluster, case.pod, case.typed_args.get(plugin))
    snapshot = churned(case.objects, moved)
    diagnosis, cycle = Diagnosis(len(snapshot)), CycleState()
    narrowed = oracle_plugin.narrow()
    candidates = framework.pre_filter(cycle, case.pod, Nodes(snapshot), diagnosis)
    if isinstance(narrowed, str):
        assert candidates is None
        assert diagnosis.pre_filter is not None
        assert diagnosis.pre_filter.reasons == (narrowed,)
        assert diagnosis.pre_filter.code is Code.UNRESOLVABLE
        return
    assert candidates is not None, diagnosis.pre_filter
    wanted = [node for node in cluster.nodes if narrowed is None or node.name in narrowed]
    assert sorted(candidates.names) == sorted(node.name for node in wanted)

    feasible = framework.filter(cycle, case.pod, candidates, diagnosis)
    expected = {node.name: oracle_plugin.filter(node) for node in wanted}
    refused = {name: diagnosis.of(snapshot.row_of[name]) for name in expected}
    actual = {name: each and explain(each.reason) for name, each in refused.items()}
    assert actual == expected
    assert set(feasible.names) == {name for name, why in expected.items() if why is None}

    if oracle_plugin.scores and len(feasible) > 1:
        chosen = some_nodes(data, feasible.names, least=2)
        view = Nodes(snapshot, np.array([snapshot.row_of[name] for name in chosen]))
        by_name = {node.name: node for node in cluster.nodes}
        compare_scores(framework, cycle, case.pod, view, oracle_plugin, [by_name[name] for name in chosen])


def compare_scores(
    framework: Framework,
    cycle: CycleState,
    pod: Pod,
    nodes: Nodes,
    oracle_plugin: OraclePlugin,
    feasible: list[Node],
) -> None:
    """Scores are the oracle's, or both say that the pod cannot be worked with."""
    try:
        expected = expected_scores(oracle_plugin, feasible)
    except BrokenPodError as error:
        note(f"the oracle says: {error}")
        with pytest.raises(PluginError, match=oracle_plugin.name):
            ask_scores(framework, cycle, pod, nodes)
        return
    assert ask_scores(framework, cycle, pod, nodes) == expected


@each_plugin(few=15, many=50)
def test_a_plugin_answers_the_same_when_its_first_half_is_switched_off(plugin: str, count: int) -> None:
    @examples(count)
    @given(cases(ABOUT[plugin], nodes_at_least=2))
    def check(case: Case) -> None:
        off = {"pre_filter": [plugin], "pre_score": [plugin]}
        framework = make_framework(plugin, args=case.args, off=off)
        assert not framework.at("pre_filter")
        assert not framework.at("pre_score")
        cluster = Cluster.of(case.objects)
        oracle_plugin = oracle_plugin_of(plugin)(cluster, case.pod, case.typed_args.get(plugin))
        nodes, cycle = Nodes(Cache(case.objects).snapshot()), CycleState()
        if oracle_plugin.filters:
            expected = {node.name: oracle_plugin.filter(node) for node in cluster.nodes}
            assert ask_filter(framework, cycle, case.pod, nodes) == expected
        if oracle_plugin.scores and not oracle_plugin.skips_score(cluster.nodes):
            compare_scores(framework, cycle, case.pod, nodes, oracle_plugin, cluster.nodes)
        elif oracle_plugin.scores:
            scores = ask_scores(framework, cycle, case.pod, nodes)[plugin]
            assert len(set(scores.values())) == 1, f"nothing to say, yet nodes differ: {scores}"

    check()


@each_plugin(few=15, many=50)
def test_a_narrowed_view_gets_the_answers_that_the_whole_cluster_gets(plugin: str, count: int) -> None:
    @examples(count)
    @given(cases(ABOUT[plugin], nodes_at_least=2), st.data())
    def check(case: Case, data: st.DataObject) -> None:
        framework = make_framework(plugin, args=case.args)
        snapshot = Cache(case.objects).snapshot()
        chosen = some_nodes(data, snapshot.names, least=1)
        rows = np.array([snapshot.row_of[name] for name in chosen])
        # A view's nodes need not be in the order of the snapshot's rows.
        rows = np.array(data.draw(st.permutations(rows.tolist()), label="rows"))
        everything, view = Nodes(snapshot), Nodes(snapshot, rows)
        cycle = prepared(framework, case.pod, everything)
        if framework.at("filter"):
            whole = ask_filter(framework, cycle, case.pod, everything)
            narrow = ask_filter(framework, cycle, case.pod, view)
            assert narrow == {name: whole[name] for name in narrow}
        # Spreading weighs domains by the nodes it is asked about: there the oracle is the only measure.
        if framework.at("score") and plugin != "PodTopologySpread":
            whole_scores = raw_scores(framework, case.pod, everything)
            narrow_scores = raw_scores(framework, case.pod, view)
            assert narrow_scores == {name: whole_scores.get(name) for name in narrow_scores}

    check()


def raw_scores(framework: Framework, pod: Pod, nodes: Nodes) -> dict[str, int]:
    """What the only score plugin says before normalising; nothing if it cannot work with the pod."""
    (step,) = framework.at("score")
    try:
        return dict(zip(nodes.names, step(CycleState(), pod, nodes).tolist(), strict=True))
    except PluginError as error:
        note(str(error))
        return {}


# What if


def draw_changes(
    data: st.DataObject, snapshot: Snapshot, rows: list[int], about: Sequence[str]
) -> tuple[HypotheticalPods, dict[str, tuple[list[Pod], list[Pod]]]]:
    """Pods to go from and to come to each of some nodes: as the engine is told, and by node as pods."""
    pod_rows = {info.pod.uid: pod_row for pod_row, info in enumerate(snapshot.pods.infos)}
    removed_from: list[int] = []
    removed_rows: list[int] = []
    added: list[tuple[int, PodInfo]] = []
    by_node: dict[str, tuple[list[Pod], list[Pod]]] = {}
    for index, row in enumerate(rows):
        name = snapshot.names[row]
        here = list(snapshot.pods_of(row))
        leaving = data.draw(st.lists(st.sampled_from(here), unique=True), label="removed") if here else []
        removed_from += [index] * len(leaving)
        removed_rows += [pod_rows[uid] for uid in leaving]
        count = data.draw(st.integers(0, 2), label="added")
        coming = [data.draw(s.placed_pods(f"come{index}-{i}", name, about)) for i in range(count)]
        pods = [s.b.convert(manifest, Pod) for manifest in coming]
        added += [(index, PodInfo(pod)) for pod in pods]
        by_node[name] = ([snapshot.pods_of(row)[uid].pod for uid in leaving], pods)
    changes = HypotheticalPods(
        snapshot, len(rows), np.array(removed_from, np.intp), np.array(removed_rows, np.intp), added
    )
    return changes, by_node


@each_filter(few=5, many=70)
def test_what_if_on_one_node_is_what_a_cluster_changed_that_way_says(plugin: str, count: int) -> None:
    about = ABOUT[plugin]

    @examples(count)
    @given(cases(about), st.booleans(), st.data())
    def check(case: Case, pre_filter_runs: bool, data: st.DataObject) -> None:
        off = {} if pre_filter_runs else {"pre_filter": [plugin]}
        framework = make_framework(plugin, args=case.args, off=off)
        snapshot = Cache(case.objects).snapshot()
        cycle = prepared(framework, case.pod, Nodes(snapshot))
        if not framework.plan(cycle).runs("filter", plugin):
            return  # Whoever skips is not asked what if, either.
        row = data.draw(st.integers(0, len(snapshot) - 1), label="row")
        name = snapshot.names[row]
        changes, by_node = draw_changes(data, snapshot, [row], about)
        view = Nodes(snapshot, np.array([row]), changes)
        actual = ask_filter(framework, cycle, case.pod, view)[name]

        removed, added = by_node[name]
        leaving = {pod.uid for pod in removed}
        others = [each for each in case.objects if not (isinstance(each, Pod) and each.uid in leaving)]
        changed = Cache([*others, *added]).snapshot()
        recomputed = prepared(framework, case.pod, Nodes(changed))
        note(f"without {sorted(leaving)}, with {[pod.uid for pod in added]}")
        assert actual == ask_filter(framework, recomputed, case.pod, Nodes(changed))[name]

    check()


@each_filter(few=5, many=60)
def test_what_if_on_many_nodes_evaluates_each_with_its_own_changes_alone(plugin: str, count: int) -> None:
    about = ABOUT[plugin]

    @examples(count)
    @given(cases(about, nodes_at_least=2), st.booleans(), st.data())
    def check(case: Case, pre_filter_runs: bool, data: st.DataObject) -> None:
        off = {} if pre_filter_runs else {"pre_filter": [plugin]}
        framework = make_framework(plugin, args=case.args, off=off)
        cluster = Cluster.of(case.objects)
        snapshot = Cache(case.objects).snapshot()
        cycle = prepared(framework, case.pod, Nodes(snapshot))
        if not framework.plan(cycle).runs("filter", plugin):
            return
        chosen = some_nodes(data, snapshot.names, least=2)
        rows = [snapshot.row_of[name] for name in chosen]
        changes, by_node = draw_changes(data, snapshot, rows, about)
        view = Nodes(snapshot, np.array(rows), changes)
        expected = {}
        for node in cluster.nodes:
            if node.name in by_node:
                removed, added = by_node[node.name]
                note(f"{node.name} without {[p.uid for p in removed]}, with {[p.uid for p in added]}")
                oracle_plugin = oracle_plugin_of(plugin)
                changed = oracle_plugin(
                    cluster.what_if(removed, added), case.pod, case.typed_args.get(plugin)
                )
                expected[node.name] = changed.filter(node)
        assert ask_filter(framework, cycle, case.pod, view) == expected
        # A part of such a view has the changes of its nodes only.
        mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))), bool)
        part = view.where(mask)
        assert ask_filter(framework, cycle, case.pod, part) == {name: expected[name] for name in part.names}

    check()


# The whole default profile

NO_PREEMPTION = {"post_filter": [ALL_PLUGINS]}
"""What is done for pods that fit nowhere is another matter."""


def compare(decision: Decision, outcome: Outcome) -> None:
    """A decision is what the oracles come to, in every detail."""
    if outcome.broken:
        assert isinstance(decision.error, PluginError), "the pod should have broken a plugin"
        assert decision.error.plugin == outcome.broken
        return
    assert decision.error is None, decision.error
    snapshot = decision.feasible.snapshot
    refusals = {name: decision.diagnosis.of(row) for name, row in snapshot.row_of.items()}
    refusals_by_node = {
        name: (each.plugin, explain(each.reason)) for name, each in refusals.items() if each is not None
    }
    assert refusals_by_node == outcome.refusals
    assert sorted(decision.feasible.names) == sorted(outcome.feasible)
    assert decision.message == outcome.message
    assert decision.diagnosis.plugins == outcome.plugins
    scores = {name: decision.scores_of(name) for name in decision.feasible.names} if decision.scores else {}
    assert scores == outcome.scores
    assert sorted(decision.best()) == sorted(outcome.best)
    assert decision.node in outcome.best or (decision.node is None and not outcome.best)


@examples(400)
@given(mixed_cases(new=2), st.booleans())
def test_the_default_profile_decides_as_the_oracles_do_pod_after_pod(case: Case, moved: bool) -> None:
    framework = make_framework(args=case.args, off=NO_PREEMPTION)
    engine = Engine(seed=0)
    objects = list(case.objects)
    cache = Cache(objects)
    if moved:
        cache.put(s.b.make_node("removed", labels={s.ZONE: "removed"}))
        cache.snapshot()
        cache.remove_node("removed")
    for pod in case.new_pods:
        decision = engine.decide(framework, pod, cache.snapshot())
        note(f"{pod.name} goes to {decision.node}: {decision.message}")
        compare(decision, decide(Cluster.of(objects), pod, case.typed_args))
        if decision.node is not None:
            objects.append(cache.assume_pod(pod, decision.node))


@examples(60)
@given(cases())
def test_the_default_profile_decides_as_the_oracles_do_when_everything_is_in_play(case: Case) -> None:
    framework = make_framework(args=case.args, off=NO_PREEMPTION)
    decision = Engine(seed=0).decide(framework, case.pod, Cache(case.objects).snapshot())
    compare(decision, decide(Cluster.of(case.objects), case.pod, case.typed_args))


def test_a_cluster_without_nodes_says_so() -> None:
    case = Case([], [s.b.pod("p")])
    decision = Engine().decide(make_framework(), case.pod, Cache().snapshot())
    compare(decision, decide(Cluster.of([]), case.pod, case.typed_args))


# The oracles themselves

RECORDED = (
    "added-affinity",
    "capacity-ratio",
    "default-spread",
    "images",
    "list-spread",
    "most-allocated",
    "node-affinity",
    "overhead",
    "owned-spread",
    "pod-affinity",
    "ports",
    "resources",
    "taints",
    "topology-spread",
)
"""Families of recordings that are about the plugins here, with their weights as they are by default."""


@pytest.mark.parametrize("family", RECORDED)
def test_the_oracles_agree_with_what_kube_scheduler_did(family: str) -> None:
    recording = load_recording(Path(__file__).parent / "recordings" / f"{family}-0.json.gz")
    (profile,) = recording.config.profiles
    args = {each.name: each.args for each in profile.plugin_config}
    objects: dict[tuple[type[Object], str], Object] = {}
    for item in (s.b.make_namespace("default"), *recording.objects):
        objects[type(item), item.key] = as_stored(item)
    for step in recording.pods():
        outcome = decide(Cluster.of(objects.values()), step.pod, args)
        expect = step.expect
        if expect.node is None:
            assert f"{expect.message} ".startswith(f"{outcome.message} "), step.pod.name
        else:
            assert expect.node in outcome.best, step.pod.name
            placed = replace(step.pod, spec=replace(step.pod.spec, node_name=expect.node))
            objects[Pod, placed.key] = placed
        assert outcome.scores == (expect.scores or {}), step.pod.name


def as_stored(item: Object) -> Object:
    """An object as the server keeps it: a namespace has its name as a label."""
    if not isinstance(item, Namespace):
        return item
    labels = {**item.labels, "kubernetes.io/metadata.name": item.name}
    return replace(item, metadata=replace(item.metadata, labels=labels))
