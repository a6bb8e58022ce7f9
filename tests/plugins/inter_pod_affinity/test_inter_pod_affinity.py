"""InterPodAffinity: required and preferred terms of the incoming pod and of existing pods.

The cluster: a1 and a2 in zone a, b1 in zone b, and bare without labels; an existing pod on a1.
"""

from __future__ import annotations

from typing import Any

import pytest

from moorage.cluster.cache import Cache
from moorage.config.args import InterPodAffinityArgs
from moorage.framework.cache.equivalence_classes import EquivalenceClass
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import SKIP
from moorage.plugins import default_registry
from moorage.plugins.inter_pod_affinity.plugin import (
    AFFINITY_RULES,
    ANTI_AFFINITY_RULES,
    EXISTING_ANTI_AFFINITY_RULES,
)
from tests.builders import HOSTNAME, ZONE, expression, make_namespace, make_node, make_pod, pod_term
from tests.plugins.plugin_rules import refusals, scores

Manifest = dict[str, Any]

NODES = (
    make_node("a1", labels={ZONE: "a", HOSTNAME: "a1"}),
    make_node("a2", labels={ZONE: "a", HOSTNAME: "a2"}),
    make_node("b1", labels={ZONE: "b", HOSTNAME: "b1"}),
    make_node("bare"),
)
NAMESPACES = make_namespace("default"), make_namespace("other", team="x")
WEB = {"matchLabels": {"app": "web"}}
DB = {"matchLabels": {"app": "db"}}
NAMES = ("a1", "a2", "b1", "bare")


def required(*terms: Manifest, anti: bool = False) -> Manifest:
    kind = "podAntiAffinity" if anti else "podAffinity"
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def preferred(term: Manifest, weight: int = 1, *, anti: bool = False) -> Manifest:
    kind = "podAntiAffinity" if anti else "podAffinity"
    weighted = [{"weight": weight, "podAffinityTerm": term}]
    return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}


def web(**fields: Any) -> Any:
    """The existing pod."""
    return make_pod("web", on="a1", labels={"app": "web"}, **fields)


FILTER: dict[str, tuple[Manifest, Any, list[str]]] = {
    "affinity: the domain of a matching pod": (
        {"affinity": required(pod_term(ZONE, WEB))},
        web(),
        ["", "", AFFINITY_RULES, AFFINITY_RULES],
    ),
    "affinity by host: the node of a matching pod": (
        {"affinity": required(pod_term(HOSTNAME, WEB))},
        web(),
        ["", AFFINITY_RULES, AFFINITY_RULES, AFFINITY_RULES],
    ),
    "affinity: no pod matches anywhere": (
        {"affinity": required(pod_term(ZONE, {"matchLabels": {"app": "db"}}))},
        web(),
        [AFFINITY_RULES] * 4,
    ),
    "affinity: the first pod that matches its own term fits in every domain": (
        {"affinity": required(pod_term(ZONE, {"matchLabels": {"app": "db"}})), "labels": {"app": "db"}},
        web(),
        ["", "", "", AFFINITY_RULES],
    ),
    "affinity: a pod must match all terms": (
        {
            "affinity": required(
                pod_term(ZONE, WEB), pod_term(ZONE, {"matchExpressions": [expression("tier", "Exists")]})
            )
        },
        web(),
        [AFFINITY_RULES] * 4,
    ),
    "affinity: pods of other namespaces do not count": (
        {"affinity": required(pod_term(ZONE, WEB))},
        web(namespace="other"),
        [AFFINITY_RULES] * 4,
    ),
    "affinity: a term may name namespaces": (
        {"affinity": required(pod_term(ZONE, WEB, namespaces=["other"]))},
        web(namespace="other"),
        ["", "", AFFINITY_RULES, AFFINITY_RULES],
    ),
    "affinity: a term may select namespaces": (
        {"affinity": required(pod_term(ZONE, WEB, namespace_selector={"matchLabels": {"team": "x"}}))},
        web(namespace="other"),
        ["", "", AFFINITY_RULES, AFFINITY_RULES],
    ),
    "anti-affinity: not in the domain of a matching pod": (
        {"affinity": required(pod_term(ZONE, WEB), anti=True)},
        web(),
        [ANTI_AFFINITY_RULES, ANTI_AFFINITY_RULES, "", ""],
    ),
    "anti-affinity: any term refuses": (
        {
            "affinity": required(
                pod_term(ZONE, {"matchLabels": {"app": "db"}}), pod_term(HOSTNAME, WEB), anti=True
            )
        },
        web(),
        [ANTI_AFFINITY_RULES, "", "", ""],
    ),
    "anti-affinity of an existing pod counts as well": (
        {"labels": {"app": "new"}},
        web(affinity=required(pod_term(ZONE, {"matchLabels": {"app": "new"}}), anti=True)),
        [EXISTING_ANTI_AFFINITY_RULES, EXISTING_ANTI_AFFINITY_RULES, "", ""],
    ),
    "anti-affinity of an existing pod that does not match": (
        {"labels": {"app": "new"}},
        web(affinity=required(pod_term(ZONE, WEB), anti=True)),
        ["", "", "", ""],
    ),
    "anti-affinity of an existing pod is about its own namespace": (
        {"labels": {"app": "new"}},
        web(
            namespace="other",
            affinity=required(pod_term(ZONE, {"matchLabels": {"app": "new"}}), anti=True),
        ),
        ["", "", "", ""],
    ),
    "affinity of an existing pod refuses nothing": (
        {"labels": {"app": "new"}},
        web(affinity=required(pod_term(ZONE, {"matchLabels": {"app": "new"}}))),
        ["", "", "", ""],
    ),
    "affinity is checked before anti-affinity": (
        {"affinity": required(pod_term(HOSTNAME, WEB)) | required(pod_term(ZONE, WEB), anti=True)},
        web(),
        [ANTI_AFFINITY_RULES, AFFINITY_RULES, AFFINITY_RULES, AFFINITY_RULES],
    ),
}


@pytest.mark.parametrize(("incoming", "existing", "expected"), FILTER.values(), ids=FILTER.keys())
def test_filter(incoming: Manifest, existing: Any, expected: list[str]) -> None:
    found = refusals("InterPodAffinity", make_pod("p", **incoming), *NODES, *NAMESPACES, existing)
    assert found == dict(zip(NAMES, expected, strict=True))


NEW = {"matchLabels": {"app": "new"}}
SCORES: dict[str, tuple[Manifest, Any, Manifest, list[int]]] = {
    "no term counts: not scored": ({}, web(), {}, []),
    "preferred affinity": ({"affinity": preferred(pod_term(ZONE, WEB))}, web(), {}, [100, 100, 0, 0]),
    "preferred anti-affinity": (
        {"affinity": preferred(pod_term(ZONE, WEB), anti=True)},
        web(),
        {},
        [0, 0, 100, 100],
    ),
    # Zone a has 1, and host a1 2 more: 3, 1, 0, 0.
    "weights of several terms add up": (
        {
            "affinity": {
                "podAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 1, "podAffinityTerm": pod_term(ZONE, WEB)},
                        {"weight": 2, "podAffinityTerm": pod_term(HOSTNAME, WEB)},
                    ]
                }
            }
        },
        web(),
        {},
        [100, 33, 0, 0],
    ),
    "preferred affinity of an existing pod": (
        {"labels": {"app": "new"}},
        web(affinity=preferred(pod_term(ZONE, NEW))),
        {},
        [100, 100, 0, 0],
    ),
    "preferred anti-affinity of an existing pod": (
        {"labels": {"app": "new"}},
        web(affinity=preferred(pod_term(ZONE, NEW), anti=True)),
        {},
        [0, 0, 100, 100],
    ),
    "required affinity of an existing pod weighs hardPodAffinityWeight": (
        {"labels": {"app": "new"}},
        web(affinity=required(pod_term(ZONE, NEW))),
        {},
        [100, 100, 0, 0],
    ),
    "a hardPodAffinityWeight of 0 switches that off": (
        {"labels": {"app": "new"}},
        web(affinity=required(pod_term(ZONE, NEW))),
        {"hardPodAffinityWeight": 0},
        [],
    ),
    "preferred terms of existing pods can be ignored": (
        {"labels": {"app": "new"}},
        web(affinity=preferred(pod_term(ZONE, NEW))),
        {"ignorePreferredTermsOfExistingPods": True},
        [],
    ),
}


@pytest.mark.parametrize(("incoming", "existing", "args", "expected"), SCORES.values(), ids=SCORES.keys())
def test_score(incoming: Manifest, existing: Any, args: Manifest, expected: list[int]) -> None:
    pod = make_pod("p", **incoming)
    found = scores("InterPodAffinity", pod, *NODES, *NAMESPACES, existing, args=args or None)
    assert found == (dict(zip(NAMES, expected, strict=True)) if expected else {})


@pytest.mark.parametrize(
    ("own", "existing", "skips"),
    [
        pytest.param(None, None, True, id="there are no terms"),
        pytest.param(None, required(pod_term(ZONE, DB), anti=True), True, id="a term about another label"),
        pytest.param(None, required(pod_term(ZONE, WEB), anti=True), False, id="a term about its label"),
        pytest.param(None, preferred(pod_term(ZONE, {})), False, id="a term about all pods"),
        pytest.param(None, required(pod_term("rack", WEB), anti=True), True, id="a key that no node has"),
        pytest.param(preferred(pod_term(ZONE, DB)), None, False, id="terms of its own"),
    ],
)
def test_the_first_pod_of_a_template_is_skipped_where_no_term_can_apply(
    own: Manifest | None, existing: Manifest | None, skips: bool
) -> None:
    pod = make_pod("new", labels={"app": "web"}, affinity=own)
    nodes = Nodes(Cache([*NODES, *NAMESPACES, web(affinity=existing)]).snapshot())
    plugin: Any = default_registry().make("InterPodAffinity", InterPodAffinityArgs(), Handle())
    cycle = CycleState()
    cycle.equivalence_class = EquivalenceClass(pod, is_named=False)
    assert plugin.skips_pod(cycle, pod, nodes) == skips
    if skips:
        assert plugin.pre_filter(cycle, pod, nodes) == SKIP
        assert plugin.pre_score(cycle, pod, nodes) == SKIP
