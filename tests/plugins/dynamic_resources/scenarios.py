"""Stories of clusters with devices: what happens to nodes, slices, claims and those who hold devices."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from moorage.api.devices import ResourceClaim, ResourceSlice
from moorage.api.node import Node
from tests import strategies as s
from tests.builders import container, make_node, make_pod
from tests.plugins.dynamic_resources.device_objects import (
    DRIVER,
    allocated,
    asking,
    claim,
    device,
    pod_claiming,
    pool_slice,
    request,
)

GPU, RED_GPU, OTHER = "example.com/gpu", "example.com/red", "example.com/other"
COLOUR = f'device.attributes["{DRIVER}"].colour'
PLACES = ("n0", "n1", "n2", "n3")
PLACE = s.one_of(*PLACES)
FAR = ("w0", "x", "y")
"""Pools for all nodes, and for those of each zone."""
POOL = s.one_of(*PLACES, *PLACES, *FAR)
SLICE = s.one_of(*PLACES, *FAR, "more")
HOLDER = s.one_of("h0", "h1", "h2")
RED = [device(name, {"colour": "red"}) for name in ("d0", "d1")]
"""What most pools have: nodes are in the same situation until something happens to one of them."""


def in_zone(zone: str) -> dict[str, Any]:
    condition = {"key": "zone", "operator": "In", "values": [zone]}
    return {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [condition]}]}}


CLAIM_REQUESTS: dict[str, list[dict[str, Any]]] = {
    "one": [request("r", asking())],
    "two-alike": [request("r", asking(2, f'{COLOUR} == "red"'))],
    "preferably-two": [request("r", asking(2), asking(1))],
    "all": [request("r", asking(None))],
    "of-a-capacity": [request("r", asking(capacity={"requests": {"b": "2"}}))],
}

PODS = [
    *(pod_claiming(f"pod-{name}", f"claim-{name}") for name in CLAIM_REQUESTS),
    pod_claiming("several", "claim-one", "shared"),
    make_pod("extended", containers=[container({GPU: "1"})]),
    make_pod("mixed", containers=[container({GPU: "2", OTHER: "1"})]),
]
CLAIMS = [claim(f"claim-{name}", *requests) for name, requests in CLAIM_REQUESTS.items()]


# What happens

Event = tuple[str, Any]


@st.composite
def devices(draw: s.Draw[Any]) -> list[dict[str, Any]]:
    """Devices; those without a colour make selectors fail."""
    if draw(s.MOSTLY):
        return RED
    made = []
    for number in range(draw(st.integers(1, 3))):
        colour = draw(s.one_of("red", "red", "blue", ""))
        fields: dict[str, Any] = {}
        if draw(st.integers(0, 3)) == 0:
            fields = {"allowMultipleAllocations": True, "capacity": {"b": "4"}}
        if draw(st.integers(0, 5)) == 0:
            fields["consumes"] = {"m": "1"}
        made.append(device(f"d{number}", {"colour": colour} if colour else None, **fields))
    return made


def usual_slice(name: str, made: list[dict[str, Any]]) -> ResourceSlice:
    """A node's own pool, or one for many."""
    if name in PLACES:
        return pool_slice(name, *made, node=name)
    selection = {"allNodes": True} if name == "w0" else in_zone(name)
    return pool_slice(name, *made, node=None, **selection)


@st.composite
def slices(draw: s.Draw[Any]) -> ResourceSlice:
    """As a rule the one slice of a node's own pool, or of one for many; else whatever comes of it."""
    made, name = draw(devices()), draw(SLICE)
    if draw(s.MOSTLY) and name != "more":
        return usual_slice(name, made)
    count, generation = draw(s.one_of(1, 1, 2)), draw(s.one_of(1, 1, 2))
    common: dict[str, Any] = {"pool": draw(POOL), "count": count, "generation": generation}
    match draw(s.one_of("narrow", "all", "zone", "each", "counters")):
        case "narrow":
            return pool_slice(name, *made, node=draw(PLACE), **common)
        case "all":
            return pool_slice(name, *made, node=None, allNodes=True, **common)
        case "zone":
            return pool_slice(name, *made, node=None, **in_zone(draw(s.one_of("x", "y"))), **common)
        case "each":
            placed = [{**each, "nodeName": draw(PLACE)} for each in made]
            return pool_slice(name, *placed, node=None, perDeviceNodeSelection=True, **common)
    return pool_slice(name, node=draw(PLACE), counters={"m": "2"}, **common)


@st.composite
def nodes(draw: s.Draw[Any]) -> Node:
    """A node in one of two zones, which may have extended resources itself."""
    room = {"cpu": "4", "pods": "10"}
    room |= {name: draw(s.one_of("0", "3")) for name in (GPU, OTHER) if draw(st.booleans())}
    return make_node(draw(PLACE), labels={"zone": draw(s.one_of("x", "y"))}, allocatable=room)


@st.composite
def holders(draw: s.Draw[Any]) -> ResourceClaim:
    """A claim of somebody else that holds a few devices."""
    held = draw(
        st.lists(st.tuples(POOL, s.one_of("d0", "d0", "d1", "d2")), min_size=1, max_size=2, unique=True)
    )
    fields: dict[str, Any] = {}
    if draw(st.integers(0, 3)) == 0:
        fields = {"shareID": "x", "consumedCapacity": {"b": draw(s.one_of("1", "3"))}}
    return claim(draw(HOLDER), status=allocated(*("/".join(each) for each in held), **fields))


@st.composite
def events(draw: s.Draw[Any]) -> Event:
    """One thing that happens to a cluster."""
    match draw(s.one_of("node", "slice", "slice", "slice", "held", "held", "reserve", "reserve", "goes")):
        case "node":
            return "put", draw(nodes())
        case "slice":
            return "put", draw(slices())
        case "held":
            return "put", draw(holders())
        case "reserve":
            return "reserve", (draw(st.integers(0, len(PODS) - 1)), draw(PLACE))
    kind, name = draw(
        st.one_of(
            st.tuples(st.just(Node), PLACE),
            st.tuples(st.just(ResourceSlice), SLICE),
            st.tuples(st.just(ResourceClaim), HOLDER),
        )
    )
    return "goes", (kind, name)


Scenario = list[tuple[Event, list[int]]]
"""Events, each with the pods that are asked about afterwards."""


@st.composite
def scenarios(draw: s.Draw[Any]) -> Scenario:
    """A cluster comes about, and changes."""
    begin: list[Event] = [("put", make_node(name, labels={"zone": "x"})) for name in PLACES[:3]]
    begin += [("put", usual_slice(name, RED)) for name in PLACES if draw(s.MOSTLY)]
    begin += [("put", each) for each in draw(st.lists(slices(), max_size=3))]
    asked = st.lists(st.integers(0, len(PODS) - 1), max_size=2)
    more: Scenario = draw(st.lists(st.tuples(events(), asked), min_size=1, max_size=10))
    return [*((event, []) for event in begin), *more]
