"""Which devices claims get: first fit, stepping back, constraints, counters, capacity, taints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from moorage.api.base import Object
from moorage.api.devices import ResourceClaim
from moorage.framework.interface.status import PluginError
from tests.builders import expression, make_node
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

ATTR = f'device.attributes["{DRIVER}"]'
NONE = "cannot allocate all claims"


def scene(objects: Sequence[Object], claims: list[ResourceClaim]) -> Scene:
    return Scene(make_node("n1"), device_class(), *objects, *claims)


def outcome(objects: Sequence[Object], claims: list[ResourceClaim]) -> Any:
    """The devices of each claim that had none, or what is said of the node."""
    made = scene(objects, claims)
    wanting = [each.name for each in claims if each.status.allocation is None]
    pod = pod_claiming("pod", *wanting)
    answers = made.filter_nodes(pod)["n1"]
    if answers:
        return answers
    assert made.bind(pod) is None
    devices = [made.devices(name) for name in wanting]
    return devices[0] if len(devices) == 1 else devices


def shared(name: str, amount: str = "100", **fields: Any) -> dict[str, Any]:
    """A device that many can share."""
    return device(name, capacity={"bandwidth": amount}, allowMultipleAllocations=True, **fields)


def bandwidth(amount: str) -> dict[str, Any]:
    return {"capacity": {"requests": {"bandwidth": amount}}}


TWO = [pool_slice("p", "a", "b")]
COLOURS = [
    pool_slice(
        "p",
        device("r1", {"colour": "red", "size": 1}),
        device("b1", {"colour": "blue", "size": 1}),
        device("r2", {"colour": "red", "size": 2}),
        device("b2", {"colour": "blue", "size": 3}),
        device("none"),
    )
]
CARD = [
    pool_slice("s1", pool="p", count=2, counters={"memory": "8", "engines": "4"}),
    pool_slice(
        "s2",
        device("whole", {"size": "whole"}, consumes={"memory": "8", "engines": "4"}),
        device("half0", {"size": "half"}, consumes={"memory": "4", "engines": "2"}),
        device("half1", {"size": "half"}, consumes={"memory": "4", "engines": "2"}),
        pool="p",
        count=2,
    ),
]
TAINTED = [
    pool_slice(
        "p",
        device("broken", taints=[{"key": "broken", "value": "yes", "effect": "NoSchedule"}]),
        device("odd", taints=[{"key": "odd", "effect": "NoExecute"}]),
        device("noted", taints=[{"key": "broken", "effect": "None"}]),
    )
]
SIZE = {"matchAttribute": f"{DRIVER}/size"}
COLOUR = {"matchAttribute": f"{DRIVER}/colour"}
DISTINCT = {"distinctAttribute": f"{DRIVER}/colour"}


CASES: dict[str, tuple[Sequence[Object], list[ResourceClaim], Any]] = {
    "the first device": (TWO, [claim("c", request("r", asking()))], ["p/a"]),
    "several": (TWO, [claim("c", request("r", asking(2)))], ["p/a", "p/b"]),
    "too many": (TWO, [claim("c", request("r", asking(3)))], NONE),
    "all": (TWO, [claim("c", request("r", asking(None)))], ["p/a", "p/b"]),
    "all of none": ([], [claim("c", request("r", asking(None)))], NONE),
    "all, but one is in use": (
        TWO,
        [claim("c", request("r", asking(None))), claim("d", status=allocated("p/b"))],
        NONE,
    ),
    "what others have is left alone": (
        TWO,
        [claim("c", request("r", asking())), claim("d", status=allocated("p/a"))],
        ["p/b"],
    ),
    "two claims of a pod": (
        TWO,
        [claim("c", request("r", asking())), claim("d", request("r", asking()))],
        [["p/a"], ["p/b"]],
    ),
    "a selector": (
        COLOURS,
        [claim("c", request("r", asking(1, f'"size" in {ATTR} && {ATTR}.size > 1')))],
        ["p/r2"],
    ),
    "stepping back within a claim": (
        [pool_slice("p", device("red", {"x": "red"}), device("any", {"x": "-"}))],
        [claim("c", request("r", asking()), request("s", asking(1, f'{ATTR}.x == "red"')))],
        ["p/any", "p/red"],
    ),
    "stepping back over claims": (
        [pool_slice("p", device("red", {"x": "red"}), device("any", {"x": "-"}))],
        [claim("c", request("r", asking())), claim("d", request("s", asking(1, f'{ATTR}.x == "red"')))],
        [["p/any"], ["p/red"]],
    ),
    "stepping back among many": (
        [pool_slice("p", "a", "b", "c", device("d", {"x": 1}))],
        [claim("c", request("r", asking(3)), request("s", asking(1, f'"x" in {ATTR}')))],
        ["p/a", "p/b", "p/c", "p/d"],
    ),
    # Constraints
    "in common": (
        COLOURS,
        [
            claim(
                "c",
                request("r", asking(1, f'"size" in {ATTR} && {ATTR}.size == 3')),
                request("s", asking()),
                constraints=[COLOUR],
            )
        ],
        ["p/b2", "p/b1"],
    ),
    "in common, stepping back": (
        COLOURS,
        [claim("c", request("r", asking(2)), constraints=[COLOUR])],
        ["p/r1", "p/r2"],
    ),
    "two constraints": (
        COLOURS,
        [claim("c", request("r", asking(2)), constraints=[COLOUR, SIZE])],
        NONE,
    ),
    "a constraint on some requests": (
        COLOURS,
        [
            claim(
                "c",
                request("r", asking()),
                request("s", asking()),
                request("t", asking()),
                constraints=[{**COLOUR, "requests": ["r", "t"]}],
            )
        ],
        ["p/r1", "p/b1", "p/r2"],
    ),
    "an attribute nobody has": (
        TWO,
        [claim("c", request("r", asking()), constraints=[COLOUR])],
        NONE,
    ),
    "distinct": (
        COLOURS,
        [claim("c", request("r", asking(2)), constraints=[DISTINCT])],
        ["p/r1", "p/b1"],
    ),
    "distinct over requests": (
        COLOURS,
        [claim("c", request("r", asking()), request("s", asking()), constraints=[DISTINCT])],
        ["p/r1", "p/b1"],
    ),
    "not distinct enough": (
        COLOURS,
        [
            claim(
                "c",
                request("r", asking()),
                request("s", asking()),
                request("t", asking()),
                constraints=[DISTINCT],
            )
        ],
        NONE,
    ),
    "an alternative's constraint": (
        COLOURS,
        [
            claim(
                "c",
                request("r", asking(1, f'"size" in {ATTR} && {ATTR}.size == 2')),
                request("s", asking(9), asking()),
                constraints=[{**COLOUR, "requests": ["r", "s/a1"]}],
            )
        ],
        ["p/r2", "p/r1"],
    ),
    # Alternatives
    "the first alternative": (TWO, [claim("c", request("r", asking(2), asking(1)))], ["p/a", "p/b"]),
    "the second alternative": (TWO, [claim("c", request("r", asking(3), asking(1)))], ["p/a"]),
    "no alternative": (TWO, [claim("c", request("r", asking(3), asking(4)))], NONE),
    "stepping back to an alternative": (
        TWO,
        [claim("c", request("r", asking(2), asking(1)), request("s", asking()))],
        ["p/a", "p/b"],
    ),
    "an alternative that is too large for a claim": (
        [pool_slice("p", *(f"d{i}" for i in range(40)))],
        [claim("c", request("r", asking(33), asking(1)))],
        ["p/d0"],
    ),
    "alternatives that are too large together": (
        [pool_slice("p", *(f"d{i}" for i in range(60)))],
        [claim("c", request("r", asking(20), asking(1)), request("s", asking(20), asking(31)))],
        [f"p/d{i}" for i in range(21)],
    ),
    # Counters
    "a partition": (CARD, [claim("c", request("r", asking(1, f'{ATTR}.size == "half"')))], ["p/half0"]),
    "two partitions": (CARD, [claim("c", request("r", asking(2)))], ["p/half0", "p/half1"]),
    "a partition is in use": (
        CARD,
        [claim("c", request("r", asking(1))), claim("d", status=allocated("p/half1"))],
        ["p/half0"],
    ),
    "the whole is in use": (
        CARD,
        [claim("c", request("r", asking(1))), claim("d", status=allocated("p/whole"))],
        NONE,
    ),
    "more is in use than there is": (
        CARD,
        [claim("c", request("r", asking(1))), claim("d", status=allocated("p/whole", "p/half1"))],
        NONE,
    ),
    "a partition in use that administrators look at": (
        CARD,
        [claim("c", request("r", asking(1))), claim("d", status=allocated("p/whole", adminAccess=True))],
        ["p/whole"],
    ),
    # Taints
    "a tainted device": (TAINTED, [claim("c", request("r", asking()))], ["p/noted"]),
    "tolerated": (
        TAINTED,
        [
            claim(
                "c",
                request("r", asking(2, tolerations=[{"key": "broken", "operator": "Equal", "value": "yes"}])),
            )
        ],
        ["p/broken", "p/noted"],
    ),
    "everything tolerated": (
        TAINTED,
        [claim("c", request("r", asking(None, tolerations=[{"operator": "Exists"}])))],
        ["p/broken", "p/odd", "p/noted"],
    ),
    "another effect tolerated": (
        TAINTED,
        [claim("c", request("r", asking(3, tolerations=[{"operator": "Exists", "effect": "NoExecute"}])))],
        NONE,
    ),
    # Administrators
    "an administrator": (
        TWO,
        [claim("c", request("r", asking(adminAccess=True))), claim("d", status=allocated("p/a"))],
        ["p/a"],
    ),
    "an administrator wants two": (
        TWO,
        [claim("c", request("r", asking(2, adminAccess=True))), claim("d", status=allocated("p/a", "p/b"))],
        ["p/a", "p/b"],
    ),
    "an administrator takes a device from the pod's other claims": (
        [pool_slice("p", "a")],
        [claim("c", request("r", asking(adminAccess=True))), claim("d", request("r", asking()))],
        NONE,
    ),
    "what administrators look at is free": (
        TWO,
        [claim("c", request("r", asking())), claim("d", status=allocated("p/a", adminAccess=True))],
        ["p/a"],
    ),
    # Capacity
    "a share": (
        [pool_slice("p", shared("s"))],
        [claim("c", request("r", asking(**bandwidth("60"))))],
        ["p/s"],
    ),
    "two shares": (
        [pool_slice("p", shared("s"), shared("t"))],
        [claim("c", request("r", asking(**bandwidth("60"))), request("q", asking(**bandwidth("40"))))],
        ["p/s", "p/s"],
    ),
    "two shares that are too much": (
        [pool_slice("p", shared("s"), shared("t"))],
        [claim("c", request("r", asking(**bandwidth("60"))), request("q", asking(**bandwidth("50"))))],
        ["p/s", "p/t"],
    ),
    "a share of what is left": (
        [pool_slice("p", shared("s"), shared("t"))],
        [
            claim("c", request("r", asking(**bandwidth("60")))),
            claim("d", status=allocated("p/s", shareID="x", consumedCapacity={"bandwidth": "50"})),
        ],
        ["p/t"],
    ),
    "a share without capacity": (
        [pool_slice("p", device("s", allowMultipleAllocations=True))],
        [claim("c", request("r", asking())), claim("d", request("r", asking()))],
        [["p/s"], ["p/s"]],
    ),
    "a capacity that is not there": (
        TWO,
        [claim("c", request("r", asking(**bandwidth("1"))))],
        NONE,
    ),
    "a device of one's own with enough capacity": (
        [
            pool_slice(
                "p", device("s", capacity={"bandwidth": "10"}), device("l", capacity={"bandwidth": "90"})
            )
        ],
        [claim("c", request("r", asking(**bandwidth("60"))))],
        ["p/l"],
    ),
    "all shared devices that have enough": (
        [pool_slice("p", shared("s", "10"), shared("l"))],
        [claim("c", request("r", asking(None, **bandwidth("60"))))],
        ["p/l"],
    ),
    "shares of a partition count once": (
        [
            pool_slice("s1", pool="p", count=2, counters={"memory": "1"}),
            pool_slice("s2", shared("s", consumes={"memory": "1"}), pool="p", count=2),
        ],
        [claim("c", request("r", asking(**bandwidth("60"))), request("q", asking(**bandwidth("40"))))],
        ["p/s", "p/s"],
    ),
    # Pools
    "an incomplete pool": (
        [pool_slice("p", "a", count=2), pool_slice("q", "b")],
        [claim("c", request("r", asking()))],
        ["q/b"],
    ),
    "nothing but an invalid pool": (
        [pool_slice("p", "a", "a")],
        [claim("c", request("r", asking()))],
        "invalid resource pools were encountered",
    ),
    "beside an invalid pool": (
        [pool_slice("p", "a", "a"), pool_slice("q", "b")],
        [claim("c", request("r", asking()))],
        ["q/b"],
    ),
}


@pytest.mark.parametrize(("objects", "claims", "expected"), CASES.values(), ids=CASES)
def test_claims_get(objects: Sequence[Object], claims: list[ResourceClaim], expected: Any) -> None:
    assert outcome(objects, claims) == expected


ALL_OF = f"claim default/c, request r: asks for all devices, but resource pool {DRIVER}/p is currently"

ERRORS: dict[str, tuple[Sequence[Object], ResourceClaim, str]] = {
    "a selector fails": (
        TWO,
        claim("c", request("r", asking(1, f"{ATTR}.nothing"))),
        "claim default/c: selector #0: CEL runtime error: no such key: nothing",
    ),
    "a selector cannot be compiled": (
        TWO,
        claim("c", request("r", asking(1, "device.nothing"))),
        "claim default/c: selector #0: CEL compile error: compilation failed: ",
    ),
    "a class's selector fails": (
        [*TWO, device_class("odd", f"{ATTR}.nothing")],
        claim("c", request("r", asking(class_name="odd"))),
        "class odd: selector #0: CEL runtime error: no such key: nothing",
    ),
    "all of a pool that is being updated": (
        [pool_slice("p", "a", count=2)],
        claim("c", request("r", asking(None))),
        f"{ALL_OF} being updated",
    ),
    "all of an invalid pool": (
        [pool_slice("p", "a", "a")],
        claim("c", request("r", asking(None))),
        f"{ALL_OF} invalid",
    ),
    "all of what differs": (
        COLOURS,
        claim("c", request("r", asking(None)), constraints=[COLOUR]),
        f"claim default/c, request r: cannot add device {DRIVER}/p/b1 because a claim constraint would "
        "not be satisfied",
    ),
    "more than a claim can hold": (
        TWO,
        claim("c", request("r", asking(20)), request("s", asking(13))),
        "claim default/c: number of requested devices 33 exceeds the claim limit of 32",
    ),
    "an unknown mode": (
        TWO,
        claim("c", request("r", {"deviceClassName": "gpu", "allocationMode": "Some"})),
        "claim default/c, request r: unsupported count mode Some",
    ),
    "an unknown selector": (
        TWO,
        claim("c", request("r", {"deviceClassName": "gpu", "selectors": [{}]})),
        "claim default/c, request r, selector #0: CEL expression empty (unsupported selector type?)",
    ),
    "an unknown constraint": (
        TWO,
        claim("c", request("r", asking()), constraints=[{}]),
        "claim default/c, constraint #0: empty constraint (unsupported constraint type?)",
    ),
}


@pytest.mark.parametrize(("objects", "made", "reason"), ERRORS.values(), ids=ERRORS)
def test_the_attempt_fails(objects: Sequence[Object], made: ResourceClaim, reason: str) -> None:
    with pytest.raises(PluginError) as caught:
        scene(objects, [made]).filter_nodes(pod_claiming("pod", "c"))
    assert f'running "DynamicResources" filter plugin: {reason}' in str(caught.value)


def test_a_claim_that_is_too_large_one_way_is_tried_another_way() -> None:
    """With s0 for a, the first choice of b fails and the second makes the claim too large."""
    special = [device("s0", {"t": "ab"}), device("s1", {"t": "a"})]
    plain = [device(f"x{number:02}", {"t": "x"}) for number in range(40)]
    wanted = claim(
        "c",
        request("a", asking(1, f'{ATTR}.t in ["a", "ab"]')),
        request("b", asking(1, f'{ATTR}.t == "ab"'), asking(31, f'{ATTR}.t == "x"')),
        request("c", asking(5, f'{ATTR}.t == "x"')),
    )
    taken = outcome([pool_slice("p", *special, *plain)], [wanted])
    assert taken[:2] == ["p/s1", "p/s0"]
    assert len(taken) == 7


def test_all_devices_are_looked_at_pool_by_pool() -> None:
    slices = [pool_slice("p", device("a")), pool_slice("q", "b", count=2)]
    wanted = claim("c", request("r", asking(None, f"{ATTR}.x == 1")))
    with pytest.raises(PluginError, match="no such key: x"):
        scene(slices, [wanted]).filter_nodes(pod_claiming("pod", "c"))


def test_devices_are_only_looked_at_until_one_fits() -> None:
    slices = [pool_slice("p", device("a", {"x": 1}), device("b"))]
    wanted = claim("c", request("r", asking(1, f"{ATTR}.x == 1")))
    assert outcome(slices, [wanted]) == ["p/a"]


def test_distinct_devices_are_compared_with_the_last_one_of_a_request_only() -> None:
    """As kube-scheduler does it."""
    assert outcome(COLOURS, [claim("c", request("r", asking(3)), constraints=[DISTINCT])]) == [
        "p/r1",
        "p/b1",
        "p/r2",
    ]


# Where allocations can be used

ZONE_A = {"matchExpressions": [expression("zone", "In", "a")]}

HOMES: dict[str, tuple[Object, Any]] = {
    "a node's own device": (
        pool_slice("p", "a"),
        [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}],
    ),
    "a device of a zone": (
        pool_slice("p", "a", node=None, nodeSelector={"nodeSelectorTerms": [ZONE_A]}),
        [ZONE_A],
    ),
    "a device for all": (pool_slice("p", "a", node=None, allNodes=True), None),
    "a device that is bound to a node": (
        pool_slice("p", device("a", bindsToNode=True), node=None, allNodes=True),
        [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}],
    ),
    "a device that says where itself": (
        pool_slice(
            "p",
            device("a", nodeSelector={"nodeSelectorTerms": [ZONE_A]}),
            node=None,
            perDeviceNodeSelection=True,
        ),
        [ZONE_A],
    ),
}


@pytest.mark.parametrize(("published", "terms"), HOMES.values(), ids=HOMES)
def test_an_allocation_says_where_it_can_be_used(published: Object, terms: Any) -> None:
    made = Scene(
        make_node("n1", labels={"zone": "a"}), device_class(), published, claim("c", request("r", asking()))
    )
    made.bind(pod_claiming("pod", "c"))
    given = made.claim("c").status.allocation
    assert given is not None
    if terms is None:
        assert given.node_selector is None
        return
    assert given.node_selector is not None
    (term,) = given.node_selector.node_selector_terms
    (expected,) = terms
    for field, requirements in (
        ("matchFields", term.match_fields),
        ("matchExpressions", term.match_expressions),
    ):
        shown = [{"key": r.key, "operator": r.operator, "values": list(r.values)} for r in requirements]
        assert shown == expected.get(field, [])


def test_an_allocation_says_what_it_takes_of_a_shared_device() -> None:
    wanted = claim("c", request("r", asking(**bandwidth("60"))), request("q", asking(**bandwidth("20"))))
    made = scene([pool_slice("p", shared("s"))], [wanted])
    made.bind(pod_claiming("pod", "c"))
    given = made.claim("c").status.allocation
    assert given is not None
    results = given.devices.results
    assert [result.consumed_capacity["bandwidth"].value for result in results] == [60, 20]
    assert len({result.share_id for result in results}) == 2


def test_settings_go_with_what_was_chosen() -> None:
    settings = {"opaque": {"driver": DRIVER, "parameters": {"mode": "class"}}}
    own = {"driver": DRIVER, "parameters": {"mode": "claim"}}
    wanted = claim(
        "c",
        request("r", asking(9, class_name="a"), asking(1, class_name="b")),
        request("s", asking(1, class_name="b")),
        config=[
            {"opaque": own},
            {"requests": ["r/a0"], "opaque": own},
            {"requests": ["r/a1", "s"], "opaque": own},
        ],
    )
    made = Scene(
        make_node("n1"),
        device_class("a", config=[settings]),
        device_class("b", config=[settings]),
        *TWO,
        wanted,
    )
    made.bind(pod_claiming("pod", "c"))
    given = made.claim("c").status.allocation
    assert given is not None
    shown = [(each.source, each.requests) for each in given.devices.config]
    assert shown == [
        ("FromClass", ("r/a1", "s")),
        ("FromClaim", ()),
        ("FromClaim", ("r/a1", "s")),
        ("FromClaim", ("r/a1", "s")),
    ]
    assert given.devices.config[0].opaque is not None
    assert given.devices.config[0].opaque.parameters == {"mode": "class"}
