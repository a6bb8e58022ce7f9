"""Thousands of pools that every node sees: a pod costs what was allocated since the last one."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.plugins.dynamic_resources.structured.claim_requests import RequestSelector
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

SHARED: dict[str, Any] = {"allowMultipleAllocations": True, "capacity": {"memory": "10"}}


def wide_slice(name: str, *devices: Any, **fields: Any) -> Any:
    return pool_slice(name, *devices, node=None, allNodes=True, **fields)


def test_a_pod_evaluates_the_pools_that_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Full devices are not looked at again for every pod."""
    count = 160
    pools = [wide_slice(f"p{n:03}", device("d", **SHARED)) for n in range(count)]
    half = asking(capacity={"requests": {"memory": "5"}})
    claims = [claim(f"c{n}", request("r", half), request("s", half)) for n in range(count)]
    scene = Scene(make_node("n1"), device_class(), *pools, *claims)
    evaluated: list[str] = []
    accepts = RequestSelector.accepts

    def counted(self: RequestSelector, *given: Any) -> bool:
        evaluated.append(self.expression)
        return accepts(self, *given)

    monkeypatch.setattr(RequestSelector, "accepts", counted)
    for n in range(count):
        assert scene.bind(pod_claiming(f"pod{n}", f"c{n}")) is None
        assert scene.devices(f"c{n}") == [f"p{n:03}/d"] * 2
    assert len(evaluated) < 40 * count
    assert scene.feasible(pod_claiming("late", "c0")) == ["n1"]


def partitions(number: int) -> tuple[Any, ...]:
    """A pool with one large device that is two small ones."""
    value = {"card": number}
    whole = device("a-whole", value, consumes={"one": "1", "two": "1"})
    halves = [device(f"{name}-half", value, consumes={name: "1"}) for name in ("one", "two")]
    pool = f"p{number:04}"
    return (
        wide_slice(f"{pool}-counters", pool=pool, count=2, counters={"one": "1", "two": "1"}),
        wide_slice(f"{pool}-devices", whole, *halves, pool=pool, count=2),
    )


def test_devices_of_one_of_many_pools_are_found_within_the_limit_of_an_attempt() -> None:
    """The whole device comes first, and no other one of its card goes with it."""
    slices = [each for number in range(900) for each in partitions(number)]
    same_card = [{"matchAttribute": f"{DRIVER}/card", "requests": ["r"]}]
    claims = [claim(f"c{n}", request("r", asking(2)), constraints=same_card) for n in range(3)]
    scene = Scene(make_node("n1"), device_class(), *slices, *claims)
    for n in range(3):
        assert scene.bind(pod_claiming(f"pod{n}", f"c{n}")) is None
        assert scene.devices(f"c{n}") == [f"p{n:04}/one-half", f"p{n:04}/two-half"]


def test_what_one_request_takes_of_a_device_is_not_kept_for_others() -> None:
    """The second request finds the device full, and gets it when the first one gets another."""
    much, little = (asking(capacity={"requests": {"memory": amount}}) for amount in ("10", "1"))
    wanted = claim("c", request("much", much), request("little", little))
    scene = Scene(make_node("n1"), device_class(), pool_slice("p", device("d", **SHARED)), wanted)
    pod = pod_claiming("pod", "c")
    assert scene.feasible(pod) == []
    scene.cache.objects.put(pool_slice("a", device("d", **SHARED)))
    assert scene.bind(pod) is None
    assert scene.devices("c") == ["a/d", "p/d"]
