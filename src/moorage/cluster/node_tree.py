"""The order in which a share of the nodes is searched: one of each zone in turn, as in kube-scheduler."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, zip_longest

from moorage.api.labels import BETA_REGION, BETA_ZONE, REGION, ZONE
from moorage.api.node import Node

Zone = tuple[str, str]
"""A region and a zone within it; empty where a node has no such label."""


class NodeTree:
    """Node names by zone. Zones are in the order of their first node, nodes in the order of their arrival.

    A node that moves to another zone becomes the last one there; a zone without nodes loses its place.
    Nothing is kept before the first `start`: where all nodes are searched, no order is needed.
    """

    __slots__ = ("_nodes_in", "is_kept", "zone_of")

    def __init__(self) -> None:
        self.is_kept = False
        self.zone_of: dict[str, Zone] = {}
        """The zone of each node, by the node's name."""
        self._nodes_in: dict[Zone, dict[str, None]] = {}

    def start(self, nodes: Iterable[Node]) -> None:
        """Keep the tree from now on, beginning with these nodes."""
        self.is_kept = True
        for node in nodes:
            self.put(node)

    def put(self, node: Node) -> None:
        """A node was added or changed."""
        if not self.is_kept:
            return
        zone = zone_key(node.labels)
        if zone != self.zone_of.get(node.name):
            self.remove(node.name)
            self.zone_of[node.name] = zone
            self._nodes_in.setdefault(zone, {})[node.name] = None

    def remove(self, name: str) -> None:
        """A node was removed; unknown names are ignored."""
        zone = self.zone_of.pop(name, None)
        if zone is None:
            return
        del self._nodes_in[zone][name]
        if not self._nodes_in[zone]:
            del self._nodes_in[zone]

    def __iter__(self) -> Iterator[str]:
        turns = zip_longest(*self._nodes_in.values())
        return (name for name in chain.from_iterable(turns) if name is not None)


def zone_key(labels: Mapping[str, str]) -> Zone:
    """The region and the zone of a node; of the two labels for each, the deprecated one takes precedence."""
    region = labels[BETA_REGION] if BETA_REGION in labels else labels.get(REGION, "")
    zone = labels[BETA_ZONE] if BETA_ZONE in labels else labels.get(ZONE, "")
    return region, zone
