"""What a script does to nodes: as an operator, a cloud or an autoscaler would."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from moorage.api.decode import InputError
from moorage.api.labels import ZONE
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.client.kinds import NODE, POD
from moorage.sim.object_store import ObjectStore
from moorage.simulation.script import ScriptEvent
from moorage.simulation.shapes import INSTANCE_TYPE, parse_shape


class NodeEvents:
    """Applies the events of a script to a store."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._failed: dict[str, Node] = {}
        """Nodes that have failed, and may recover."""

    def apply(self, event: ScriptEvent) -> None:
        """Let an event happen; InputError if there is no such node."""
        if event.action == "add":
            self._add(event)
        elif event.action == "recover":
            self._recover(event)
        else:
            for node in self._targets(event, self._nodes()):
                self._apply_to(event.action, node)

    def _apply_to(self, action: str, node: Node) -> None:
        match action:
            case "cordon":
                self._cordon(node, True)
            case "drain":
                self._cordon(node, True)
                self._remove_pods(node, None)
            case "fail":
                self._failed[node.name] = node
                self._remove(node)
            case "remove":
                self._remove(node)

    def _nodes(self) -> list[Node]:
        return list(self._store.table(NODE).values())

    def _targets(self, event: ScriptEvent, nodes: list[Node]) -> list[Node]:
        """The node with a name, or the nodes of a zone."""
        found = [node for node in nodes if node.name == event.target]
        found = found or [node for node in nodes if node.labels.get(ZONE) == event.target]
        if not found:
            raise InputError(event.where, f"{event.action}: there is no node and no zone {event.target}")
        return found

    def _add(self, event: ScriptEvent) -> None:
        shape = parse_shape(event.target)
        known = sum(node.labels.get(INSTANCE_TYPE) == shape.name for node in self._nodes())
        for node in shape.nodes(first=known):
            self._store.create(NODE, "", node)

    def _recover(self, event: ScriptEvent) -> None:
        for node in self._targets(event, [*self._failed.values(), *self._nodes()]):
            if self._failed.pop(node.name, None) is not None:
                self._store.create(NODE, "", node)
            else:
                self._cordon(node, False)

    def _cordon(self, node: Node, is_cordoned: bool) -> None:
        self._store.update(NODE, replace(node, spec=replace(node.spec, unschedulable=is_cordoned)))

    def _remove(self, node: Node) -> None:
        """The node and its pods are gone at once."""
        self._store.delete(NODE, "", node.name)
        self._remove_pods(node, 0)

    def _remove_pods(self, node: Node, grace_seconds: int | None) -> None:
        for pod in list(self._pods_on(node)):
            self._store.delete(POD, pod.namespace, pod.name, grace_seconds=grace_seconds)

    def _pods_on(self, node: Node) -> Iterator[Pod]:
        return (pod for pod in self._store.table(POD).values() if pod.spec.node_name == node.name)
