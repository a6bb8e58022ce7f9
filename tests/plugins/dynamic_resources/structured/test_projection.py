"""Devices that each have attributes of their own: they are told apart only by what is asked about them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.base import Object
from moorage.api.devices import DeviceAttribute, ResourceClaim
from moorage.cel.program import CompiledSelector
from moorage.config.args import DynamicResourcesArgs
from moorage.plugins.dynamic_resources.plugin import DynamicResources
from moorage.plugins.dynamic_resources.structured.device_kinds import DeviceKind, DeviceKinds, SelectorResult
from moorage.plugins.dynamic_resources.structured.inventory import Inventory
from moorage.plugins.dynamic_resources.structured.pools import MAX_PROJECTIONS
from moorage.plugins.dynamic_resources.structured.search import Search
from moorage.plugins.dynamic_resources.structured.search_results import MAX_CONTENTS
from tests import strategies as s
from tests.builders import make_node
from tests.plugins.dynamic_resources.device_objects import (
    DRIVER,
    Scene,
    allocated,
    asking,
    claim,
    device,
    device_class,
    pod_claiming,
    pool_slice,
    request,
)
from tests.plugins.dynamic_resources.test_node_device_state import plugin_answers
from tests.strategies import examples

A = f'device.attributes["{DRIVER}"]'
SERIAL = f"{DRIVER}/serial"
RED = f'{A}.colour == "red"'

# What is said of them

EXPRESSION = s.one_of(
    None,
    RED,
    f'has({A}.colour) && {A}.colour != "blue"',
    f'{A}.serial != "n1-d0"',
    f'{A}.serial.endsWith("d1")',
    f'"colour" in {A} && "{DRIVER}/odd" in {A}',
    f"{A}.colour == 1",
    f"{A}.colour == true || {A}.odd",
    f"size({A}) > 2",
    f"{A}.exists(name, name == 'odd')",
    f"device.attributes[device.driver].?odd.orValue(false) || {RED}",
)
CONSTRAINTS: list[list[dict[str, Any]]] = [
    [],
    [],
    [{"matchAttribute": f"{DRIVER}/colour"}],
    [{"distinctAttribute": f"{DRIVER}/colour"}],
    [{"matchAttribute": SERIAL}],
    [{"distinctAttribute": SERIAL, "requests": ["r0"]}],
]


@st.composite
def devices(draw: s.Draw[Any]) -> list[dict[str, Any]]:
    """Devices without what is their own."""
    made = []
    for number in range(2):
        attributes = {
            draw(s.one_of("colour", "colour", f"{DRIVER}/colour")): draw(
                s.one_of("red", "red", "blue", "1", 1, True)
            )
        }
        if draw(st.integers(0, 3)) == 0:
            attributes["odd"] = draw(s.one_of(True, 1, "v:1.0.0"))
        made.append(device(f"d{number}", attributes if draw(s.MOSTLY) else {}))
    return made


@st.composite
def clusters(draw: s.Draw[Any]) -> tuple[list[Object], list[ResourceClaim]]:
    """Nodes of few models, on which all devices have a serial number; and claims."""
    models = draw(st.lists(devices(), min_size=2, max_size=3))
    objects: list[Object] = []
    for name in ("n0", "n1", "n2", "n3"):
        own = [
            {
                **each,
                "attributes": {
                    **each.get("attributes", {}),
                    "serial": {"string": f"{name}-{each['name']}"},
                },
            }
            for each in draw(st.sampled_from(models))
        ]
        objects += [make_node(name), pool_slice(name, *own, node=name)]
    if draw(st.booleans()):
        shared = device("w0", {"colour": "red", "serial": "shared"})
        objects.append(pool_slice("wide", shared, node=None, allNodes=True))
    if draw(st.booleans()):
        objects.append(claim("held", status=allocated("n1/d0", node="n1")))
    claims = []
    for number in range(2):
        requests = [
            request(
                f"r{place}",
                *[
                    asking(draw(s.one_of(1, 1, 2, 2, None)), draw(EXPRESSION))
                    for _ in range(draw(s.one_of(1, 1, 2)))
                ],
            )
            for place in range(draw(s.one_of(1, 1, 2)))
        ]
        claims.append(claim(f"c{number}", *requests, constraints=draw(st.sampled_from(CONSTRAINTS))))
    return objects, claims


@examples(60)
@given(clusters())
def test_nodes_whose_devices_all_differ_are_evaluated_as_if_each_were_the_only_one(
    cluster: tuple[list[Object], list[ResourceClaim]],
) -> None:
    objects, claims = cluster
    scene = Scene(device_class(), *objects, *claims)
    for each in claims:
        pod = pod_claiming("pod", each.name)
        together = plugin_answers(scene.plugin, pod, scene.nodes)
        for place, name in enumerate(scene.nodes.names):
            fresh = DynamicResources(DynamicResourcesArgs().defaulted(), scene.handle)
            alone = plugin_answers(fresh, pod, scene.nodes.at(np.array([place])))
            if alone.error:
                assert together.error == alone.error
                break
            if not together.error:
                assert together.refusals[name] == alone.refusals[name]
                assert together.scores[name] == alone.scores[name]
                assert together.given.get(name) == alone.given.get(name)
        else:
            assert not together.error


# What that takes


def own_devices(count: int, **attributes: Any) -> Iterator[Object]:
    """Nodes with four devices each, all of which have a serial number."""
    for number in range(count):
        name = f"n{number}"
        made = [device(f"d{i}", {"colour": "red", "serial": f"{name}-{i}", **attributes}) for i in range(4)]
        yield make_node(name)
        yield pool_slice(name, *made, node=name)


class Counted:
    """How often selectors are evaluated, and devices searched for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.evaluated = self.searched = 0
        matches, run = CompiledSelector.matches, Search.run

        def matching(selector: CompiledSelector, *rest: Any) -> bool:
            self.evaluated += 1
            return matches(selector, *rest)

        def running(search: Search) -> Any:
            self.searched += 1
            return run(search)

        monkeypatch.setattr(CompiledSelector, "matches", matching)
        monkeypatch.setattr(Search, "run", running)


@pytest.mark.parametrize(
    ("expression", "constraint"),
    [
        (RED, None),
        (f'{A}.colour == "blue"', None),
        (f"has({A}.colour) && '{DRIVER}' == device.driver", None),
        (RED, {"matchAttribute": f"{DRIVER}/colour"}),
        (RED, {"distinctAttribute": SERIAL}),
        (RED, {"matchAttribute": SERIAL}),
    ],
)
def test_a_claim_cannot_make_the_scheduler_evaluate_every_device_that_has_a_serial_number(
    monkeypatch: pytest.MonkeyPatch, expression: str, constraint: dict[str, Any] | None
) -> None:
    wanted = claim("c", request("r", asking(2, expression)), constraints=[constraint] if constraint else ())
    scene = Scene(device_class(), *own_devices(30), wanted)
    counted = Counted(monkeypatch)
    reasons_by_node = scene.filter_nodes(pod_claiming("p", "c"))
    assert len(set(reasons_by_node.values())) == 1
    assert (counted.evaluated, counted.searched) == (2, 1)  # the class's selector and the claim's
    scene.filter_nodes(pod_claiming("p", "c"))
    assert (counted.evaluated, counted.searched) == (2, 1)


def test_a_serial_number_that_is_compared_tells_apart_those_it_is_compared_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wanted = claim("c", request("r", asking(1, f'{A}.serial == "n3-2"')))
    scene = Scene(device_class(), *own_devices(30), wanted)
    counted = Counted(monkeypatch)
    assert scene.feasible(pod_claiming("p", "c")) == ["n3"]
    assert (
        counted.evaluated == 1 + 3
    )  # the class's; the serial number itself, and others of four and five letters
    assert counted.searched == 3  # n3, and nodes with serial numbers of each length


def test_claims_that_ask_for_the_same_share_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    claims = [claim(f"c{n}", request("r", asking(2, f'{A}.serial.startsWith("n1")'))) for n in range(3)]
    scene = Scene(device_class(), *own_devices(12), *claims, claim("d", request("r", asking(2, RED))))
    counted = Counted(monkeypatch)
    for each in claims:
        assert scene.feasible(pod_claiming("p", each.name)) == ["n1", "n10", "n11"]
    assert counted.searched == 12
    assert scene.bind(pod_claiming("p", "c0"), "n10") is None
    assert scene.feasible(pod_claiming("p", "c1")) == ["n1", "n10", "n11"]
    assert counted.searched == 13  # n10, where two devices are taken now
    assert len(scene.feasible(pod_claiming("p", "d"))) == 12


def test_a_class_that_changes_is_searched_for_again() -> None:
    scene = Scene(device_class(), *own_devices(2), claim("c", request("r", asking())))
    assert scene.feasible(pod_claiming("p", "c")) == ["n0", "n1"]
    scene.cache.put(device_class("gpu", f'{A}.serial == "n1-0"'))
    assert scene.feasible(pod_claiming("p", "c")) == ["n1"]
    scene.cache.put(device_class())
    assert scene.feasible(pod_claiming("p", "c")) == ["n0", "n1"]


def test_results_are_forgotten_before_there_are_too_many() -> None:
    serial = f"{A}.serial.startsWith"
    claims = [claim(f"c{n}", request("r", asking(1, f'{serial}("{n}")'))) for n in range(2 * MAX_CONTENTS)]
    scene = Scene(device_class(), *own_devices(3), *claims)
    results = scene.plugin._results
    for each in claims:
        scene.filter_nodes(pod_claiming("p", each.name))
        assert len(results) <= 9 * MAX_CONTENTS  # by device state, by what was read of it, and candidates
    results._limit = 10
    for each in claims[:4]:
        scene.filter_nodes(pod_claiming("p", each.name))
        assert len(results) <= 10 + 9  # those of the last claim are counted when the next one comes


def test_devices_of_nodes_in_different_situations_are_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = [claim(f"h{n}", status=allocated(f"n{n}/d{n % 3}", node=f"n{n}")) for n in range(9)]
    scene = Scene(device_class(), *own_devices(12), *taken, claim("c", request("r", asking(3, RED))))
    counted = Counted(monkeypatch)
    assert len(scene.feasible(pod_claiming("p", "c"))) == 12
    assert (counted.evaluated, counted.searched) == (2, 4)


def test_what_is_read_is_distinguished_by_type() -> None:
    kinds, reads = DeviceKinds(), frozenset([(SERIAL, None)])
    made = [DeviceAttribute(int_value=1), DeviceAttribute(bool_value=True), DeviceAttribute(string_value="1")]
    looks = {kind_with(kinds, each).projection_for(reads) for each in (*made, DeviceAttribute(int_value=2))}
    assert len(looks) == 4
    assert kind_with(kinds, DeviceAttribute(int_value=1), "2").projection_for(reads) in looks
    assert kind_with(kinds, DeviceAttribute(version_value="1.0.0")).projection_for(frozenset()) not in looks


def kind_with(kinds: DeviceKinds, attribute: DeviceAttribute, other: str = "") -> DeviceKind:
    slice_ = pool_slice("p", device("d", {"other": other or "1"}))
    device_ = slice_.spec.devices[0]
    device_.attributes["serial"] = attribute
    return kinds.of(DRIVER, device_)


def test_shared_verdicts_go_with_the_last_kind_that_they_are_about() -> None:
    kinds, reads = DeviceKinds(), frozenset([(f"{DRIVER}/colour", None)])
    one, other = (kind_with(kinds, DeviceAttribute(int_value=number)) for number in (1, 2))
    projection = one.projection_for(reads)
    one.store_result("x", projection, SelectorResult(True, reads))
    assert projection == other.projection_for(reads)
    assert other.shared_result("x", projection) is one.selector_result("x")
    del one
    assert len(kinds._selector_results._shared) == 1
    del other
    assert not kinds._selector_results._shared


def test_few_looks_at_a_pool_are_kept() -> None:
    claims = [claim(f"c{n}", request("r", asking(1, f"!has({A}.a{n})"))) for n in range(3 * MAX_PROJECTIONS)]
    scene = Scene(device_class(), *own_devices(3), *claims)
    for each in claims:
        assert len(scene.feasible(pod_claiming("p", each.name))) == 3
    inventory: Inventory = scene.plugin._device_states.inventory
    outlines = [inventory.seen_from(node).views[0].outline for node in scene.nodes.snapshot.nodes]
    assert len(outlines) == 3
    for outline in outlines:
        assert outline is not None
        assert 0 < len(outline._filled) <= MAX_PROJECTIONS
