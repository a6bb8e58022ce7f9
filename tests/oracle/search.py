"""An oracle for percentageOfNodesToScore: nodes are visited one at a time until enough are found."""

from __future__ import annotations

from collections.abc import Callable, Collection

from moorage.api.node import Node


def zone(node: Node) -> str:
    """The zone that kube-scheduler counts a node to."""
    labels = node.labels
    old, new = "failure-domain.beta.kubernetes.io/", "topology.kubernetes.io/"
    region = labels.get(old + "region", labels.get(new + "region", ""))
    return f"{region} {labels.get(old + 'zone', labels.get(new + 'zone', ''))}"


class Search:
    """Nodes in lists by zone, the list that searches go through, and where the next one begins."""

    def __init__(self) -> None:
        self.zones: list[tuple[str, list[str]]] = []
        self.searched: list[str] = []
        self.start = 0

    def put(self, node: Node) -> None:
        """A node comes, or changes: where it changes its zone, it is the last one there."""
        members = next((names for name, names in self.zones if name == zone(node)), None)
        if members is not None and node.name in members:
            return
        self.remove(node.name)
        members = next((names for name, names in self.zones if name == zone(node)), None)
        if members is None:
            self.zones.append((zone(node), [node.name]))
        else:
            members.append(node.name)

    def remove(self, name: str) -> None:
        """A node goes, and with the last one its zone."""
        for _, names in self.zones:
            if name in names:
                names.remove(name)
        self.zones = [(zone, names) for zone, names in self.zones if names]

    def look(self) -> None:
        """Bring the list up to date, if any node came or went since the last time."""
        if {name for _, names in self.zones for name in names} == set(self.searched):
            return
        self.searched = []
        longest = max((len(names) for _, names in self.zones), default=0)
        for turn in range(longest):
            self.searched += [names[turn] for _, names in self.zones if turn < len(names)]

    def find(
        self, enough: Callable[[int], int], among: Collection[str] | None, passes: Callable[[str], bool]
    ) -> tuple[list[str], list[str]]:
        """The feasible nodes found and the nodes refused on the way, of those among which to search."""
        self.look()
        nodes = [name for name in self.searched if among is None or name in among]
        found: list[str] = []
        refused: list[str] = []
        for turn in range(len(nodes)):
            name = nodes[(self.start + turn) % len(nodes)]
            if not passes(name):
                refused.append(name)
            elif len(found) == enough(len(nodes)):
                break
            else:
                found.append(name)
        self.start = (self.start + len(found) + len(refused)) % len(self.searched)
        return found, refused
