"""Label keys that few nodes have: whatever happens to nodes, columns and plain loops give the same answers.

Pods select nodes and make domains by keys that appear on one node, on some, and disappear again, and what is
kept of a key changes its form on the way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.cluster import label_columns
from moorage.cluster.cache import Cache
from moorage.engine.engine import Engine
from moorage.plugins.topology_counts import slots
from tests.builders import (
    PREFERRED,
    REQUIRED,
    Manifest,
    expression,
    make_framework,
    make_node,
    make_pod,
    pod_term,
    spread,
)
from tests.oracle import Cluster, decide
from tests.strategies import Case, any_of, examples, one_of, present
from tests.test_columns_equal_oracle import NO_PREEMPTION, compare

pytestmark = pytest.mark.slow

KEYS: Final = ("example.com/a", "example.com/b", "example.com/c")
APPS: Final = ("x", "y")
NODE_NAMES: Final = tuple(f"n{number}" for number in range(7))
SAME: Final = {"matchExpressions": [expression("app", "In", *APPS)]}

Parts = dict[str, Any]
Event = tuple[str, Any]


def _required(*expressions: Manifest) -> Parts:
    terms = [{"matchExpressions": list(expressions)}]
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}}


def _preferred(each: Manifest) -> Parts:
    return {
        "affinity": {"nodeAffinity": {PREFERRED: [{"weight": 3, "preference": {"matchExpressions": [each]}}]}}
    }


def _near(kind: str, key: str, *, is_required: bool) -> Parts:
    term = pod_term(key, SAME)
    terms = {REQUIRED: [term]} if is_required else {PREFERRED: [{"weight": 5, "podAffinityTerm": term}]}
    return {"affinity": {kind: terms}}


def _wishes(key: str, other: str) -> Iterator[Parts]:
    """What a pod may want of nodes by two keys."""
    yield {"node_selector": {key: "1"}}
    for operator, *values in (("In", "1", ""), ("NotIn", "2"), ("Exists",), ("DoesNotExist",)):
        yield _required(expression(key, operator, *values), expression(other, "DoesNotExist"))
        yield _preferred(expression(key, operator, *values))
    for operator in ("Gt", "Lt"):
        yield _required(expression(key, operator, "1"))
    for is_required in (True, False):
        yield {"topology_spread_constraints": [spread(key, SAME, hard=is_required), spread(other, SAME)]}
        yield {"topology_spread_constraints": [spread(key, SAME, hard=is_required)]}
        yield _near("podAffinity", key, is_required=is_required)
        yield _near("podAntiAffinity", key, is_required=is_required)


WISHES: Final = [wish for key in KEYS for other in KEYS if key != other for wish in _wishes(key, other)]

EVENTS: Final = st.one_of(
    any_of(
        lambda name, labels: ("node", (name, labels)),
        NODE_NAMES,
        present(**dict.fromkeys(KEYS, (None, "1", "2", ""))),
    ),
    any_of(lambda name: ("node goes", name), NODE_NAMES),
    any_of(lambda app, wish: ("pod", (app, wish)), APPS, WISHES),
    any_of(lambda app, wish: ("pod", (app, wish)), APPS, WISHES),
    any_of(lambda uid: ("pod goes", uid), range(5)),
)


class SparseCluster:
    """A cluster to which events happen, and an engine that has seen all of them."""

    def __init__(self) -> None:
        self.cache = Cache()
        self.engine = Engine(seed=0)
        self.framework = make_framework(off=NO_PREEMPTION)
        self.args = Case([], []).typed_args
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}

    def happen(self, event: Event) -> None:
        """Change the cluster, or compare what becomes of a pod."""
        match event:
            case ("node", (name, labels)):
                self.nodes[name] = make_node(name, labels=labels)
                self.cache.put(self.nodes[name])
            case ("node goes", name):
                self.nodes.pop(name, None)
                self.cache.remove_node(name)
            case ("pod goes", number):
                if number < len(self.pods):
                    self.cache.remove_pod(self.pods.pop(sorted(self.pods)[number]))
            case ("pod", (app, wish)):
                self.schedule(make_pod(f"p{len(self.pods)}", labels={"app": app}, **wish))

    def schedule(self, pod: Pod) -> None:
        """Decide about a pod as the oracles do, and assume it on its node."""
        here = [pod for pod in self.pods.values() if pod.spec.node_name in self.nodes]
        decision = self.engine.decide(self.framework, pod, self.cache.snapshot())
        note(f"{pod.name} goes to {decision.node}: {decision.message}")
        compare(decision, decide(Cluster.of([*self.nodes.values(), *here]), pod, self.args))
        if decision.node is not None and pod.key not in self.pods:
            self.pods[pod.key] = self.cache.assume_pod(pod, decision.node)


@pytest.mark.hypothesis
@pytest.mark.parametrize(
    ("few_nodes", "rows_per_few_rows"),
    [
        pytest.param(16, 64, id="few nodes have any key"),
        pytest.param(0, 64, id="many nodes have any key"),
        pytest.param(1, 2, id="keys change their form"),
        pytest.param(16, 0, id="few nodes are in a domain"),
    ],
)
def test_pods_that_select_by_sparse_keys_are_placed_as_the_oracles_say(
    monkeypatch: pytest.MonkeyPatch, few_nodes: int, rows_per_few_rows: int
) -> None:
    monkeypatch.setattr(label_columns, "_MIN_FEW_NODES", few_nodes)
    monkeypatch.setattr(slots, "_ROWS_PER_FEW_ROWS", rows_per_few_rows)

    @examples(80)
    @given(
        st.lists(one_of(*present(**dict.fromkeys(KEYS, (None, None, "1", "2")))), min_size=2, max_size=6),
        st.lists(EVENTS, min_size=4, max_size=14),
    )
    def check(labels: list[dict[str, str]], events: list[Event]) -> None:
        cluster = SparseCluster()
        for name, each in zip(NODE_NAMES, labels, strict=False):
            cluster.happen(("node", (name, each)))
        for event in events:
            cluster.happen(event)
        cluster.cache.validate()

    check()
