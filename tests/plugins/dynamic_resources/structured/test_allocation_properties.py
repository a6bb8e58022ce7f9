"""Properties of allocation over random small clusters.

The oracle tries every way to give devices to requests, without any of the search's shortcuts, and says
whether there is one at all.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations_with_replacement
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.devices import Device, ResourceClaim, ResourceSlice
from moorage.api.pod import Pod
from moorage.api.quantity import Quantity
from moorage.cel.budget import WorkBudget
from moorage.plugins.dynamic_resources.plugin import _STATE
from moorage.plugins.dynamic_resources.structured.candidates import Candidates
from moorage.plugins.dynamic_resources.structured.consumable_capacity import consumed
from moorage.plugins.dynamic_resources.structured.device_kinds import Reading
from moorage.plugins.dynamic_resources.structured.pools import consumption
from moorage.plugins.dynamic_resources.structured.search import Search
from moorage.plugins.dynamic_resources.structured.search_results import Picks
from tests.builders import make_node
from tests.plugins.dynamic_resources.device_objects import (
    DRIVER,
    Scene,
    asking,
    claim,
    device,
    device_class,
    pod_claiming,
    pool_slice,
    request,
)

ATTR = f'device.attributes["{DRIVER}"]'
COUNTERS = {"m": "4"}
MATCH = {"matchAttribute": f"{DRIVER}/colour"}


@st.composite
def devices(draw: st.DrawFn) -> list[dict[str, Any]]:
    made = []
    for number in range(draw(st.integers(1, 4))):
        fields: dict[str, Any] = {}
        if draw(st.booleans()):
            fields["consumes"] = {"m": str(draw(st.integers(1, 3)))}
        if draw(st.booleans()):
            fields |= {"allowMultipleAllocations": True, "capacity": {"b": str(draw(st.integers(1, 4)))}}
        if draw(st.integers(0, 3)) == 0:
            fields["taints"] = [{"key": "t", "effect": "NoSchedule"}]
        made.append(device(f"d{number}", {"colour": draw(st.sampled_from(("red", "blue")))}, **fields))
    return made


@st.composite
def asks(draw: st.DrawFn) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if draw(st.integers(0, 3)) == 0:
        fields["tolerations"] = [{"operator": "Exists"}]
    if draw(st.integers(0, 3)) == 0:
        fields["capacity"] = {"requests": {"b": str(draw(st.integers(1, 3)))}}
    colour = draw(st.sampled_from((None, "red", "blue")))
    expression = None if colour is None else f'{ATTR}.colour == "{colour}"'
    return asking(draw(st.integers(1, 2)), expression, **fields)


@st.composite
def claims(draw: st.DrawFn, name: str) -> ResourceClaim:
    requests = [
        request(f"r{number}", *(draw(asks()) for _ in range(draw(st.integers(1, 2)))))
        for number in range(draw(st.integers(1, 2)))
    ]
    constraints = [MATCH] if draw(st.integers(0, 2)) == 0 else []
    return claim(name, *requests, constraints=constraints)


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[ResourceSlice], list[ResourceClaim]]:
    slices = []
    for node in ("n1", "n2"):
        slices.append(pool_slice(f"{node}-c", node=node, pool=node, count=2, counters=COUNTERS))
        slices.append(pool_slice(f"{node}-d", *draw(devices()), node=node, pool=node, count=2))
    return slices, [draw(claims(f"c{number}")) for number in range(draw(st.integers(1, 5)))]


# The oracle


def published(slices: list[ResourceSlice], node: str) -> list[Device]:
    return [each for slice_ in slices if slice_.spec.node_name == node for each in slice_.spec.devices]


Taken = list[tuple[Device, dict[str, Quantity]]]
"""Devices, and what is taken of those that are shared."""


def within_limits(taken: Taken) -> bool:
    """Whether devices can be held together: exclusive ones once, shares and counters within bounds."""
    times = Counter(each.name for each, _ in taken)
    counters: Counter[Any] = Counter()
    for name in times:
        mine = next(each for each, _ in taken if each.name == name)
        if not mine.allow_multiple_allocations and times[name] > 1:
            return False
        for key, capacity in mine.capacity.items():
            used = [amounts.get(key, 0) for each, amounts in taken if each.name == name]
            if sum(used) > capacity.value:
                return False
        counters.update(consumption(mine))
    return all(amount <= 4_000_000_000 for amount in counters.values())


def solvable(wanted: list[ResourceClaim], there: list[Device], held: Taken) -> bool:
    """Whether there is any way to give the claims what they ask for."""
    requests = [(claim_, request_) for claim_ in wanted for request_ in claim_.spec.devices.requests]

    def go(index: int, taken: Taken, colours: dict[str, str]) -> bool:
        if index == len(requests):
            return True
        claim_, request_ = requests[index]
        for option in request_.first_available or (request_.exactly,):
            assert option is not None
            suiting = [each for each in there if suits(option, each)]
            for chosen in combinations_with_replacement(suiting, option.count):
                if len({each.name for each in chosen}) < len(chosen):
                    continue  # one request takes a device once
                seen = dict(colours)
                if claim_.spec.devices.constraints:
                    values = {each.attributes["colour"].string_value or "" for each in chosen}
                    values |= {seen[claim_.name]} if claim_.name in seen else set()
                    if len(values) > 1:
                        continue
                    seen[claim_.name] = values.pop()
                amounts = option.capacity.requests if option.capacity else {}
                more = [(each, dict(consumed(each.capacity, amounts))) for each in chosen]
                if within_limits([*taken, *more]) and go(index + 1, [*taken, *more], seen):
                    return True
        return False

    return go(0, held, {})


def suits(option: Any, each: Device) -> bool:
    if each.taints and not option.tolerations:
        return False
    if option.capacity and any(name not in each.capacity for name in option.capacity.requests):
        return False
    colour = each.attributes["colour"].string_value
    return all(f'"{colour}"' in selector.cel.expression for selector in option.selectors)


def held_on(scene: Scene, slices: list[ResourceSlice], node: str) -> Taken:
    by_name = {each.name: each for each in published(slices, node)}
    results = [
        result
        for claim_ in scene.cache.objects.of(ResourceClaim)
        if claim_.status.allocation is not None
        for result in claim_.status.allocation.devices.results
        if result.pool == node
    ]
    return [(by_name[result.device], dict(result.consumed_capacity)) for result in results]


def make_scene(slices: list[ResourceSlice], wanted: list[ResourceClaim]) -> Scene:
    return Scene(make_node("n1"), make_node("n2"), device_class(), *slices, *wanted)


# Properties


@settings(max_examples=200)
@given(clusters())
def test_a_solution_is_found_wherever_there_is_one(
    cluster: tuple[list[ResourceSlice], list[ResourceClaim]],
) -> None:
    """Pod after pod, each with one claim or two: feasible exactly where the oracle says so."""
    slices, wanted = cluster
    scene = make_scene(slices, wanted)
    for first in range(0, len(wanted), 2):
        mine = wanted[first : first + 2]
        pod = pod_claiming(f"pod{first}", *(each.name for each in mine))
        feasible = set(scene.feasible(pod))
        for node in ("n1", "n2"):
            there, held = published(slices, node), held_on(scene, slices, node)
            assert (node in feasible) == solvable(mine, there, held)
        if feasible:
            node = min(feasible)
            assert scene.bind(pod, node) is None
            assert within_limits(held_on(scene, slices, node))
            assert not scene.plugin._in_flight.claims()


def named(picks: Picks) -> list[list[tuple[str, int, dict[str, Any]]]]:
    """Devices of claims, which may have been found for other claims that ask for the same."""
    return [[(pick.alternative.full_name, pick.index, pick.amounts) for pick in each] for each in picks]


@settings(max_examples=100)
@given(clusters())
def test_nodes_that_share_a_search_get_what_their_own_search_would_find(
    cluster: tuple[list[ResourceSlice], list[ResourceClaim]],
) -> None:
    slices, wanted = cluster
    scene = make_scene(slices, wanted)
    for each in wanted:
        pod = pod_claiming(f"pod-{each.name}", each.name)
        feasible = scene.feasible(pod)
        state = scene.cycle.read(_STATE)
        assert state is not None
        assert state.plans is not None or not feasible
        for node in feasible:
            assert state.plans is not None
            found = state.plans.get(node)
            assert found is not None
            plan, node_devices = found
            allocated = scene.plugin._device_states.allocated
            alone = Search(
                plan.claim_requests, node_devices, allocated, WorkBudget(), Reading(), Candidates()
            ).run()
            assert alone is not None
            assert named(alone) == named(plan.picks)
        if feasible:
            assert scene.bind(pod, max(feasible)) is None


@settings(max_examples=100)
@given(clusters(), st.lists(st.integers(0, 5), max_size=12))
def test_no_two_pods_hold_one_device(
    cluster: tuple[list[ResourceSlice], list[ResourceClaim]], order: list[int]
) -> None:
    """Whatever is reserved, given back or written in whatever order: limits are never exceeded."""
    slices, wanted = cluster
    scene = make_scene(slices, wanted)
    reserved: dict[int, tuple[Any, Pod, str]] = {}
    for step in order:
        number = step % len(wanted)
        if number in reserved:
            cycle, pod, node = reserved.pop(number)
            scene.plugin.unreserve(cycle, pod, node)
            scene.plugin.unreserve(cycle, pod, node)
        else:
            pod = pod_claiming(f"pod{number}", wanted[number].name)
            feasible = scene.feasible(pod)
            if feasible:
                assert scene.plugin.reserve(scene.cycle, pod, feasible[0]) is None
                reserved[number] = (scene.cycle, pod, feasible[0])
        flying = scene.plugin._in_flight.claims().values()
        for node in ("n1", "n2"):
            by_name = {each.name: each for each in published(slices, node)}
            taken = [
                (by_name[result.device], dict(result.consumed_capacity))
                for claim_ in flying
                if claim_.status.allocation is not None
                for result in claim_.status.allocation.devices.results
                if result.pool == node
            ]
            assert within_limits(taken)


@settings(max_examples=100)
@given(clusters())
def test_giving_back_leaves_everything_as_before(
    cluster: tuple[list[ResourceSlice], list[ResourceClaim]],
) -> None:
    slices, wanted = cluster
    scene = make_scene(slices, wanted)
    names = [each.name for each in wanted[:2]]
    pod, other_pod = pod_claiming("pod", *names), pod_claiming("rival", *names)
    before = scene.filter_nodes(pod)
    stored = {each.key: each for each in scene.cache.objects.of(ResourceClaim)}
    taken = scene.plugin._device_states.allocated.contents()
    for node in [name for name, text in before.items() if not text]:
        assert scene.reserve(pod, node) is None
        cycle = scene.cycle
        in_flight = f"resource claim default/{names[0]} is in the process of being allocated"
        assert set(scene.filter_nodes(other_pod).values()) == {in_flight}
        scene.plugin.unreserve(cycle, pod, node)
        scene.plugin.unreserve(cycle, pod, node)
        assert scene.filter_nodes(other_pod) == before
        assert scene.plugin._device_states.allocated.contents() == taken
    assert {each.key: each for each in scene.cache.objects.of(ResourceClaim)} == stored
