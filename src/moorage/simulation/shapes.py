"""Nodes of a shape: their number, resources, zones and price."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from moorage.api.base import Condition, ObjectMeta
from moorage.api.decode import InputError
from moorage.api.labels import HOSTNAME, ZONE
from moorage.api.node import Node, NodeStatus
from moorage.api.quantity import Quantity, parse_quantity

INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
PRICE: Final = "moorage.io/price-per-hour"
"""Annotation of a node: what an hour of it costs, in any currency."""
_READY: Final = Condition(type="Ready", status="True")
DEFAULT_PODS: Final = "110"
"""How many pods a node can run."""
_DEFAULT_ZONES: Final = 3


@dataclass(frozen=True, slots=True)
class NodeShape:
    """A kind of node."""

    name: str = "node"
    count: int = 0
    zones: int = _DEFAULT_ZONES
    price_per_hour: float = 0.0
    resources: dict[str, str] = field(default_factory=dict)
    """Quantities by resource; cpu and memory among them."""

    def nodes(self, first: int = 0) -> Iterator[Node]:
        """The nodes, numbered from `first` on and spread over the zones."""
        amounts = {
            name: _quantity(name, text) for name, text in {"pods": DEFAULT_PODS, **self.resources}.items()
        }
        for number in range(first, first + self.count):
            yield self._node(f"{self.name}-{number}", number, amounts)

    def _node(self, name: str, number: int, amounts: dict[str, Quantity]) -> Node:
        labels = {HOSTNAME: name, ZONE: f"zone-{number % self.zones}", INSTANCE_TYPE: self.name}
        annotations = {PRICE: f"{self.price_per_hour:g}"} if self.price_per_hour else {}
        return Node(
            api_version="v1",
            kind="Node",
            metadata=ObjectMeta(name=name, labels=labels, annotations=annotations),
            status=NodeStatus(capacity=amounts, allocatable=amounts, conditions=(_READY,)),
        )


def _quantity(name: str, text: str) -> Quantity:
    try:
        return parse_quantity(text)
    except ValueError as error:
        raise InputError(f"resource {name}", str(error)) from None


def parse_shape(text: str) -> NodeShape:
    """A shape in the form `name=large,count=10,cpu=32,memory=128Gi,nvidia.com/gpu=8,zones=3,price=2.5`."""
    given: dict[str, str] = {}
    for part in text.split(","):
        key, equals, value = (each.strip() for each in part.partition("="))
        if not equals or not key or not value:
            raise InputError(f"shape {text!r}", f"{part!r} is not KEY=VALUE")
        if key in given:
            raise InputError(f"shape {text!r}", f"{key} is given twice")
        given[key] = value
    for needed in ("cpu", "memory"):
        if needed not in given:
            raise InputError(f"shape {text!r}", f"{needed} is missing")
    shape = NodeShape(
        given.pop("name", "node"),
        _number(text, "count", given.pop("count", "1"), least=0),
        _number(text, "zones", given.pop("zones", str(_DEFAULT_ZONES)), least=1),
        _price(text, given.pop("price", "0")),
        given,
    )
    for name, amount in given.items():
        _quantity(name, amount)
    return shape


def _number(text: str, key: str, value: str, *, least: int) -> int:
    if not value.isdecimal() or int(value) < least:
        raise InputError(f"shape {text!r}", f"{key}={value}: expected a number of at least {least}")
    return int(value)


def _price(text: str, value: str) -> float:
    try:
        price = float(value)
    except ValueError:
        price = -1.0
    if not 0 <= price < float("inf"):
        raise InputError(f"shape {text!r}", f"price={value}: expected a number of at least 0")
    return price


def price_of(node: Node) -> float:
    """What an hour of a node costs, by its annotation; 0 without one."""
    text = node.metadata.annotations.get(PRICE, "0")
    try:
        return float(text)
    except ValueError:
        raise InputError(f"node {node.name}", f"annotation {PRICE}: {text!r} is not a number") from None


def nodes_of(shapes: Iterable[NodeShape]) -> list[Node]:
    """The nodes of all shapes; InputError if two have the same name."""
    nodes = [node for shape in shapes for node in shape.nodes()]
    names = [node.name for node in nodes]
    if len(set(names)) < len(names):
        raise InputError("shapes", "two shapes have the same name; give each one with name=NAME")
    return nodes
