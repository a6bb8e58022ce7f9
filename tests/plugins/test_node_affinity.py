"""NodeAffinity: node selectors, required and preferred terms, and what a configuration adds."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.cluster.cache import Cache
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.nodes import Nodes
from moorage.plugins.node_affinity import NO_MATCH, NOT_ENFORCED
from tests.builders import expression, make_framework, make_node, make_pod
from tests.plugins.plugin_rules import refusals, scores

Manifest = dict[str, Any]


def required(*terms: Manifest) -> Manifest:
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}


def preferred(**weights: int) -> Manifest:
    return {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": weight, "preference": term(expression("disk", "In", disk))}
            for disk, weight in weights.items()
        ]
    }


def term(*expressions: Manifest, **fields: Any) -> Manifest:
    return {"matchExpressions": list(expressions), **fields}


NODES = (
    make_node("ssd", labels={"disk": "ssd", "cpus": "8"}),
    make_node("hdd", labels={"disk": "hdd", "cpus": "4"}),
    make_node("bare"),
)

FILTER: dict[str, tuple[Manifest, set[str]]] = {
    "no affinity fits everywhere": ({}, {"ssd", "hdd", "bare"}),
    "a node selector needs every label": ({"node_selector": {"disk": "ssd", "cpus": "4"}}, set()),
    "a node selector": ({"node_selector": {"disk": "ssd"}}, {"ssd"}),
    "In": (
        {"affinity": {"nodeAffinity": required(term(expression("disk", "In", "ssd", "nvme")))}},
        {"ssd"},
    ),
    "NotIn matches nodes without the label": (
        {"affinity": {"nodeAffinity": required(term(expression("disk", "NotIn", "ssd")))}},
        {"hdd", "bare"},
    ),
    "Exists": ({"affinity": {"nodeAffinity": required(term(expression("disk", "Exists")))}}, {"ssd", "hdd"}),
    "DoesNotExist": (
        {"affinity": {"nodeAffinity": required(term(expression("disk", "DoesNotExist")))}},
        {"bare"},
    ),
    "Gt compares integers": (
        {"affinity": {"nodeAffinity": required(term(expression("cpus", "Gt", "5")))}},
        {"ssd"},
    ),
    "Lt compares integers": (
        {"affinity": {"nodeAffinity": required(term(expression("cpus", "Lt", "5")))}},
        {"hdd"},
    ),
    "terms are alternatives": (
        {
            "affinity": {
                "nodeAffinity": required(
                    term(expression("disk", "In", "ssd")), term(expression("disk", "DoesNotExist"))
                )
            }
        },
        {"ssd", "bare"},
    ),
    "expressions of a term must all match": (
        {
            "affinity": {
                "nodeAffinity": required(term(expression("disk", "Exists"), expression("cpus", "In", "4")))
            }
        },
        {"hdd"},
    ),
    "an empty term matches nothing": ({"affinity": {"nodeAffinity": required(term())}}, set()),
    "selector and affinity must both match": (
        {
            "node_selector": {"cpus": "8"},
            "affinity": {"nodeAffinity": required(term(expression("disk", "In", "hdd")))},
        },
        set(),
    ),
}


@pytest.mark.parametrize(("spec", "passing"), FILTER.values(), ids=FILTER.keys())
def test_filter(spec: Manifest, passing: set[str]) -> None:
    assert refusals("NodeAffinity", make_pod("p", **spec), *NODES) == {
        node.name: "" if node.name in passing else NO_MATCH for node in NODES
    }


@pytest.mark.parametrize("args", [{}, {"addedAffinity": required(term(expression("disk", "Exists")))}])
def test_filter_results_take_one_byte_a_node(args: Manifest) -> None:
    framework = make_framework("NodeAffinity", args={"NodeAffinity": args})
    nodes, pod = Nodes(Cache(NODES).snapshot()), make_pod("p", node_selector={"disk": "ssd"})
    (call,) = framework.at("filter")
    codes = call.filter(CycleState(), pod, nodes).codes
    assert codes is not None
    assert codes.nbytes == len(NODES)


def test_added_affinity_is_enforced_first() -> None:
    args = {"addedAffinity": required(term(expression("disk", "Exists")))}
    pod = make_pod("p", node_selector={"disk": "ssd"})
    assert refusals("NodeAffinity", pod, *NODES, args=args) == {
        "ssd": "",
        "hdd": NO_MATCH,
        "bare": NOT_ENFORCED,
    }


SCORES: dict[str, tuple[Manifest, dict[str, int]]] = {
    "no preference is not scored": ({}, {}),
    "the best node gets 100, others their share": (
        preferred(ssd=4, hdd=1),
        {"ssd": 100, "hdd": 25, "bare": 0},
    ),
    "a preference that no node meets scores 0": (preferred(nvme=1), {"ssd": 0, "hdd": 0, "bare": 0}),
}


@pytest.mark.parametrize(("affinity", "expected"), SCORES.values(), ids=SCORES.keys())
def test_score(affinity: Manifest, expected: dict[str, int]) -> None:
    pod = make_pod("p", affinity={"nodeAffinity": affinity})
    assert scores("NodeAffinity", pod, *NODES) == expected
