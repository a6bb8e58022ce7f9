"""Add a node of a shape that the cluster has."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from msgspec.structs import replace as replaced

from moorage.api.base import Object
from moorage.api.devices import ResourceSlice
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.quantity import format_quantity
from moorage.api.resource_requests import CPU, MEMORY
from moorage.api.storage import CSINode
from moorage.cluster.snapshot import Snapshot
from moorage.explain.help.change import Situation
from moorage.explain.help.problem import Offer, Problem

_STATIC: Final = ("NodeAffinity", "TaintToleration", "NodeDeclaredFeatures", "VolumeBinding", "VolumeZone")
"""Filters whose answer about a new node is mostly that about the node whose shape it has."""
_MAX_SHAPES: Final = 6
_CONDITIONS: Final = "node.kubernetes.io/"
"""Prefix of taints for conditions that a new node does not have."""


@dataclass(frozen=True, slots=True)
class AddNode:
    """Add a node like another: with its labels, taints, resources, devices and the pods of DaemonSets."""

    like: Node
    others: tuple[Object, ...]
    """What comes with the node: pods, CSI drivers and devices."""
    number: int = 1
    """Of several nodes like the same one, which."""

    kind: str = "node"

    def __str__(self) -> str:
        room = self.like.status.allocatable
        amounts = [f"{format_quantity(room[name])} {name}" for name in (CPU, MEMORY) if name in room]
        return f"add a node like {self.like.name} ({', '.join(amounts)})"

    @property
    def name(self) -> str:
        """The name of the new node."""
        return f"new-node-like-{self.like.name}" + (f"-{self.number}" if self.number > 1 else "")

    def apply(self, situation: Situation) -> Situation:
        """With the node, and what comes with it."""
        return situation.putting(self._node(), *map(self._moved, self.others))

    def _node(self) -> Node:
        like = self.like
        labels = {key: self.name if value == like.name else value for key, value in like.labels.items()}
        taints = tuple(each for each in like.spec.taints if not each.key.startswith(_CONDITIONS))
        return replaced(
            like,
            metadata=replaced(like.metadata, name=self.name, uid="", labels=labels),
            spec=replaced(like.spec, unschedulable=False, taints=taints),
        )

    def _moved(self, item: Object) -> Object:
        """One of the others, for the new node."""
        name = item.name.replace(self.like.name, self.name)
        if name == item.name and not isinstance(item, CSINode):
            name = f"{item.name}-{self.name}"
        meta = replaced(item.metadata, name=name, uid="")
        if isinstance(item, Pod):
            return replaced(item, metadata=meta, spec=replaced(item.spec, node_name=self.name))
        if isinstance(item, ResourceSlice):
            pool = replaced(item.spec.pool, name=f"{item.spec.pool.name}-{self.name}")
            return replaced(item, metadata=meta, spec=replaced(item.spec, node_name=self.name, pool=pool))
        return replaced(item, metadata=meta)

    def details(self) -> dict[str, Any]:
        """The node whose shape the new one has."""
        room = {name: format_quantity(amount) for name, amount in self.like.status.allocatable.items()}
        return {"like": self.like.name, "allocatable": room}


def offers(problem: Problem) -> Iterator[Offer]:
    """A node of each of the most promising shapes, with what the filters say about it."""
    bits = problem.refused_bits
    for change in _shapes(problem):
        refusing = problem.trials.refusing((change,), change.name)
        left = problem.bit(*refusing)
        # Where other filters reject the new node, changes that help nodes they reject may help it, too.
        cleared = np.where((bits & left) == left, bits & ~left, 0)
        yield Offer((change,), cleared, len(refusing))


def _shapes(problem: Problem) -> Iterator[AddNode]:
    """One node for each shape, the most promising first."""
    static = problem.refused_bits & problem.bit(*_STATIC)
    small = np.zeros(len(problem.snapshot), np.int64)
    for name, amount in problem.requests.items():
        small += problem.nodes.allocatable(name) < amount
    penalty = small + np.array([bits.bit_count() for bits in static.tolist()], np.int64)
    seen: set[Hashable] = set()
    for row in np.argsort(penalty, kind="stable").tolist():
        node = problem.snapshot.nodes[row]
        shape = _shape(node)
        if shape in seen:
            continue
        seen.add(shape)
        yield AddNode(node, tuple(coming_with(problem.snapshot, row)))
        if len(seen) >= _MAX_SHAPES:
            return


def _shape(node: Node) -> Hashable:
    labels = frozenset((key, value) for key, value in node.labels.items() if value != node.name)
    return labels, node.spec.taints, frozenset(node.status.allocatable.items())


def coming_with(snapshot: Snapshot, row: int) -> Iterator[Object]:
    """What a new node like the one of a row would come with."""
    node = snapshot.nodes[row]
    for info in snapshot.pods_of(row).infos:
        if any(owner.kind == "DaemonSet" for owner in info.pod.metadata.owner_references):
            yield info.pod
    objects = snapshot.objects
    drivers = objects.of(CSINode).get("", node.name)
    if drivers is not None:
        yield drivers
    yield from (each for each in objects.of(ResourceSlice) if each.spec.node_name == node.name)
