"""The nodes that a log names, at the time of each entry.

A log says that a node was added, updated or deleted, but not how it was updated. If the cluster is known at
several times, nodes have several versions, the last of which is there at the log's end. Which one was there
at an entry is known if the log does not have more updates than there were changes, and before the first and
after the last of them in any case.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec.structs import replace

from moorage.api.node import Node
from moorage.sim.scheduler_log.happenings import Event, Happening, What

_NODE_EVENTS = (What.NODE_ADDED, What.NODE_UPDATED, What.NODE_DELETED)


def node_versions(nodes: Iterable[Node]) -> dict[str, list[Node]]:
    """The versions of each node that differ in something that scheduling reads, oldest first."""
    versions: dict[str, list[Node]] = {}
    for node in nodes:
        plain = replace(node, metadata=replace(node.metadata, resource_version="", generation=0))
        known = versions.setdefault(node.name, [])
        if not known or known[-1] != plain:
            known.append(plain)
    return versions


def _change_counts(events: Iterable[Event]) -> Counter[str]:
    """How often each node was updated, or added again."""
    deleted: set[str] = set()
    counts: Counter[str] = Counter()
    for event in events:
        name = event.subject
        if event.what is What.NODE_DELETED:
            deleted.add(name)
        else:
            counts[name] += event.what is What.NODE_UPDATED or name in deleted
    return counts


class LoggedNodes:
    """The nodes of a log, from its beginning on.

    versions: those of each node, oldest first.
    last: the names of the nodes that exist at the end.
    """

    def __init__(
        self,
        versions: Mapping[str, Sequence[Node]],
        last: Collection[str],
        happenings: Iterable[Happening],
    ) -> None:
        events = [each for each in happenings if isinstance(each, Event) and each.what in _NODE_EVENTS]
        self._versions = versions
        self._last = last
        self._changes_left = changes = _change_counts(events)
        self._is_exact = {name: changes[name] < len(known) for name, known in versions.items()}
        self._places = {name: max(0, len(known) - 1 - changes[name]) for name, known in versions.items()}
        self._first = {each.subject: each.what for each in reversed(events)}
        self._deleted: set[str] = set()
        self.uncertain: set[str] = set()
        """Nodes of which it is not known at present which version is there."""
        self.updated: set[str] = set()
        """Nodes that were updated, and of which one version is known."""

    def before(self) -> dict[str, Node | None]:
        """The nodes that existed before the log, by name; None if a node is not known.

        What the log does not mention has not changed: it is what exists at the end.
        """
        names = dict.fromkeys((*self._last, *self._first))
        return {name: self.at(name) for name in names if self._first.get(name) is not What.NODE_ADDED}

    def at(self, name: str) -> Node | None:
        """The version of a node that is there at present; None if the node is not known."""
        known = self._versions.get(name)
        return known[self._places[name]] if known else None

    def follow(self, event: Event) -> None:
        """A node was added, updated or deleted."""
        name, known = event.subject, self._versions.get(event.subject, ())
        if event.what is What.NODE_DELETED:
            self._deleted.add(name)
            self.uncertain.discard(name)
        elif event.what is What.NODE_UPDATED and len(known) == 1:
            self.updated.add(name)
        elif len(known) > 1 and (event.what is What.NODE_UPDATED or name in self._deleted):
            self._change(name)

    def _change(self, name: str) -> None:
        """A node with several versions may have become the next one."""
        self._changes_left[name] -= 1
        if self._is_exact[name]:
            self._places[name] += 1
        elif self._changes_left[name]:
            self.uncertain.add(name)
        else:
            self._places[name] = len(self._versions[name]) - 1
            self.uncertain.discard(name)
