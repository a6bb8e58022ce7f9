"""Pods that ask too much: no plugin works for them, and nothing of them stays."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.api.pod import Pod
from moorage.cluster.cache import Cache
from moorage.engine.engine import Engine
from moorage.framework.cache.equivalence_classes import MAX_CLASS_BYTES, MAX_COUNTED_TERMS, EquivalenceClasses
from tests.builders import (
    HOSTNAME,
    REQUIRED,
    ZONE,
    expression,
    make_framework,
    make_node,
    make_pod,
    pod_term,
    spread,
)
from tests.engine.helpers import Only, framework_of

BEYOND: dict[str, dict[str, Any]] = {
    "node selector": {"node_selector": {f"k{number}": "v" for number in range(100_000)}},
    "tolerations": {"tolerations": [{"key": f"k{number}"} for number in range(30_000)]},
}


def anti_affinity(count: int, key: str = ZONE) -> dict[str, Any]:
    terms = [pod_term(key, {"matchLabels": {"app": str(number)}}) for number in range(count)]
    return {"affinity": {"podAntiAffinity": {REQUIRED: terms}}}


@pytest.mark.parametrize("remembers", [True, False])
@pytest.mark.parametrize("spec", BEYOND.values(), ids=BEYOND)
def test_no_plugin_is_asked_about_a_pod_beyond_the_limits(spec: dict[str, Any], remembers: bool) -> None:
    plugin = Only("a")
    engine, framework = Engine(remembers=remembers), framework_of(plugin)
    snapshot = Cache([make_node("a")]).snapshot()
    pod = make_pod("p", **spec)
    for _ in range(3):
        decision = engine.decide(framework, pod, snapshot)
        assert decision.node is None
        assert "which exceeds the limit of" in decision.message
    assert plugin.asked == []
    assert engine.decide(framework, make_pod("q"), snapshot).node == "a"


def test_a_pod_beyond_the_limits_is_counted_once_however_often_it_is_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted: list[Pod] = []
    monkeypatch.setattr("moorage.framework.cache.equivalence_classes.check_pod", counted.append)
    templates = EquivalenceClasses()
    pod = make_pod("p", **BEYOND["tolerations"])
    for _ in range(5):
        assert templates.of(pod, 10) is None
    assert counted == [pod]


def test_nothing_is_remembered_of_pods_with_very_large_specs() -> None:
    templates = EquivalenceClasses()
    assert templates.of(make_pod("p", **anti_affinity(MAX_COUNTED_TERMS)), 10) is not None
    assert templates.of(make_pod("p", **anti_affinity(MAX_COUNTED_TERMS + 1)), 10) is None
    wide = {
        "affinity": {
            "nodeAffinity": {
                REQUIRED: {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [
                                expression("k", "In", *(f"{number:060}" for number in range(300)))
                            ]
                        }
                    ]
                }
            }
        }
    }
    assert MAX_CLASS_BYTES < 300 * 60
    assert templates.of(make_pod("p", **wide), 10) is None


def test_a_template_does_not_hold_on_to_the_annotations_of_its_first_pod() -> None:
    pod = make_pod("p")
    annotated = replace(pod, metadata=replace(pod.metadata, annotations={"note": "x" * 1_000_000}))
    template = EquivalenceClasses().of(annotated, 10)
    assert template is not None
    info = template.info(annotated)
    assert info is not None
    assert info.pod == pod


def test_what_thousands_of_terms_and_keys_made_is_gone_when_the_pods_are() -> None:
    """Pods at the limit, each with keys and selectors of its own: tried, refused, deleted."""
    engine, framework = Engine(seed=1), make_framework()
    cache = Cache([make_node(f"n{number}", labels={HOSTNAME: f"n{number}"}) for number in range(50)])

    def attempt(number: int) -> None:
        spec = anti_affinity(100, key=f"key-{number}")
        spec["node_selector"] = {f"{number}-{place}": "v" for place in range(500)}
        pod = make_pod(f"p{number}", uid=f"p{number}", **spec)
        assert (
            "node(s) didn't match Pod's node affinity"
            in engine.decide(framework, pod, cache.snapshot()).message
        )

    attempt(0)
    tracemalloc.start()
    try:
        for number in range(1, 6):
            attempt(number)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 100_000, "five pods of some 100 KB each, and their columns"
    assert cache.snapshot().labels.read_keys == []


@pytest.mark.parametrize("when", [True, False], ids=["hard", "soft"])
def test_as_many_spread_constraints_as_allowed_are_evaluated(when: bool) -> None:
    """More than an array can have dimensions, too."""
    cache = Cache([make_node(name, labels={ZONE: name}) for name in "ab"])
    wanted = [spread(ZONE, {"matchLabels": {"app": "x"}}, hard=when) for _ in range(50)]
    pod = make_pod("p", labels={"app": "x"}, topology_spread_constraints=wanted)
    cache.put(make_pod("q", uid="q", labels={"app": "x"}, on="a"))
    for remembers in (True, False):
        decision = Engine(seed=1, remembers=remembers).decide(make_framework(), pod, cache.snapshot())
        assert (decision.node, decision.message) == ("b", "")
