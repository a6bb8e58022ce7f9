"""What a script does to nodes: as an operator, a cloud or an autoscaler would."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from msgspec.structs import replace

from moorage.api.decode import InputError
from moorage.api.labels import ZONE
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.client.kinds import NODE, POD
from moorage.sim.object_store import ObjectStore
from moorage.simulation.script import ScriptEvent
from moorage.simulation.shapes import INSTANCE_TYPE, parse_shape


class Nodes(Protocol):
    """The nodes of a cluster, and what can be done to them."""

    def all(self) -> list[Node]:
        """All nodes."""

    def create(self, node: Node) -> None:
        """Add a node."""

    def cordon(self, node: Node, is_cordoned: bool) -> None:
        """Let no new pods come to a node, or let them."""

    def drain(self, node: Node) -> None:
        """Cordon a node, and evict its pods."""

    def remove(self, node: Node) -> None:
        """Remove a node; it and its pods are gone at once."""


class StoredNodes:
    """The nodes of a store."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def all(self) -> list[Node]:
        """All nodes."""
        return list(self._store.table(NODE).values())

    def create(self, node: Node) -> None:
        """Add a node."""
        self._store.create(NODE, "", node)

    def cordon(self, node: Node, is_cordoned: bool) -> None:
        """Let no new pods come to a node, or let them."""
        self._store.update(NODE, replace(node, spec=replace(node.spec, unschedulable=is_cordoned)))

    def drain(self, node: Node) -> None:
        """Cordon a node, and delete its pods."""
        self.cordon(node, True)
        self._remove_pods(node, None)

    def remove(self, node: Node) -> None:
        """Remove a node; it and its pods are gone at once."""
        self._store.delete(NODE, "", node.name)
        self._remove_pods(node, 0)

    def _remove_pods(self, node: Node, grace_seconds: int | None) -> None:
        for pod in list(self._pods_on(node)):
            self._store.delete(POD, pod.namespace, pod.name, grace_seconds=grace_seconds)

    def _pods_on(self, node: Node) -> Iterator[Pod]:
        return (pod for pod in self._store.table(POD).values() if pod.spec.node_name == node.name)


class NodeEvents:
    """Applies the events of a script to nodes."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._failed: dict[str, Node] = {}
        """Nodes that have failed, and may recover."""

    def apply(self, event: ScriptEvent) -> None:
        """Let an event happen; InputError if there is no such node."""
        if event.action == "add":
            self._add(event)
        elif event.action == "recover":
            self._recover(event)
        else:
            for node in self._targets(event, self._nodes.all()):
                self._apply_to(event.action, node)

    def _apply_to(self, action: str, node: Node) -> None:
        match action:
            case "cordon":
                self._nodes.cordon(node, True)
            case "drain":
                self._nodes.drain(node)
            case "fail":
                self._failed[node.name] = node
                self._nodes.remove(node)
            case "remove":
                self._nodes.remove(node)

    def _targets(self, event: ScriptEvent, nodes: list[Node]) -> list[Node]:
        """The node with a name, or the nodes of a zone."""
        found = [node for node in nodes if node.name == event.target]
        found = found or [node for node in nodes if node.labels.get(ZONE) == event.target]
        if not found:
            raise InputError(event.where, f"{event.action}: there is no node and no zone {event.target}")
        return found

    def _add(self, event: ScriptEvent) -> None:
        shape = parse_shape(event.target)
        for node in shape.nodes(first=self._next_number(shape.name)):
            self._nodes.create(node)

    def _next_number(self, shape: str) -> int:
        """The first number of new nodes of a shape: larger than those of nodes that are there or failed."""
        nodes = [*self._nodes.all(), *self._failed.values()]
        ends = (node.name.removeprefix(f"{shape}-") for node in nodes)
        numbers = (int(end) + 1 for end in ends if end.isdecimal())
        return max([sum(node.labels.get(INSTANCE_TYPE) == shape for node in nodes), *numbers])

    def _recover(self, event: ScriptEvent) -> None:
        for node in self._targets(event, [*self._failed.values(), *self._nodes.all()]):
            if self._failed.pop(node.name, None) is not None:
                self._nodes.create(node)
            else:
                self._nodes.cordon(node, False)
