"""The state of nodes and pods, and the changes that led to it.

Changes are collected into batches, each with a revision. A bounded number of changes is kept: the state
before the oldest of them is the base, so that base and changes always make the present state. Readers hold
a revision and nothing else: what a slow one has missed is merged when it asks, however much that is.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, TypeVar

from moorage.ui.documents import Changes, ClusterState, History, NodeState, PodState

State = TypeVar("State", NodeState, PodState)

MAX_CHANGES: Final = 200_000
"""Number of changed objects that are kept."""


class Timeline:
    """States over time. Times of batches are those of `now`."""

    def __init__(self, now: Callable[[], float], max_changes: int = MAX_CHANGES) -> None:
        self._now = now
        self._max_changes = max_changes
        self.nodes: dict[str, NodeState] = {}
        self.pods: dict[str, PodState] = {}
        """The present state; read-only."""
        self.revision = 0
        self._time = 0.0
        self._open_nodes: dict[str, NodeState | None] = {}
        self._open_pods: dict[str, PodState | None] = {}
        self._batches: deque[Changes] = deque()
        self._size = 0
        self._base = ClusterState(revision=0, time=0.0, nodes={}, pods={})
        self._has_changed = asyncio.Event()

    # -- writing

    def put_node(self, name: str, state: NodeState | None) -> None:
        """A node was added or changed; None: it is gone."""
        _put(self.nodes, name, state)
        self._open_nodes[name] = state

    def put_pod(self, key: str, state: PodState | None) -> None:
        """A pod was added or changed; None: it is gone."""
        _put(self.pods, key, state)
        self._open_pods[key] = state

    @property
    def has_open_changes(self) -> bool:
        """Whether something has changed since the last batch."""
        return bool(self._open_nodes or self._open_pods)

    def close_batch(self, time: float | None = None) -> None:
        """Make what has changed since the last batch a batch, and wake readers; time: instead of now."""
        if not self.has_open_changes:
            return
        self.revision += 1
        self._time = self._now() if time is None else time
        batch = Changes(revision=self.revision, time=self._time, nodes=self._open_nodes, pods=self._open_pods)
        self._open_nodes, self._open_pods = {}, {}
        self._batches.append(batch)
        self._size += _size(batch)
        while self._size > self._max_changes and len(self._batches) > 1:
            self._drop_oldest()
        self._has_changed.set()
        self._has_changed = asyncio.Event()

    def _drop_oldest(self) -> None:
        batch = self._batches.popleft()
        self._size -= _size(batch)
        nodes, pods = self._base.nodes, self._base.pods
        for name, node in batch.nodes.items():
            _put(nodes, name, node)
        for key, pod in batch.pods.items():
            _put(pods, key, pod)
        self._base = ClusterState(revision=batch.revision, time=batch.time, nodes=nodes, pods=pods)

    # -- reading

    def state(self) -> ClusterState:
        """The state at the last batch."""
        # Changes of the open batch are in it, and come again with their batch: nothing is lost or wrong.
        return ClusterState(revision=self.revision, time=self._time, nodes=self.nodes, pods=self.pods)

    def history(self) -> History:
        """The oldest state that is kept, and all changes since then."""
        return History(base=self._base, changes=tuple(self._batches))

    def since(self, revision: int) -> Changes | None:
        """What has changed after a revision, merged; None if that is too long ago, or not known."""
        if not self._base.revision <= revision <= self.revision:
            return None
        missed = self.revision - revision
        nodes: dict[str, NodeState | None] = {}
        pods: dict[str, PodState | None] = {}
        for index in range(len(self._batches) - missed, len(self._batches)):
            nodes |= self._batches[index].nodes
            pods |= self._batches[index].pods
        return Changes(revision=self.revision, time=self._time, nodes=nodes, pods=pods)

    async def changed(self, revision: int) -> None:
        """Returns when there is a batch after a revision."""
        while self.revision <= revision:
            await self._has_changed.wait()


def _put(table: dict[str, State], key: str, state: State | None) -> None:
    if state is None:
        table.pop(key, None)
    else:
        table[key] = state


def _size(batch: Changes) -> int:
    return len(batch.nodes) + len(batch.pods)
