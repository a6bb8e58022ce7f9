"""Spreading and affinity between pods: counts that follow what happens say what new ones would say.

Whatever happens to nodes, pods, namespaces, services and controllers, and however long ago a template was
seen last: a plugin that remembers answers as one that has never seen this cluster before.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from numpy.typing import NDArray

from moorage.api.base import Object
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.cluster import label_columns, pod_table
from moorage.cluster.cache import Cache
from moorage.cluster.pod_table import PodInfo
from moorage.framework.cache.equivalence_classes import EquivalenceClasses
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.hypothetical_pods import HypotheticalPods
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import Status
from moorage.plugins import default_registry
from moorage.plugins.inter_pod_affinity import filtering as affinity_filtering
from moorage.plugins.inter_pod_affinity import scoring as affinity_scoring
from moorage.plugins.pod_topology_spread import topology
from moorage.plugins.topology_counts import incremental, pod_counters, row_count, slots
from tests import builders as b
from tests import strategies as s
from tests.builders import Manifest, make, make_node
from tests.strategies import AFFINITY, OWNED, SPREAD, Case, cases, examples

pytestmark = pytest.mark.slow

PLUGINS = ("PodTopologySpread", "InterPodAffinity")
REGISTRY = default_registry()
PLACES = s.NODE_NAMES[:5]
NAMES = tuple(f"p{i}" for i in range(5))
PLACE, NAME, INDEX = s.one_of(*PLACES), s.one_of(*NAMES), st.integers(0, 2)
WHAT = s.one_of(
    "pod", "pod", "assume", "assume", "crowd", "pod goes", "node", "taints", "node goes", "object", "nothing"
)

ORDERS = (("some", "feasible", "all"), ("feasible", "all", "some"), ("all", "some", "feasible"))
"""What is asked last may be remembered for the next time: each pod ends with something else."""

Event = tuple[str, Any]


@st.composite
def events(draw: s.Draw[Any], about: tuple[str, ...]) -> Event:
    """One thing that happens to a cluster."""
    match draw(WHAT):
        case "pod":
            return "put", [draw(s.placed_pods(draw(NAME), draw(PLACE), about))]
        case "crowd":
            place, size = draw(PLACE), draw(st.integers(2, 6))
            return "put", [
                b.pod(f"x{i}", namespace="red", labels=s.USUAL_LABELS, on=place) for i in range(size)
            ]
        case "taints":
            return "taints", (draw(PLACE), draw(st.sampled_from(s.subset(s.ALL_TAINTS[:2]))))
        case "node":
            return "put", [draw(s.nodes(draw(PLACE), about))]
        case "object":
            return "put" if draw(s.MOSTLY) else "remove", draw(s.other_objects(about))
        case "assume":
            return "assume", (draw(INDEX), draw(NAME), draw(PLACE))
        case "pod goes":
            return "pod goes", draw(NAME)
        case "node goes":
            return "node goes", draw(PLACE)
    return "nothing", None


@dataclass
class Scenario:
    """A case, and what happens to it: each event with the pods that are asked about afterwards."""

    case: Case
    events: list[tuple[Event, list[int]]]

    def __repr__(self) -> str:
        return "\n".join((repr(self.case), *(f"  {event}, then {asked}" for event, asked in self.events)))


@st.composite
def scenarios(draw: s.Draw[Any], about: tuple[str, ...]) -> Scenario:
    """A case with three pods that want a node, and events."""
    steps = st.tuples(events(about), st.lists(INDEX, max_size=2))
    return Scenario(draw(cases(about, new=3)), draw(st.lists(steps, min_size=1, max_size=8)))


class RunningScenario:
    """A cluster to which a story happens, and plugins that remember."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.cache = Cache(case.objects)
        self.templates = EquivalenceClasses()
        self.plugins = make_plugins(case)
        self.views: list[NDArray[np.intp]] = []
        self.objects: dict[tuple[type[Object], str], Object] = {
            (type(item), item.key): item for item in case.objects
        }

    def happen(self, event: Event) -> None:
        """Let something happen to the cluster."""
        match event:
            case ("put", manifests):
                for item in map(make, manifests):
                    self.objects[type(item), item.key] = item
                    self.cache.put(item)
            case ("remove", manifests):
                for item in map(make, manifests):
                    self.objects.pop((type(item), item.key), None)
                    self.cache.remove(item)
            case ("taints", (name, taints)):
                node = self.cache.node(name)
                if node is not None:
                    new = make_node(name, taints=taints).spec.taints
                    self.objects[Node, name] = replace(node, spec=replace(node.spec, taints=new))
                    self.cache.put(self.objects[Node, name])
            case ("assume", (index, name, place)):
                wanted = self.case.new_pods[index]
                pod = replace(wanted, metadata=replace(wanted.metadata, name=name))
                if self.cache.is_assumed(pod):
                    self.cache.forget_pod(pod)
                    del self.objects[Pod, pod.key]
                elif self.cache.pod(pod.uid) is None:
                    self.objects[Pod, pod.key] = self.cache.assume_pod(pod, place)
            case ("pod goes", name):
                for pod in [pod for pod in self.cache.pods() if pod.name == name]:
                    del self.objects[Pod, pod.key]
                    self.cache.remove_pod(pod)
            case ("node goes", name):
                self.objects.pop((Node, name), None)
                self.cache.remove_node(name)

    def compare(self, index: int) -> None:
        """Ask about a pod, and somebody who has never seen this cluster."""
        pod = self.case.new_pods[index]
        fresh = Cache(self.objects.values())
        snapshot = self.cache.snapshot()
        if not len(snapshot):
            return
        for remembering, forgetful in zip(self.plugins, make_plugins(self.case), strict=True):
            cycle = CycleState()
            cycle.equivalence_class = self.templates.of(pod, len(snapshot))
            known = answers(remembering, cycle, pod, self.cache, ORDERS[index % len(ORDERS)], self.views)
            new = answers(forgetful, CycleState(), pod, fresh, ORDERS[index % len(ORDERS)], [])
            assert known == new, remembering.name


def make_plugins(case: Case) -> list[Any]:
    args = case.typed_args
    return [REGISTRY.make(name, args[name], Handle()) for name in PLUGINS]


def answers(
    it: Any,
    cycle: CycleState,
    pod: Pod,
    cache: Cache,
    order: tuple[str, ...],
    views: list[NDArray[np.intp]],
) -> dict[str, Any]:
    """All that a plugin says of a pod, by node name.

    order: which nodes it is asked about, one after the other. views: those that it was asked about before.
    """
    nodes = Nodes(cache.snapshot())
    results: dict[str, Any] = {"pre_filter": _status(it.pre_filter(cycle, pod, nodes))}
    feasible = sorted(nodes.names)
    if results["pre_filter"] is None:
        for what, view in (("filter", nodes), ("dry run", as_if(nodes, pod))):
            codes = it.filter(cycle, pod, view).codes
            results[what] = by_name(view, np.zeros(len(view), int) if codes is None else codes)
        feasible = [name for name in feasible if not results["filter"][name]]
    wanted = {"some": feasible[::2], "feasible": feasible, "all": nodes.names}
    for which in order:
        names = wanted[which]
        if not names:
            continue
        some = nodes if which == "all" else named(nodes, names, views)
        results[f"pre_score {which}"] = status = _status(it.pre_score(cycle, pod, some))
        if status is None:
            scores = it.score(cycle, pod, some)
            results[f"score {which}"] = by_name(some, scores)
            results[f"normalised {which}"] = by_name(some, it.normalize_score(cycle, pod, some, scores))
            results[f"others normalised {which}"] = by_name(
                some, it.normalize_score(cycle, pod, some, 2 * scores + 1)
            )
    return results


def named(nodes: Nodes, names: list[str], views: list[NDArray[np.intp]]) -> Nodes:
    """Some nodes; where the rows are the same again, it is the same array again, as in a framework."""
    some = nodes.named(names)
    for rows in views:
        if np.array_equal(rows, some.row_numbers()):
            return Nodes(nodes.snapshot, rows)
    views.append(some.row_numbers())
    return some


def _status(status: Status | None) -> tuple[Any, ...] | None:
    return None if status is None else (status.code, status.reasons)


def by_name(nodes: Nodes, values: Any) -> dict[str, int]:
    return dict(zip(nodes.names, values.tolist(), strict=True))


def as_if(nodes: Nodes, pod: Pod) -> Nodes:
    """As if half of the pods were gone, and a pod were where it is not."""
    snapshot, order = nodes.snapshot, nodes.row_numbers()
    gone = sorted(info.pod.uid for info in snapshot.pods.infos)[::2]
    rows = np.array(snapshot.pods.rows_of(gone), np.intp)
    coming = [(snapshot.row_of[max(snapshot.names)], PodInfo(pod))]
    changes = HypotheticalPods(
        snapshot, len(nodes), snapshot.pods.node_rows[rows].astype(np.intp), rows, coming
    )
    return Nodes(snapshot, order, changes)


def follow(about: tuple[str, ...], count: int) -> None:
    """Tell so many stories about some subjects, and ask after each event, and in the end."""

    @examples(count)
    @given(scenarios(about))
    def tell(scenario: Scenario) -> None:
        running = RunningScenario(scenario.case)
        running.compare(0)
        for event, asked in scenario.events:
            running.happen(event)
            for index in asked:
                running.compare(index)
        for index in range(3):
            running.compare(index)

    tell()


@pytest.mark.hypothesis
@pytest.mark.parametrize(("about", "count"), [(SPREAD, 120), (OWNED, 80), (AFFINITY, 120)])
def test_what_follows_says_what_is_new(about: str, count: int) -> None:
    follow((about,), count)


@pytest.mark.hypothesis
@pytest.mark.parametrize(
    ("module", "limit", "value"),
    [
        pytest.param(pod_table, "_MIN_KEPT_MOVES", 2, id="few moves of pods are kept"),
        pytest.param(row_count, "_MIN_KEPT_STEPS", 1, id="few steps of counts are kept"),
        pytest.param(row_count, "MAX_FEW_ROWS", 0, id="all counts are arrays"),
        pytest.param(pod_counters, "_MAX_CELLS", 3 * row_count.FEW_ROWS_CELLS, id="few counts are kept"),
        pytest.param(pod_counters, "_MAX_COUNTERS_PER_GROUP", 1, id="pods are counted for few"),
        pytest.param(incremental, "_MAX_RESULT_CELLS", 0, id="few results by row are kept"),
        pytest.param(incremental, "_MAX_CELLS", 0, id="few columns of domains are kept"),
        pytest.param(affinity_filtering, "_MAX_SINGLE_ROWS", 0, id="many rows have another verdict"),
        pytest.param(affinity_scoring, "_RECOUNT_DIVISOR", 0, id="few rows are worth something else"),
        pytest.param(topology, "_MAX_SMALL_CELLS", 0, id="cells are too many"),
        pytest.param(slots, "_ROWS_PER_FEW_ROWS", 0, id="few rows are in a domain"),
        pytest.param(label_columns, "_MIN_FEW_NODES", 0, id="many nodes have any label"),
    ],
)
def test_what_small_clusters_would_not_meet(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, limit: str, value: int
) -> None:
    monkeypatch.setattr(module, limit, value)
    follow((SPREAD, AFFINITY), 25)


APPS = {"matchLabels": {"app": "a"}}


def running_scenario(*constraints: Manifest, **pod: Any) -> RunningScenario:
    """Three nodes in three zones, and a pod with constraints."""
    nodes = [b.node(name, labels={s.ZONE: name, s.HOSTNAME: name}) for name in PLACES[:3]]
    pods = [b.pod("new", labels={"app": "a"}, topology_spread_constraints=list(constraints) or None, **pod)]
    return RunningScenario(Case(nodes, pods))


def place(name: str, on: str, app: str = "a") -> Event:
    return "put", [b.pod(name, labels={"app": app}, on=on)]


def test_an_emptiest_domain_that_fills_up_opens_the_others_and_one_that_empties_closes_them() -> None:
    running = running_scenario(b.spread(s.ZONE, APPS))
    running.compare(0)
    for index, on in enumerate(("n0", "n1", "n2", "n0", "n1", "n2")):
        running.happen(place(f"p{index}", on))
        running.compare(0)
    for index in range(6):
        running.happen(("pod goes", f"p{index}"))
        running.compare(0)


@pytest.mark.parametrize("hard", [True, False])
def test_pods_count_where_taints_let_them(hard: bool) -> None:
    running = running_scenario(b.spread(s.ZONE, APPS, hard=hard, node_taints_policy="Honor"))
    for index, on in enumerate(("n0", "n0", "n1", "n1", "n2")):
        running.happen(place(f"p{index}", on))
    running.compare(0)
    for taints in (["old:NoSchedule"], [], ["old:PreferNoSchedule"]):
        running.happen(("taints", ("n2", taints)))
        running.compare(0)


def test_default_constraints_follow_what_a_controller_selects() -> None:
    running = running_scenario(owners=[b.owner("ReplicaSet", "web")])
    for name, on, app in (("p0", "n0", "a"), ("p1", "n0", "a"), ("p2", "n1", "b")):
        running.happen(place(name, on, app))
    for app in "aba":
        controller = b.selecting("ReplicaSet", "web", {"matchLabels": {"app": app}})
        running.happen(("put", [controller]))
        running.compare(0)
    running.happen(("remove", [controller]))
    running.compare(0)


@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity"])
def test_terms_with_a_key_that_no_node_has_count_from_when_a_node_has_it(kind: str) -> None:
    term = b.pod_term("rack", APPS)
    affinity = {kind: {s.REQUIRED: [term], s.PREFERRED: [{"weight": 5, "podAffinityTerm": term}]}}
    running = running_scenario()
    running.happen(("put", [b.pod("p0", on="n0", affinity=affinity)]))
    running.compare(0)
    for name, labels in (("n1", {"rack": "r1"}), ("n0", {"rack": "r0"}), ("n0", {}), ("n1", {})) * 2:
        running.happen(("put", [b.node(name, labels=labels)]))
        running.compare(0)


@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity"])
def test_a_pod_with_keys_that_no_node_has_is_evaluated_again_when_a_node_has_them(kind: str) -> None:
    terms = [b.pod_term(key, APPS) for key in ("rack", "row", s.ZONE)]
    preferred = [{"weight": 5, "podAffinityTerm": each} for each in terms]
    running = running_scenario(
        *(b.spread(key, APPS, hard=hard) for key in ("rack", "row") for hard in (True, False)),
        affinity={kind: {s.REQUIRED: terms, s.PREFERRED: preferred}},
    )
    running.happen(place("p0", "n0"))
    running.compare(0)
    for name, labels in (("n1", {"rack": "r"}), ("n0", {"rack": "r", "row": "x"}), ("n1", {}), ("n0", {})):
        running.happen(("put", [b.node(name, labels={s.ZONE: name, **labels})]))
        running.compare(0)


def test_a_namespace_that_changes_its_labels_is_meant_by_terms_that_did_not_mean_it() -> None:
    team = {"matchLabels": {"team": "x"}}
    away = {s.REQUIRED: [b.pod_term(s.ZONE, APPS, namespace_selector=team)]}
    near = {
        s.PREFERRED: [{"weight": 5, "podAffinityTerm": b.pod_term(s.ZONE, APPS, namespace_selector=team)}]
    }
    running = running_scenario()
    affinity = {"podAntiAffinity": away, "podAffinity": near}
    running.happen(("put", [b.pod("p0", namespace="other", on="n0", affinity=affinity)]))
    for labels in ({}, {"team": "x"}, {"team": "y"}, {"team": "x"}):
        running.happen(("put", [b.namespace("default", labels)]))
        running.compare(0)
