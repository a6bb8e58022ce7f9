"""A node and what is on it, as plain values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from moorage.cluster.cache import Cache


@dataclass(frozen=True, slots=True)
class NodeState:
    """A node: cpu in milli-CPU, memory in bytes, other resources in units."""

    name: str
    allocatable: Mapping[str, int]
    requested: Mapping[str, int]
    """What the pods on it request together."""
    pods: tuple[str, ...]
    """The pods on it, as `namespace/name`."""

    def free(self, resource: str) -> int:
        """How much of a resource is left."""
        return self.allocatable.get(resource, 0) - self.requested.get(resource, 0)


def node_states(cache: Cache) -> Iterator[NodeState]:
    """All nodes of a cache, in the order in which they came."""
    snapshot = cache.snapshot()
    for node in cache.nodes():
        row = snapshot.row_of[node.name]
        yield NodeState(
            node.name,
            dict(snapshot.allocatable.by_row[row]),
            dict(snapshot.requested.by_row[row]),
            tuple(info.pod.key for info in snapshot.pods_of(row).infos),
        )
