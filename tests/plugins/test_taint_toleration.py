"""TaintToleration: NoSchedule and NoExecute refuse, PreferNoSchedule scores."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.plugins.taint_toleration import UNTOLERATED
from tests.builders import make_node, make_pod
from tests.plugins.plugin_rules import refusals, scores

Tolerations = list[dict[str, Any]]
DEDICATED = {"key": "dedicated", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}

FILTER: dict[str, tuple[list[str], Tolerations, str]] = {
    "no taint, no toleration": ([], [], ""),
    "NoSchedule refuses": (["dedicated=gpu:NoSchedule"], [], UNTOLERATED),
    "NoExecute refuses": (["dedicated=gpu:NoExecute"], [], UNTOLERATED),
    "PreferNoSchedule does not refuse": (["dedicated=gpu:PreferNoSchedule"], [], ""),
    "an equal toleration lets in": (["dedicated=gpu:NoSchedule"], [DEDICATED], ""),
    "another value does not": (["dedicated=cpu:NoSchedule"], [DEDICATED], UNTOLERATED),
    "another effect does not": (["dedicated=gpu:NoExecute"], [DEDICATED], UNTOLERATED),
    "Exists covers any value": (
        ["dedicated=cpu:NoSchedule"],
        [{"key": "dedicated", "operator": "Exists"}],
        "",
    ),
    "all taints must be tolerated": (
        ["dedicated=gpu:NoSchedule", "maintenance:NoSchedule"],
        [DEDICATED],
        UNTOLERATED,
    ),
}


@pytest.mark.parametrize(("taints", "tolerations", "reason"), FILTER.values(), ids=FILTER.keys())
def test_filter(taints: list[str], tolerations: Tolerations, reason: str) -> None:
    pod = make_pod("p", tolerations=tolerations)
    assert refusals("TaintToleration", pod, make_node("n", taints=taints)) == {"n": reason}


PREFERRED = ["a=1:PreferNoSchedule", "b=1:PreferNoSchedule"]
SCORES: dict[str, tuple[Tolerations, dict[str, int]]] = {
    "fewer untolerated PreferNoSchedule taints are better": ([], {"none": 100, "one": 50, "two": 0}),
    "tolerated ones do not count": (
        [{"key": "b", "operator": "Exists"}],
        {"none": 100, "one": 0, "two": 0},
    ),
    "a toleration of NoSchedule alone does not count": (
        [{"key": "b", "operator": "Exists", "effect": "NoSchedule"}],
        {"none": 100, "one": 50, "two": 0},
    ),
    "without any all nodes are equal": ([{"operator": "Exists"}], {"none": 100, "one": 100, "two": 100}),
}


@pytest.mark.parametrize(("tolerations", "expected"), SCORES.values(), ids=SCORES.keys())
def test_score(tolerations: Tolerations, expected: dict[str, int]) -> None:
    nodes = (make_node(name, taints=PREFERRED[:count]) for count, name in enumerate(("none", "one", "two")))
    assert scores("TaintToleration", make_pod("p", tolerations=tolerations), *nodes) == expected
