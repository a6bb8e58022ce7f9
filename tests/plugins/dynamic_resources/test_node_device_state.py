"""Nodes in the same situation are judged together: what follows the cluster says what each node would say.

Whatever happens to nodes, slices, claims and allocations in flight: a plugin that remembers judges all nodes
as they are judged one by one by somebody who has never seen this cluster before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.base import Object
from moorage.api.devices import AllocationResult, DeviceClass, ResourceSlice
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.cluster import row_log
from moorage.config.args import DynamicResourcesArgs
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import PluginError
from moorage.plugins.dynamic_resources.allocation_plans import Groups
from moorage.plugins.dynamic_resources.device_totals import DeviceTotals
from moorage.plugins.dynamic_resources.node_device_state import NodeDeviceStates
from moorage.plugins.dynamic_resources.outcomes import AllocationPlan
from moorage.plugins.dynamic_resources.plugin import (
    _STATE,
    CANNOT_ALLOCATE,
    CANNOT_FIT,
    INVALID_POOLS,
    NOT_AVAILABLE,
    DynamicResources,
)
from moorage.plugins.dynamic_resources.pod_devices import PodDevices
from moorage.plugins.dynamic_resources.structured.allocator import allocation
from moorage.plugins.dynamic_resources.structured.claim_requests import AllocationError
from moorage.plugins.dynamic_resources.structured.inventory import Inventory, NodeDevices
from tests import strategies as s
from tests.builders import make_node
from tests.plugins.dynamic_resources.device_objects import (
    Scene,
    allocated,
    claim,
    device_class,
    pool_slice,
)
from tests.plugins.dynamic_resources.scenarios import (
    CLAIM_REQUESTS,
    CLAIMS,
    COLOUR,
    GPU,
    PLACES,
    PODS,
    RED,
    RED_GPU,
    Event,
    Scenario,
    in_zone,
    scenarios,
    usual_slice,
)
from tests.strategies import examples

# What is said


@dataclass
class PluginAnswers:
    """All that is found out about a pod and some nodes."""

    error: str = ""
    refusals: dict[str, str] = field(default_factory=dict)
    scores: dict[str, int] = field(default_factory=dict)
    given: dict[str, list[AllocationResult]] = field(default_factory=dict)
    mappings: dict[str, Any] = field(default_factory=dict)
    unavailable: set[int] = field(default_factory=set)


def plugin_answers(plugin: DynamicResources, pod: Pod, view: Nodes) -> PluginAnswers:
    """What a plugin says of a pod."""
    cycle, answers = CycleState(), PluginAnswers()
    status = plugin.pre_filter(cycle, pod, view)
    if status is not None:
        return PluginAnswers(status.message)
    try:
        selector_result = plugin.filter(cycle, pod, view)
    except PluginError as error:
        return PluginAnswers(str(error))
    state = cycle.read(_STATE)
    assert state is not None
    codes = np.zeros(len(view), int) if selector_result.codes is None else selector_result.codes
    texts = ["", *(reason.texts[0] for reason in selector_result.reasons)]
    answers.refusals = {name: texts[code] for name, code in zip(view.names, codes.tolist(), strict=True)}
    answers.scores = dict(zip(view.names, plugin.score(cycle, pod, view).tolist(), strict=True))
    answers.unavailable = state.unavailable
    for name in view.names:
        found = None if state.plans is None else state.plans.get(name)
        if found is not None:
            plan, node_devices = found
            answers.given[name], answers.mappings[name] = allocations(plan, node_devices, name), plan.extended
    return answers


def allocations(plan: AllocationPlan, node_devices: NodeDevices, name: str) -> list[AllocationResult]:
    return [
        allocation(claim_request.claim, claim_request, picks, node_devices, name)
        for claim_request, picks in zip(plan.claim_requests, plan.picks, strict=True)
    ]


def uncached_answers(plugin: DynamicResources, pod: Pod, view: Nodes) -> PluginAnswers:
    """The same, node by node, with a search for each situation in which one is found to be."""
    cycle = CycleState()
    status = plugin.pre_filter(cycle, pod, view)
    if status is not None:
        return PluginAnswers(status.message)
    state = cycle.read(_STATE)
    assert state is not None
    answers = PluginAnswers(unavailable=state.unavailable)
    try:
        for node in (each.node for each in view):
            answers.refusals[node.name] = plain_refusal(plugin, state, pod, node, view, answers)
    except AllocationError as error:
        return PluginAnswers(str(PluginError(plugin.name, "filter", str(error))))
    return answers


def plain_refusal(
    plugin: DynamicResources, state: PodDevices, pod: Pod, node: Node, view: Nodes, answers: PluginAnswers
) -> str:
    answers.scores[node.name] = 0
    variant = state.variants_in(pod, view.objects.of(DeviceClass)).of(node)
    if variant is None:
        return CANNOT_FIT
    claim_requests, extended = variant
    if extended is None and not state.user_claims:
        return ""
    found = None if state.allocator is None else state.allocator.find(node, claim_requests)
    if found is not None and found.picks is None:
        return INVALID_POOLS if found.meets_invalid_pools else CANNOT_ALLOCATE
    missing = [place for place, home in state.homes.items() if not home.matches(node)]
    state.unavailable.update(missing)
    if missing:
        return NOT_AVAILABLE
    if found is not None and found.picks is not None:
        node_devices = plugin._device_states.inventory.seen_from(node)
        answers.given[node.name] = allocations(
            AllocationPlan(claim_requests, found.picks, extended), node_devices, node.name
        )
        answers.mappings[node.name] = extended
        chosen = {pick.alternative for picks in found.picks for pick in picks if pick.alternative.name}
        answers.scores[node.name] = sum(8 - alternative.place for alternative in chosen)
    return ""


class RunningScenario(Scene):
    """A cluster to which a story happens, and a plugin that remembers."""

    def __init__(self, *objects: Object) -> None:
        shared = claim("shared", status=allocated("z/d0", node="n1"))
        super().__init__(device_class(extendedResourceName=GPU), *CLAIMS, shared, *objects)
        self.cache.put(device_class("red", f'{COLOUR} == "red"', extendedResourceName=RED_GPU))
        self.totals = DeviceTotals(self.cache.objects)
        self.reserved: dict[int, tuple[CycleState, str]] = {}

    def happen(self, event: Event) -> None:
        """Let something happen to the cluster."""
        match event:
            case ("put", item):
                self.cache.put(item)
            case ("goes", (kind, name)):
                if kind is Node:
                    self.cache.remove_node(name)
                else:
                    namespace = "" if kind is ResourceSlice else "default"
                    self.cache.objects.of(kind).remove(namespace, name)
            case ("reserve", (index, place)):
                self.reserve_or_give_back(index, place)

    def reserve_or_give_back(self, index: int, place: str) -> None:
        """What a pod would get on a node is kept in the books, or given back if it is there."""
        pod = PODS[index]
        if index in self.reserved:
            cycle, place = self.reserved.pop(index)
            self.plugin.unreserve(cycle, pod, place)
        elif plugin_answers(self.plugin, pod, self.nodes).refusals.get(place) == "":
            assert place in self.feasible(pod)
            assert self.plugin.reserve(self.cycle, pod, place) is None
            self.reserved[index] = (self.cycle, place)

    def compare(self, index: int) -> None:
        """Ask about a pod, and somebody who looks at node after node."""
        pod, all_nodes = PODS[index], self.nodes
        some = all_nodes.at(np.arange(len(all_nodes))[::-2])
        for view in (all_nodes, some):
            plain = DynamicResources(DynamicResourcesArgs().defaulted(), self.handle)
            assert plugin_answers(self.plugin, pod, view) == uncached_answers(plain, pod, view)
        self.check_codes()
        self.check_totals()

    def check_codes(self) -> None:
        """As many situations are told apart as there are."""
        device_states, view = self.plugin._device_states, self.nodes
        device_states.refresh(view.objects, self.plugin._in_flight.claims())
        all_node_devices = [device_states.inventory.seen_from(node) for node in view.snapshot.nodes]
        signature = device_states.allocated.signature
        different = {
            tuple(tuple((view.projection, signature(view)) for view in block.views) for block in each.blocks)
            for each in all_node_devices
        }
        assert len(np.unique(device_states.of(view))) == len(different)

    def check_totals(self) -> None:
        """Devices are counted as by somebody who has not counted before."""
        view, fresh = self.nodes, DeviceTotals(self.cache.objects)
        for resource in (GPU, RED_GPU):
            counted, rebuilt = self.totals.of(resource, view), fresh.of(resource, view)
            assert counted is not None
            assert rebuilt is not None
            assert [each.tolist() for each in counted] == [each.tolist() for each in rebuilt]


def follow(count: int) -> None:
    """Tell so many stories, and ask after each event, and in the end."""

    @examples(count)
    @given(scenarios())
    def tell(scenario: Scenario) -> None:
        running = RunningScenario()
        for number, (event, asked) in enumerate(scenario):
            running.happen(event)
            if number % 2:
                running.plugin.catch_up(running.nodes)
            for index in asked:
                running.compare(index)
        for index in range(len(PODS)):
            running.compare(index)

    tell()


@pytest.mark.hypothesis
def test_nodes_that_are_evaluated_together_are_evaluated_as_one_by_one() -> None:
    follow(150)


@pytest.mark.hypothesis
def test_so_they_are_where_the_log_of_changes_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_log, "_KEPT_WRITES", 1)
    follow(30)


@examples(60)
@given(st.lists(st.tuples(s.one_of(*PLACES, "x", "y"), s.one_of("d0", "d1")), min_size=8, max_size=24))
def test_devices_are_taken_and_given_back(moves: list[tuple[str, str]]) -> None:
    """Situations come and go: what one was called another may be called later."""
    placed = [make_node(name, labels={"zone": "xy"[number % 2]}) for number, name in enumerate(PLACES)]
    running = RunningScenario(*placed, *(usual_slice(name, RED) for name in (*PLACES, "x", "y")))
    holding: set[tuple[str, str]] = set()
    for pool, taken in moves:
        holder = claim(f"{pool}-{taken}", status=allocated(f"{pool}/{taken}"))
        if (pool, taken) in holding:
            running.cache.remove(holder)
        else:
            running.cache.put(holder)
        holding ^= {(pool, taken)}
        running.check_codes()
        running.check_totals()
    running.compare(0)


# What it costs

MANY = [make_node(f"n{number}", labels={"zone": "xy"[number % 2]}) for number in range(40)]


def own_pool(number: int, *names: str) -> ResourceSlice:
    return pool_slice(f"p{number}", *(names or ("d0", "d1")), node=f"n{number}")


TWICE: dict[str, Any] = {"sharedCounters": [{"name": "card", "counters": {"m": {"value": "1"}}}] * 2}
"""Two sets of counters with one name: nobody may have any of such a pool."""

CHECKS: dict[str, tuple[list[Object], int]] = {
    "nothing": ([], 0),
    "devices of one node are taken": ([claim("h", status=allocated("p7/d0"))], 1),
    "devices that all nodes see are taken": ([claim("h", status=allocated("wide/d0"))], 0),
    "devices that some nodes see are taken": ([claim("h", status=allocated("zone/d0"))], 0),
    "devices that nobody has published are taken": ([claim("h", status=allocated("nowhere/d0"))], 0),
    "a node publishes other devices": ([own_pool(7, "d0", "d1", "d2")], 1),
    "a pool is bad, which is known everywhere": ([pool_slice("bad", node="n7", **TWICE)], 40),
    "a zone gets other devices": ([pool_slice("zone", "d9", node=None, **in_zone("y"))], 20),
    "a node gets other labels": ([make_node("n7", labels={"zone": "x"})], 1),
    "a node comes": ([make_node("new")], 41),
}
"""Something that happens, and how many nodes have to be looked at for it."""


@pytest.mark.parametrize(("news", "looks"), CHECKS.values(), ids=CHECKS)
def test_only_what_changed_is_looked_at(
    monkeypatch: pytest.MonkeyPatch, news: list[Object], looks: int
) -> None:
    wide = pool_slice("wide", "d0", "d1", node=None, allNodes=True)
    zone = pool_slice("zone", "d0", "d1", node=None, **in_zone("y"))
    running = RunningScenario(*MANY, *(own_pool(number) for number in range(40)), wide, zone)
    running.compare(0)
    looked: list[str] = []
    plugin, see = running.plugin, Inventory.seen_from

    def counting(inventory: Inventory, node: Node) -> NodeDevices:
        if inventory is plugin._device_states.inventory:
            looked.append(node.name)
        return see(inventory, node)

    monkeypatch.setattr(Inventory, "seen_from", counting)
    for item in news:
        running.cache.put(item)
    plugin._device_states.refresh(running.nodes.objects, {})
    plugin._device_states.of(running.nodes)
    assert len(looked) == looks
    running.compare(0)


def test_a_plugin_that_has_caught_up_reads_no_slices_for_the_first_pod(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    running = RunningScenario(*MANY, *(own_pool(number) for number in range(40)))
    running.plugin.catch_up(running.nodes)
    read: list[str] = []
    monkeypatch.setattr(Inventory, "_add", lambda *_: read.append("slice"))
    monkeypatch.setattr(NodeDeviceStates, "_rebuild", lambda *_: read.append("all nodes"))

    running.plugin.catch_up(running.nodes)
    assert any(text == "" for text in running.filter_nodes(PODS[0]).values())

    assert read == []


def test_groups_are_in_the_order_of_their_first_nodes() -> None:
    groups = Groups(np.array([4, 1, 4, 0, 1]), 6)
    assert groups.firsts == [0, 1, 3]
    assert groups.numbers.tolist() == [0, 1, 0, 2, 1]
    assert Groups(np.zeros(0, np.intp), 3).firsts == []


# Several snapshots, and errors


def test_a_plugin_can_be_asked_about_several_clusters_in_turn() -> None:
    one, other = (
        RunningScenario(*MANY[:3], own_pool(0), own_pool(1)),
        RunningScenario(*MANY[1:6], own_pool(2), own_pool(1, "x")),
    )
    for _ in range(2):
        for running in (one, other):
            for pod in PODS[:3]:
                fresh = DynamicResources(DynamicResourcesArgs().defaulted(), one.handle)
                assert plugin_answers(one.plugin, pod, running.nodes) == uncached_answers(
                    fresh, pod, running.nodes
                )


def test_the_first_node_in_order_that_meets_an_error_is_named() -> None:
    """The pools of n1 and n2 are incomplete; a search for all devices cannot be made on either."""
    incomplete = [pool_slice(f"p{n}", "d0", node=f"n{n}", count=2) for n in (2, 1)]
    running = RunningScenario(*MANY[:4], own_pool(0), *incomplete)
    pod = PODS[list(CLAIM_REQUESTS).index("all")]
    backwards = running.nodes.at(np.array([3, 2, 1, 0]))
    assert "resource pool gpu.example.com/p1 is" in plugin_answers(running.plugin, pod, running.nodes).error
    assert "resource pool gpu.example.com/p2 is" in plugin_answers(running.plugin, pod, backwards).error
