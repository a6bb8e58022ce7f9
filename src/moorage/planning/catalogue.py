"""A catalogue: the shapes of nodes that can be had, with prices, zones and limits."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from moorage.api.base import Condition, ObjectMeta, ResourceList
from moorage.api.decode import InputError, convert
from moorage.api.files import load_documents, read_text
from moorage.api.labels import HOSTNAME, ZONE
from moorage.api.node import Node, NodeSpec, NodeStatus, Taint
from moorage.api.quantity import parse_quantity
from moorage.simulation.shapes import INSTANCE_TYPE, PRICE

_READY: Final = Condition(type="Ready", status="True")
_PODS: Final = parse_quantity("110")
"""The number of pods of a node that does not say it, as of a kubelet."""
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")


class Shape(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A kind of node that can be had."""

    name: str
    price_per_hour: float
    resources: ResourceList
    """What pods can request of it: its allocatable resources, without what DaemonSets take."""
    zones: tuple[str, ...] = ("",)
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()
    max: int | None = None
    """How many can be had, in all zones together; None: as many as one likes."""


class _Catalogue(msgspec.Struct, forbid_unknown_fields=True):
    shapes: tuple[Shape, ...]


class Offer(NamedTuple):
    """A shape in a zone."""

    shape: Shape
    zone: str
    """Empty: in no zone."""

    @property
    def prefix(self) -> str:
        """How the names of its nodes begin."""
        return f"{self.shape.name}-{self.zone}" if self.zone else self.shape.name

    def node(self, number: int) -> Node:
        """One of its nodes."""
        shape, name = self.shape, f"{self.prefix}-{number}"
        zone = {ZONE: self.zone} if self.zone else {}
        amounts = {"pods": _PODS, **shape.resources}
        return Node(
            api_version="v1",
            kind="Node",
            metadata=ObjectMeta(
                name=name,
                labels={INSTANCE_TYPE: shape.name, **zone, **shape.labels, HOSTNAME: name},
                annotations={PRICE: f"{shape.price_per_hour:g}"},
            ),
            spec=NodeSpec(taints=shape.taints),
            status=NodeStatus(capacity=amounts, allocatable=amounts, conditions=(_READY,)),
        )


def read_catalogue(path: Path) -> tuple[Shape, ...]:
    """The shapes of a catalogue file; InputError if it cannot be used."""
    where = str(path)
    documents = load_documents(read_text(path), where)
    if len(documents) != 1:
        raise InputError(where, "expected one document with shapes")
    shapes = convert(documents[0], _Catalogue, where).shapes
    check_shapes(shapes, where)
    return shapes


def check_shapes(shapes: Sequence[Shape], where: str = "catalogue") -> None:
    """InputError if shapes are impossible."""
    if not shapes:
        raise InputError(where, "shapes: there are none")
    seen: set[str] = set()
    for number, shape in enumerate(shapes):
        if problem := _problem(shape, seen):
            raise InputError(f"{where}: shapes[{number}]", problem)
        seen.add(shape.name)


def _problem(shape: Shape, seen: set[str]) -> str:
    """What is wrong with a shape; empty if nothing is."""
    if not shape.name or shape.name in seen:
        return f"name: {shape.name!r} is given twice" if shape.name else "name: empty"
    if not 0 < shape.price_per_hour < float("inf"):
        return f"pricePerHour: {shape.price_per_hour:g}: expected a number above 0"
    for needed in ("cpu", "memory"):
        if not shape.resources.get(needed):
            return f"resources.{needed}: missing, or 0"
    if not shape.zones or len(set(shape.zones)) < len(shape.zones):
        return "zones: expected different names of zones"
    if shape.max is not None and shape.max < 0:
        return f"max: {shape.max}: expected a number of at least 0"
    wrong = [taint.effect for taint in shape.taints if taint.effect not in _EFFECTS]
    return f"taints: effect {wrong[0]!r}: expected {', '.join(_EFFECTS)}" if wrong else ""


def new_nodes(offer: Offer, taken: Collection[str]) -> Iterator[Node]:
    """Nodes of a shape in a zone, without end, with names that no other node has."""
    for number in count():
        node = offer.node(number)
        if node.name not in taken:
            yield node


def offers_of(shapes: Sequence[Shape]) -> list[Offer]:
    """All shapes in all their zones."""
    return [Offer(shape, zone) for shape in shapes for zone in shape.zones]
