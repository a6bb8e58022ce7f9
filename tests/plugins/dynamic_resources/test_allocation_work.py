"""Claims that would keep the scheduler busy: an attempt does only so much work for a pod."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from bench.worst.claims import CLAIMS
from moorage.api.base import Object
from moorage.api.decode import convert
from moorage.api.devices import ResourceClaim
from moorage.cel.budget import WORK_LIMIT, WorkBudget
from moorage.cel.program import CompiledSelector
from moorage.framework.interface.status import PluginError
from moorage.plugins.dynamic_resources.pod_devices import work_limit
from moorage.plugins.dynamic_resources.structured.device_kinds import SelectorResult, SelectorResults
from tests.builders import make_node, make_pod
from tests.plugins.dynamic_resources.device_objects import (
    Scene,
    asking,
    claim,
    device,
    device_class,
    pod_claiming,
    pool_slice,
    request,
)

EXCEEDED = (
    'running "DynamicResources" filter plugin: allocating devices exceeds the limit of '
    f"{work_limit(3)} units of work in one attempt"
)


def nodes_with_gpus(count: int, **attributes: Any) -> Iterator[Object]:
    """Nodes with eight devices each, as those that the worst claims are measured with."""
    for number in range(count):
        name = f"n{number}"
        yield make_node(name)
        devices = [
            device(f"d{i}", {"model": "m", "half": i % 4, "index": i, **attributes}, {"memory": "80Gi"})
            for i in range(8)
        ]
        yield pool_slice(name, *devices, node=name)


def scene(*claims: Object, nodes: int = 3) -> Scene:
    return Scene(device_class(), *nodes_with_gpus(nodes), *claims)


def worst(name: str) -> ResourceClaim:
    spec = {"devices": CLAIMS[name]}
    return convert({"metadata": {"name": "c", "namespace": "default"}, "spec": spec}, ResourceClaim)


ENDLESS = [
    "a loop within a loop",
    "conversions in a loop",
    "a text doubled 28 times",
    "32 requests on eight devices",
    "nine requests of eight alternatives each",
    "seven devices that must all differ, of which two are equal",
]


@pytest.mark.parametrize("name", ENDLESS)
def test_an_endless_claim_fails_the_attempt_and_says_that_it_exceeds_the_limit(name: str) -> None:
    cluster = scene(worst(name))
    for _ in range(2):
        with pytest.raises(PluginError) as caught:
            cluster.filter_nodes(pod_claiming("p", "c"))
        assert str(caught.value) == EXCEEDED


def test_a_selector_that_costs_too_much_fails_in_kube_schedulers_words() -> None:
    cluster = scene(worst("a million numbers, each compared with all others"))
    with pytest.raises(
        PluginError, match="CEL runtime error: operation cancelled: actual cost limit exceeded"
    ):
        cluster.filter_nodes(pod_claiming("p", "c"))


def test_an_ordinary_claim_is_far_from_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = scene(worst("an ordinary claim"))
    spent: list[int] = []
    monkeypatch.setattr(WorkBudget, "spend", lambda self, units: spent.append(units))
    assert cluster.feasible(pod_claiming("p", "c")) == ["n0", "n1", "n2"]
    assert sum(spent) < WORK_LIMIT / 4


def test_an_ordinary_claim_may_look_at_many_nodes_that_all_differ() -> None:
    objects = [*nodes_with_gpus(0)]
    for number in range(300):
        name = f"n{number}"
        devices = [device(f"d{i}", {"uuid": f"{number}-{i}", "model": "other"}) for i in range(8)]
        objects += [make_node(name), pool_slice(name, *devices, node=name)]
    wanted = claim("c", request("r", asking(1, 'device.attributes["gpu.example.com"].model == "m"')))
    reasons_by_node = Scene(device_class(), *objects, wanted).filter_nodes(pod_claiming("p", "c"))
    assert set(reasons_by_node.values()) == {"cannot allocate all claims"}


def gets_through(cluster: Scene) -> bool:
    try:
        return len(cluster.feasible(pod_claiming("p", "c"))) == 20
    except PluginError:
        return False


def test_device_evaluations_are_reused_by_the_next_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    matches = CompiledSelector.matches
    monkeypatch.setattr(
        CompiledSelector, "matches", lambda self, *rest: asked.append(self.expression) or matches(self, *rest)
    )
    index = 'device.attributes["gpu.example.com"].index'
    slow = f"lists.range(100).all(a, lists.range(80).all(b, true)) || {index} < 0"
    cluster = scene(claim("c", request("r", asking(8, slow))), nodes=20)
    attempts = 1
    while not gets_through(cluster):
        attempts += 1
    assert 1 < attempts < 10
    assert 8 <= asked.count(slow) < 8 + attempts  # once for each kind of device, whatever the number of nodes


def test_a_claim_that_reads_what_differs_on_every_device_gets_through_in_several_attempts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    evaluated: list[int] = []
    matches = CompiledSelector.matches
    monkeypatch.setattr(
        CompiledSelector, "matches", lambda self, *rest: evaluated.append(1) or matches(self, *rest)
    )
    count = 100
    objects = []
    for number in range(count):
        devices = [device(f"d{i}", {"uuid": f"{number}-{i}"}) for i in range(8)]
        objects += [make_node(f"n{number}"), pool_slice(f"n{number}", *devices, node=f"n{number}")]
    wanted = claim("c", request("r", asking(1, 'device.attributes["gpu.example.com"].uuid.startsWith("x")')))
    cluster = Scene(device_class(), *objects, wanted)
    attempts = 0
    while True:
        attempts, before = attempts + 1, len(evaluated)
        try:
            reasons_by_node = cluster.filter_nodes(pod_claiming("p", "c"))
            break
        except PluginError:
            assert len(evaluated) - before < work_limit(count) / 40
    assert set(reasons_by_node.values()) == {"cannot allocate all claims"}
    assert 1 < attempts < 6
    once = 1 + 8 * count  # the class's selector, and the claim's for each device
    assert once <= len(evaluated) < once + attempts  # again only where an attempt ended within an evaluation


def test_verdicts_are_forgotten_before_there_are_too_many() -> None:
    cluster = scene(claim("c", request("r", asking(8))))
    cluster.filter_nodes(pod_claiming("p", "c"))
    kinds = {
        entry.kind for _, entries in cluster.plugin._device_states.inventory.slices() for entry in entries
    }
    assert len(kinds) == 8
    reasons_by_node = next(iter(kinds))._selector_results
    reasons_by_node.limit = 20
    for number in range(100):
        for kind in kinds:
            kind.store_result(str(number), None, SelectorResult(True, None))
            assert (
                sum(len(each._held) for each in kinds if each._generation == reasons_by_node.generation) <= 20
            )
            known = kind.selector_result(str(number))
            assert known is not None
            assert known.answer is True
    assert SelectorResults().limit > 100_000


def test_a_reason_that_an_expression_made_long_is_cut() -> None:
    key = "+".join(["device.driver"] * 20)
    long = claim(
        "c", request("r", asking(1, f'device.attributes["a"][("{"x" * 3000}")] == 1 || {key} == ""'))
    )
    with pytest.raises(PluginError) as caught:
        scene(long).filter_nodes(pod_claiming("p", "c"))
    assert "no such key: xxx" in str(caught.value)
    assert len(str(caught.value)) < 1300


def test_a_pod_with_very_many_claims_fails_the_attempt() -> None:
    cluster = scene(claim("c", request("r", asking())))
    references = [{"name": f"c{index}", "resourceClaimName": "c"} for index in range(10_000)]
    with pytest.raises(PluginError, match="exceeds the limit of"):
        cluster.filter_nodes(make_pod("p", resource_claims=references))


def test_a_claim_with_very_many_selectors_fails_the_attempt() -> None:
    selectors = [{"cel": {"expression": f"{index} >= 0"}} for index in range(32)]
    requests = [
        request(f"r{number}", *[asking(1, selectors=selectors) for _ in range(8)]) for number in range(32)
    ]
    with pytest.raises(PluginError) as caught:
        scene(claim("c", *requests)).filter_nodes(pod_claiming("p", "c"))
    assert str(caught.value) == EXCEEDED
