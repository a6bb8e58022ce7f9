"""GPUFragmentation: which node a pod leaves most GPUs of use on, remembered or computed anew."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage import Cache, Engine, Pod, RegistryError, default_registry
from moorage.config.types import PluginConfig
from moorage.framework.runtime.framework import Framework
from moorage.optional_plugins.gpu_fragmentation import columns
from moorage.optional_plugins.gpu_fragmentation.learned import rounded
from moorage.optional_plugins.gpu_fragmentation.plugin import GPUFragmentation
from moorage.testing import check_plugin
from tests.builders import make_node, make_pod, make_profile
from tests.optional_plugins.gpu_fragmentation import oracle

GPU = "nvidia.com/gpu"
Args = dict[str, Any]
Amounts = dict[str, int]

ONE = {"requests": {"cpu": "2", GPU: "1"}, "weight": 3}
FOUR = {"requests": {"cpu": "8", GPU: "4"}}


def expecting(*pods: Args, **args: Any) -> Args:
    return {"expectedPods": list(pods), **args}


def framework(args: Args) -> Framework:
    profile = make_profile("NodeResourcesFit", "GPUFragmentation")
    config = (*profile.plugin_config, PluginConfig(name="GPUFragmentation", args=args))
    return Framework(replace(profile, plugin_config=config), default_registry())


def quantities(amounts: Mapping[str, int]) -> dict[str, str]:
    """Amounts in whole units as manifests have them."""
    return {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in amounts.items()}


def named(cpu: int = 0, gpu: int = 0) -> Amounts:
    return {name: amount for name, amount in (("cpu", 1000 * cpu), (GPU, gpu)) if amount}


class Scene:
    """Nodes and pods, as the scheduler and as the oracle have them."""

    def __init__(self, args: Args) -> None:
        self.args = args
        self.cache = Cache()
        self.has: dict[str, tuple[Amounts, int]] = {}
        self.pods: dict[str, tuple[str, Amounts, Pod]] = {}
        self._frameworks = [framework(args), framework(args)]
        self._engines = [Engine(seed=0), Engine(seed=0, remembers=False)]

    def put_node(self, name: str, has: Amounts, max_pods: int = 10) -> None:
        self.has[name] = (has, max_pods)
        allocatable = {**quantities(has), "pods": str(max_pods)}
        self.cache.put_node(make_node(name, allocatable=allocatable))

    def put_pod(self, uid: str, node: str, requests: Amounts) -> None:
        pod = make_pod(uid, uid=uid, on=node, requests=quantities(requests))
        self.pods[uid] = (node, requests, pod)
        self.cache.put_pod(pod)

    def remove_pod(self, uid: str) -> None:
        self.cache.remove_pod(self.pods.pop(uid)[2])

    def remove_node(self, name: str) -> None:
        del self.has[name]
        self.cache.remove_node(name)

    def scores(self, requests: Amounts) -> list[dict[str, int]]:
        """The scores of the feasible nodes, by an engine that remembers results and one that does not."""
        pod, found = make_pod("new", requests=quantities(requests)), []
        for engine, own in zip(self._engines, self._frameworks, strict=True):
            decision = engine.decide(own, pod, self.cache.snapshot())
            assert decision.error is None, decision.error
            names = decision.feasible.names if decision.scores is not None else []
            found.append({name: decision.scores_of(name).get("GPUFragmentation", 50) for name in names})
        return found

    def plain(self, name: str) -> oracle.PlainNode:
        has, max_pods = self.has[name]
        return oracle.PlainNode(has, max_pods, [own for node, own, _ in self.pods.values() if node == name])

    def expected_scores(self, requests: Amounts, names: list[str]) -> dict[str, int]:
        nodes = {name: self.plain(name) for name in self.has}
        given = self.args.get("expectedPods")
        if given is None:
            expected = oracle.learned(nodes.values(), GPU, self.args.get("maxShapes", 32))
        else:
            expected = [
                oracle.Expected(EXPECTED[index][0], each["weight"]) for index, each in enumerate(given)
            ]
        return {name: oracle.score(nodes[name], requests, expected, GPU) for name in names}


EXPECTED: tuple[tuple[Amounts, int], ...] = ((named(2, 1), 5), (named(3, 2), 2), (named(8, 4), 1))
"""What expected pods request, and their weights."""
FIXED = expecting(*({"requests": quantities(each), "weight": weight} for each, weight in EXPECTED))
TEMPLATES: tuple[Amounts, ...] = (named(1), named(6), named(2, 1), named(1, 2), named(0, 4), {})
NODE_NAMES = "abcde"
ROOM = st.sampled_from((named(8), named(4, 2), named(16, 4), named(6, 4), named(32, 8)))
STEPS = st.lists(
    st.tuples(st.just("node"), st.sampled_from(NODE_NAMES), ROOM, st.sampled_from((1, 3, 10)))
    | st.tuples(st.just("pod"), st.integers(0, 7), st.sampled_from(NODE_NAMES), st.sampled_from(TEMPLATES))
    | st.tuples(st.just("no node"), st.sampled_from(NODE_NAMES)),
    max_size=12,
)


@pytest.mark.parametrize("args", [FIXED, {}, {"maxShapes": 2}], ids=["expected", "learned", "the top two"])
@pytest.mark.hypothesis
def test_all_forms_equal_the_oracle_whatever_happens(args: Args) -> None:
    @settings(max_examples=40)
    @given(STEPS)
    def check(steps: list[tuple[Any, ...]]) -> None:
        scene = Scene(args)
        scene.put_node("a", named(16))
        scene.put_node("z", named(8))
        for number, (what, *rest) in enumerate(steps):
            _take(scene, what, rest)
            for requests in (TEMPLATES[0], TEMPLATES[number % len(TEMPLATES)]):
                remembered, anew = scene.scores(requests)
                assert remembered == anew == scene.expected_scores(requests, list(anew))

    check()


def _take(scene: Scene, what: str, rest: list[Any]) -> None:
    if what == "node":
        scene.put_node(*rest)
    elif what == "no node":
        if rest[0] in scene.has:
            scene.remove_node(rest[0])
    elif f"u{rest[0]}" in scene.pods:
        scene.remove_pod(f"u{rest[0]}")
    elif rest[1] in scene.has:
        scene.put_pod(f"u{rest[0]}", rest[1], rest[2])


SCORES: dict[str, tuple[Args, Amounts, Amounts, list[Amounts], int]] = {
    # expected, of the node, of the pod, on the node: score
    "room for all that is expected": (expecting(ONE), named(16, 4), named(1), [], 50),
    "a GPU without the cpu for it": (expecting(ONE), named(4, 2), named(4), [], 16),
    "one more fragment": (expecting(ONE), named(2, 1), named(2), [], 25),
    "a fragment that is used": (expecting(FOUR), named(16, 1), named(1, 1), [], 75),
    "what breaks up a whole node": (expecting(FOUR), named(16, 4), named(1, 1), [], 12),
    "what breaks it up for one of four": (expecting(ONE, FOUR), named(16, 4), named(1, 1), [], 18),
    "no GPU on the node": (expecting(ONE), named(16), named(1), [], 50),
    "no GPU left": (expecting(ONE), named(16, 1), named(1), [named(1, 1)], 50),
    "by unit": (expecting(ONE, unit=1000), named(2, 1000), named(2), [], 25),
    "nothing is known yet": ({}, named(4, 2), named(4), [], 50),
    "learned from one pod": ({}, named(6, 3), named(4), [named(2, 1)], 16),
}


@pytest.mark.parametrize(("args", "has", "requests", "here", "score"), SCORES.values(), ids=SCORES.keys())
def test_score(args: Args, has: Amounts, requests: Amounts, here: list[Amounts], score: int) -> None:
    scene = Scene(args)
    scene.put_node("n", has)
    scene.put_node("other", named(64, 8))
    for number, each in enumerate(here):
        scene.put_pod(f"u{number}", "n", each)
    assert [each["n"] for each in scene.scores(requests)] == [score, score]


def test_columns_that_are_not_used_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "MAX_COLUMNS", 2)
    scene = Scene({})
    scene.put_node("n", named(8, 4))
    scene.put_node("m", named(8, 2))
    scene.put_pod("u", "n", named(2, 1))
    for cpu in (1, 2, 3, 1, 5, 6):
        remembered, anew = scene.scores(named(cpu))
        assert remembered == anew


@pytest.mark.parametrize(
    ("count", "to"),
    [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 4), (6, 6), (7, 6), (11, 8), (97, 96), (130, 128)],
)
def test_counts_are_rounded_to_two_digits(count: int, to: int) -> None:
    assert rounded(count) == to


WRONG: dict[str, tuple[Args, str]] = {
    "no resource": ({"resource": ""}, "resource: must name the resource of GPUs"),
    "no unit": ({"unit": 0}, "unit: 0 is not in the range [1, 1000000]"),
    "too many shapes": ({"maxShapes": 65}, "maxShapes: 65 is not in the range [1, 64]"),
    "too many pods": (expecting(*[ONE] * 65), "expectedPods: 65 are too many; at most 64"),
    "no weight": (
        expecting({**ONE, "weight": 0}),
        "expectedPods[0].weight: 0 is not in the range [1, 1000000]",
    ),
    "no GPU": (
        expecting(ONE, {"requests": {"cpu": "1"}}),
        "expectedPods[1].requests: must have nvidia.com/gpu",
    ),
    "no quantity": (expecting({"requests": {GPU: "many"}}), "'many' is not a quantity"),
    "another field": ({"shapes": []}, "args.shapes: unknown field"),
}


@pytest.mark.parametrize(("args", "complaint"), WRONG.values(), ids=WRONG.keys())
def test_arguments_that_are_wrong_are_named(args: Args, complaint: str) -> None:
    with pytest.raises(RegistryError) as error:
        framework(args)
    assert "plugin GPUFragmentation: args" in str(error.value)
    assert complaint in str(error.value)


@pytest.mark.parametrize("args", [{}, expecting({"requests": {"example.com/gpu": 2, "cpu": "1"}})])
def test_keeps_the_rules_of_plugins(args: Args) -> None:
    report = check_plugin(GPUFragmentation, args={"resource": "example.com/gpu", **args})
    assert report.ok, str(report)
