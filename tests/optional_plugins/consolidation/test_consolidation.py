"""Consolidation: which pods keep their node, remembered or computed anew."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage import Cache, Engine, Pod
from moorage.api.decode import convert
from moorage.optional_plugins.consolidation.plugin import (
    DO_NOT_DISRUPT,
    MIRROR,
    SAFE_TO_EVICT,
    Consolidation,
    keeps_node,
)
from moorage.testing import check_plugin
from tests.builders import make_framework, make_node, make_pod, owner, pod

KINDS: dict[str, tuple[dict[str, Any], dict[str, str], int]] = {
    # parts of the pod, its annotations: how long it keeps its node
    "of a DaemonSet": ({"owners": [owner("DaemonSet", "agent")]}, {}, 0),
    "of a DaemonSet, whatever it says": (
        {"owners": [owner("DaemonSet", "agent")]},
        {SAFE_TO_EVICT: "false"},
        0,
    ),
    "static": ({"owners": [owner("Node", "n")]}, {MIRROR: "hash"}, 0),
    "being deleted": ({"terminating": True}, {SAFE_TO_EVICT: "false"}, 0),
    "of a Job": ({"owners": [owner("Job", "nightly")]}, {}, 40),
    "of a ReplicaSet": ({"owners": [owner("ReplicaSet", "web")]}, {}, 70),
    "of a custom resource": ({"owners": [owner("Database", "db")]}, {}, 70),
    "not of an owner that does not control it": ({"owners": [owner("Job", "j", controller=False)]}, {}, 100),
    "alone": ({}, {}, 100),
    "alone, and can be evicted": ({}, {SAFE_TO_EVICT: "true"}, 70),
    "not to be evicted": ({"owners": [owner("Job", "nightly")]}, {SAFE_TO_EVICT: "false"}, 100),
    "not to be disrupted": ({"owners": [owner("ReplicaSet", "web")]}, {DO_NOT_DISRUPT: "true"}, 100),
    "to be disrupted": ({"owners": [owner("ReplicaSet", "web")]}, {DO_NOT_DISRUPT: "false"}, 70),
}


def made(name: str, kind: str, node: str = "") -> Pod:
    parts, annotations, _ = KINDS[kind]
    manifest = pod(name, uid=name, on=node, **parts)
    manifest["metadata"]["annotations"] = annotations
    return convert(manifest, Pod)


@pytest.mark.parametrize("kind", KINDS)
def test_how_long_a_pod_keeps_its_node(kind: str) -> None:
    assert keeps_node(made("p", kind)) == KINDS[kind][2]


PODS = st.lists(
    st.tuples(st.integers(0, 6), st.sampled_from("abc"), st.sampled_from(list(KINDS))), max_size=12
)


@given(PODS)
def test_a_node_is_scored_by_the_pod_that_keeps_it_longest(pods: list[tuple[int, str, str]]) -> None:
    cache, new = Cache(), make_pod("new")
    for name in "abc":
        cache.put_node(make_node(name))
    engines = [
        (Engine(seed=0, remembers=is_kept), make_framework("Consolidation")) for is_kept in (True, False)
    ]
    here: dict[int, tuple[str, str, Pod]] = {}
    for number, node, kind in pods:
        if number in here:
            cache.remove_pod(here.pop(number)[2])
        else:
            here[number] = (node, kind, made(f"p{number}", kind, node))
            cache.put_pod(here[number][2])
        expected = {
            name: max((KINDS[kind][2] for at, kind, _ in here.values() if at == name), default=0)
            for name in "abc"
        }
        for engine, framework in engines:
            decision = engine.decide(framework, new, cache.snapshot())
            assert {name: decision.scores_of(name)["Consolidation"] for name in "abc"} == expected


def test_keeps_the_rules_of_plugins() -> None:
    report = check_plugin(Consolidation)
    assert report.ok, str(report)
