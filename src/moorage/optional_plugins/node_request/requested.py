"""Nodes that are asked for and not ready yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from moorage import Node, Nodes, Offer
from moorage.optional_plugins.node_request.allowance import INSTANCE_TYPE

_NOT_READY = "node.kubernetes.io/not-ready"
_ZONE = "topology.kubernetes.io/zone"


@dataclass(slots=True)
class RequestedNode:
    """A node that is asked for.

    node: as it is taken to be. expected: the name that it will have; empty: not known.
    deadline: when it is given up.
    """

    offer: Offer
    node: Node
    deadline: float
    expected: str = ""


class RequestedNodes:
    """All nodes that are asked for, in order; by the names that they are taken to have.

    A node whose name was not foretold is recognised by the labels of its shape and zone.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, RequestedNode] = {}
        self._known: set[str] = set()
        """The names of nodes that are no requested one: they were there before, or are another's."""

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[RequestedNode]:
        return iter(self._nodes.values())

    def __getitem__(self, name: str) -> RequestedNode:
        return self._nodes[name]

    def __contains__(self, requested: RequestedNode) -> bool:
        return self._nodes.get(requested.node.name) is requested

    def add(self, requested: Iterable[RequestedNode], nodes: Nodes) -> None:
        """Add nodes; all that are in the cluster now are others, unless nodes were expected before."""
        if not self._nodes:
            self._known = set(nodes.snapshot.names)
        self._nodes.update((each.node.name, each) for each in requested)

    def remove(self, requested: RequestedNode) -> None:
        """Remove a node that is asked for."""
        del self._nodes[requested.node.name]

    def arrived(self, nodes: Nodes) -> list[RequestedNode]:
        """The nodes that have come and are ready."""
        came = [each for each in self if each.expected and is_ready(nodes, each.expected)]
        foretold = {each.expected for each in self}
        unnamed = [each for each in self if not each.expected]
        for name in nodes.snapshot.row_of.keys() - self._known - foretold if unnamed else ():
            found = next((each for each in unnamed if _is_of(nodes, name, each.offer)), None)
            if found is None:
                self._known.add(name)
            elif is_ready(nodes, name):
                self._known.add(name)
                unnamed.remove(found)
                came.append(found)
        self._known.update(each.expected for each in came if each.expected)
        return came

    def overdue(self, now: float) -> list[RequestedNode]:
        """The nodes whose time is over."""
        return [each for each in self if each.deadline <= now]


def is_ready(nodes: Nodes, name: str) -> bool:
    """Whether a node is there, and pods can be scheduled on it."""
    snapshot = nodes.snapshot
    row = snapshot.row_of.get(name)
    if row is None:
        return False
    spec = snapshot.nodes[row].spec
    return not spec.unschedulable and all(taint.key != _NOT_READY for taint in spec.taints)


def _is_of(nodes: Nodes, name: str, offer: Offer) -> bool:
    snapshot = nodes.snapshot
    labels = snapshot.nodes[snapshot.row_of[name]].labels
    return labels.get(INSTANCE_TYPE) == offer.shape.name and labels.get(_ZONE, "") == offer.zone
