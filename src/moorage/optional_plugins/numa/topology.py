"""NodeResourceTopology objects, and a node's zones: amounts in whole units, milli-CPU for cpu."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from moorage import Object, Quantity, Struct, declare_kind

CPU: Final = "cpu"
NOT_LISTED: Final = -1
"""In place of an amount where a zone does not list a resource."""
UNKNOWN_DISTANCE: Final = 255
"""The distance between zones whose costs are not given, as in ACPI's tables."""
DEFAULT_MAX_ZONES: Final = 8
"""How many NUMA zones the topology manager allows unless it is configured."""
_LARGEST_MAX_ZONES: Final = 1024
_LARGEST_AMOUNT: Final = 1 << 52
"""Larger amounts are cut off: sums of them, and their products with a score, fit an int64."""

_KEPT_DISTANCES: Final = 256
"""Number of kinds of machines whose distances are shared."""

NONE, BEST_EFFORT, RESTRICTED, SINGLE = "none", "best-effort", "restricted", "single-numa-node"
POLICIES: Final = (NONE, BEST_EFFORT, RESTRICTED, SINGLE)
"""The policies of the topology manager."""
CONTAINER, POD = "container", "pod"
SCOPES: Final = (CONTAINER, POD)
"""What the topology manager aligns: each container, or the pod as a whole."""

_TOPOLOGY_POLICIES: Final = {
    "SingleNUMANodePodLevel": (SINGLE, POD),
    "SingleNUMANodeContainerLevel": (SINGLE, CONTAINER),
    "BestEffortPodLevel": (BEST_EFFORT, POD),
    "BestEffort": (BEST_EFFORT, CONTAINER),
    "BestEffortContainerLevel": (BEST_EFFORT, CONTAINER),
    "RestrictedPodLevel": (RESTRICTED, POD),
    "Restricted": (RESTRICTED, CONTAINER),
    "RestrictedContainerLevel": (RESTRICTED, CONTAINER),
}
"""Policy and scope by the values of the older field `topologyPolicies`."""


class Attribute(Struct):
    """A name and a value."""

    name: str = ""
    value: str = ""


class Cost(Struct):
    """The distance to another zone."""

    name: str = ""
    value: int = UNKNOWN_DISTANCE


class ZoneResource(Struct):
    """How much of a resource a zone has, how much pods may use, and how much is left."""

    name: str = ""
    capacity: Quantity = Quantity(0)
    allocatable: Quantity = Quantity(0)
    available: Quantity = Quantity(0)


class Zone(Struct):
    """A part of a node; only those of the type Node are NUMA zones."""

    name: str = ""
    type: str = ""
    costs: tuple[Cost, ...] = ()
    resources: tuple[ZoneResource, ...] = ()


class NodeResourceTopology(Object):
    """What an agent on the node of the same name reports of its zones."""

    topology_policies: tuple[str, ...] = ()
    attributes: tuple[Attribute, ...] = ()
    zones: tuple[Zone, ...] = ()

    def attribute(self, name: str) -> str | None:
        """The value of an attribute; None if it is not there."""
        return next((each.value for each in self.attributes if each.name == name), None)


NODE_RESOURCE_TOPOLOGY: Final = declare_kind(
    "topology.node.k8s.io/v1alpha2", "noderesourcetopologies", NodeResourceTopology, namespaced=False
)

Amounts = tuple[int, ...]
"""One amount for each zone, in the order of their numbers; NOT_LISTED where the zone does not list it."""


class ResourceZones(NamedTuple):
    """A resource in each zone."""

    capacity: Amounts
    allocatable: Amounts
    available: Amounts


class Distances:
    """The distances between zones: from each zone (first index) to each zone."""

    __slots__ = ("_of_sets", "costs")

    def __init__(self, costs: Sequence[Amounts]) -> None:
        self.costs = costs
        self._of_sets: dict[int, tuple[list[int], int]] = {}

    def of_sets(self, size: int, sets: Sequence[Sequence[int]]) -> tuple[list[int], int]:
        """The sum of the distances within each set of zones of a size, and the least of them."""
        found = self._of_sets.get(size)
        if found is None:
            costs = self.costs
            sums = [sum([costs[one][other] for one in each for other in each]) for each in sets]
            found = self._of_sets[size] = (sums, min(sums))
        return found


class NodeZones(NamedTuple):
    """The zones of a node, in the order of their numbers, and the configuration of its topology manager.

    max_zones: how many zones the topology manager allows.
    """

    policy: str
    scope: str
    max_zones: int
    zone_count: int
    resources: Mapping[str, ResourceZones]
    distances: Distances

    @property
    def refuses(self) -> bool:
        """Whether the kubelet rejects pods that it cannot align."""
        return self.zone_count > 0 and self.policy in (SINGLE, RESTRICTED)


def zones_of(topology: NodeResourceTopology) -> NodeZones:
    """The zones of a node; zones without a number, and those that are no NUMA zones, do not count."""
    policy, scope = _policy_and_scope(topology)
    numbered = {_number(zone.name): zone for zone in topology.zones if zone.type == "Node"}
    numbers = sorted(number for number in numbered if number is not None)
    zones = [numbered[number] for number in numbers]
    names = dict.fromkeys(resource.name for zone in zones for resource in zone.resources)
    listed = [{resource.name: resource for resource in zone.resources} for zone in zones]
    return NodeZones(
        policy,
        scope,
        _max_zones(topology.attribute("topologyManagerMaxNUMANodes")),
        len(zones),
        {name: _resource_zones(name, [each.get(name) for each in listed]) for name in names},
        _distances(tuple([_costs(zone, numbers) for zone in zones])),
    )


def _policy_and_scope(topology: NodeResourceTopology) -> tuple[str, str]:
    """Those of the attributes; without them, those of the older field. Unknown values do not count."""
    policy, scope = NONE, CONTAINER
    if topology.topology_policies:
        policy, scope = _TOPOLOGY_POLICIES.get(topology.topology_policies[0], (policy, scope))
    given_policy = topology.attribute("topologyManagerPolicy")
    given_scope = topology.attribute("topologyManagerScope")
    return (
        given_policy if given_policy in POLICIES else policy,
        given_scope if given_scope in SCOPES else scope,
    )


def _max_zones(text: str | None) -> int:
    number = int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 10 else 0
    return min(number, _LARGEST_MAX_ZONES) if number > 1 else DEFAULT_MAX_ZONES


def _number(name: str) -> int | None:
    """The number in a zone's name, such as node-0; None if there is none."""
    digits = name.removeprefix("node-")
    if digits == name or not (digits.isascii() and digits.isdigit()) or len(digits) > 4:
        return None
    return int(digits)


def _resource_zones(name: str, zones: Sequence[ZoneResource | None]) -> ResourceZones:
    unit = 1_000_000 if name == CPU else 1_000_000_000
    return ResourceZones(
        tuple([NOT_LISTED if each is None else _whole(each.capacity, unit) for each in zones]),
        tuple([NOT_LISTED if each is None else _whole(each.allocatable, unit) for each in zones]),
        tuple([NOT_LISTED if each is None else _whole(each.available, unit) for each in zones]),
    )


def _whole(amount: int, unit: int) -> int:
    """Whole units of an amount in billionths, rounded down: what is left over is of no use."""
    return min(amount // unit, _LARGEST_AMOUNT)


@lru_cache(maxsize=_KEPT_DISTANCES)
def _distances(costs: tuple[Amounts, ...]) -> Distances:
    """Distances; nodes of one kind share them."""
    return Distances(costs)


def _costs(zone: Zone, numbers: Sequence[int]) -> Amounts:
    given = {_number(cost.name): min(max(cost.value, 0), _LARGEST_MAX_ZONES) for cost in zone.costs}
    return tuple([given.get(number, UNKNOWN_DISTANCE) for number in numbers])


def used_in(zones: NodeZones) -> dict[str, int]:
    """How much of each listed resource is used in all zones together."""
    return {
        name: sum([max(of - left, 0) for of, left in zip(each.allocatable, each.available, strict=True)])
        for name, each in zones.resources.items()
    }
