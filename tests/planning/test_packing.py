"""The packing model beside every packing there is: its bound holds, and its price is the least."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.base import ResourceList
from moorage.api.node import Taint
from moorage.api.pod import Pod
from moorage.api.quantity import parse_quantity
from moorage.planning import packing_model
from moorage.planning.catalogue import Offer, Shape
from moorage.planning.packing_model import cheapest_packing
from moorage.planning.patterns import all_patterns
from moorage.planning.pod_classes import Bin, Packing, PodClass, packing_of
from moorage.planning.trial import Trial
from tests.builders import port
from tests.planning.planning_cases import SETTINGS, apart, decoded, new_pods, node, pod

_ROOMS = ((4, 4), (8, 4), (8, 16))
_PRICES = (3.0, 4.0, 7.0)


@st.composite
def packings(draw: st.DrawFn) -> Packing:
    """A few classes of pods, and bins that take at least one pod of each."""
    classes = tuple(
        PodClass(
            (Pod(),) * draw(st.integers(1, 3)),
            np.array([draw(st.integers(1, 4)), draw(st.integers(0, 4))], np.int64),
            draw(st.sampled_from((1, 9))),
        )
        for _ in range(draw(st.integers(1, 3)))
    )
    bins = []
    for number in range(draw(st.integers(1, 3))):
        accepts = tuple(number == 0 or draw(st.booleans()) for _ in classes)
        offers = (Offer(Shape(f"s{number}", _PRICES[number], {}), ""),)
        limit = None if number == 0 else draw(st.none() | st.integers(0, 2))
        bins.append(Bin(np.array(_ROOMS[number], np.int64), accepts, _PRICES[number], offers, limit))
    if draw(st.booleans()):
        bins.append(Bin(np.array((3, 3), np.int64), (True,) * len(classes), 0.0, (), draw(st.integers(1, 2))))
    return Packing(classes, tuple(bins))


def least_price(packing: Packing) -> float:
    """The price of the cheapest packing, by trying all ways to put the pods into nodes one by one."""
    pods = [number for number, each in enumerate(packing.classes) for _ in each.pods]
    best, seen = float("inf"), set()

    def put(index: int, used: tuple[tuple[int, tuple[int, ...]], ...], price: float) -> None:
        nonlocal best
        state = (index, tuple(sorted(used)))
        if price >= best or state in seen:
            return
        seen.add(state)
        if index == len(pods):
            best = price
            return
        for place, (number, content) in enumerate(used):
            if _fits(packing, number, more := (*content, pods[index])):
                put(index + 1, (*used[:place], (number, more), *used[place + 1 :]), price)
        for number, bin in enumerate(packing.bins):
            count = sum(each == number for each, _ in used)
            if (bin.limit is None or count < bin.limit) and _fits(packing, number, (pods[index],)):
                put(index + 1, (*used, (number, (pods[index],))), price + bin.price)

    put(0, (), 0.0)
    return best


def _fits(packing: Packing, number: int, content: tuple[int, ...]) -> bool:
    bin = packing.bins[number]
    if not all(bin.accepts[cls] for cls in content):
        return False
    if any(content.count(cls) > packing.classes[cls].max_per_node for cls in content):
        return False
    return bool(np.all(sum(packing.classes[cls].demand for cls in content) <= bin.room))


@settings(max_examples=40)
@given(packings())
def test_with_all_patterns_the_price_is_the_least(packing: Packing) -> None:
    result = cheapest_packing(packing)
    assert result.price == pytest.approx(least_price(packing))
    assert result.bound == pytest.approx(result.price)
    assert (result.left_over, result.is_optimal) == (0, True)


@settings(max_examples=40)
@given(packings())
def test_with_generated_patterns_the_bound_holds(packing: Packing) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(packing_model, "_MAX_PATTERNS", 0)
        result = cheapest_packing(packing)
    least = least_price(packing)
    assert result.bound <= least + 1e-6
    assert result.price >= least - 1e-6
    assert result.bound >= 0.5 * least


@settings(max_examples=40)
@given(packings())
def test_all_patterns_are_all_maximal_ones(packing: Packing) -> None:
    patterns = all_patterns(packing, 10_000)
    assert patterns is not None
    for number in range(len(packing.bins)):
        fitting = set(_contents(packing, number))
        maximal = {one for one in fitting if not any(_more(one, cls) in fitting for cls in range(len(one)))}
        assert {each.counts for each in patterns if each.bin == number} == {
            one for one in maximal if any(one)
        }


def _contents(packing: Packing, number: int) -> Iterator[tuple[int, ...]]:
    """All contents of a bin."""
    for content in np.ndindex(*(each.count + 1 for each in packing.classes)):
        pods = tuple(cls for cls, count in enumerate(content) for _ in range(count))
        if not pods or _fits(packing, number, pods):
            yield tuple(int(count) for count in content)


def _more(content: Sequence[int], cls: int) -> tuple[int, ...]:
    return tuple(count + (number == cls) for number, count in enumerate(content))


def test_limits_leave_pods_over() -> None:
    classes = (PodClass((Pod(),) * 3, np.array([1], np.int64), 9),)
    bins = (Bin(np.array([1], np.int64), (True,), 2.0, (Offer(Shape("s", 2.0, {}), ""),), 2),)
    result = cheapest_packing(Packing(classes, bins))
    assert (result.left_over, result.nodes, result.bound) == (1, (2,), 0.0)


def test_classes_and_bins_are_made_by_the_filters_that_look_at_nodes() -> None:
    cluster = decoded(
        node("n1", cpu="3"), node("n2", cpu="3"), node("n3", unschedulable=True), pod("a", on="n1")
    )
    shapes = [
        Shape("plain", 1.0, _amounts(), ("a", "b")),
        Shape("tainted", 1.0, _amounts(), labels={"disk": "ssd"}, taints=_taints()),
    ]
    offers = [Offer(shape, zone) for shape in shapes for zone in shape.zones]
    pods = new_pods(
        pod("p", "1"),
        pod("q", "1"),
        pod("picky", node_selector={"disk": "ssd"}, tolerations=[{"operator": "Exists"}]),
        pod("zonal", node_selector={"topology.kubernetes.io/zone": "b"}),
        pod("apart", affinity=apart()),
        pod("web", containers=[{"name": "web", "ports": [port(80)]}]),
    )
    packing = packing_of(Trial(cluster, SETTINGS), pods, offers)
    assert [(each.count, each.max_per_node) for each in packing.classes] == [
        (2, 2),
        (1, 1),
        (1, 1),
        (1, 1),
        (1, 1),
    ]
    shown = [
        (
            [offer.prefix for offer in each.offers],
            each.limit,
            "".join("01"[accepted] for accepted in each.accepts),
        )
        for each in packing.bins
    ]
    # The tainted shape takes only what tolerates it; zones differ because one pod wants one of them.
    assert shown == [
        (["plain-a"], None, "10011"),
        (["plain-b"], None, "10111"),
        (["tainted"], None, "01000"),
        ([], 1, "10011"),
        ([], 1, "10011"),
        ([], 1, "00000"),
    ]
    assert packing.homeless() == []


def _amounts() -> ResourceList:
    return {name: parse_quantity(text) for name, text in {"cpu": "4", "memory": "8Gi"}.items()}


def _taints() -> tuple[Taint, ...]:
    return (Taint(key="dedicated", value="batch", effect="NoSchedule"),)
