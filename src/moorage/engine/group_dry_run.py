"""A group tried in a cluster without some pods: what making room for it would need."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence

from moorage.api.pod import Pod
from moorage.cluster.cache import Cache
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.pod_groups import Assignment, GroupSchedule


class DryRun:
    """A dry run in the cache itself, which `end` undoes.

    schedule: schedules the group. fits: whether members pass all filters on their nodes, in turn.
    """

    def __init__(
        self,
        cache: Cache,
        schedule: Callable[[], Awaitable[GroupSchedule]],
        fits: Callable[[Sequence[Assignment]], bool],
    ) -> None:
        self.groups = cache.pod_groups
        self._cache = cache
        self._schedule = schedule
        self._fits = fits
        self._set_aside = cache.set_aside(())

    def nodes(self) -> Nodes:
        """All nodes, as they are now in the dry run."""
        return Nodes(self._cache.snapshot())

    def remove(self, pods: Iterable[Pod]) -> None:
        """Remove pods from their nodes."""
        for pod in pods:
            self._set_aside.remove(pod)

    def put_back(self, pods: Iterable[Pod]) -> None:
        """Put removed pods back."""
        for pod in pods:
            self._set_aside.put_back(pod)

    async def schedule(self) -> GroupSchedule:
        """Schedule the group once more."""
        return await self._schedule()

    def fits(self, assignments: Sequence[Assignment]) -> bool:
        """Whether members still pass all filters on their nodes, each assumed there before the next."""
        return self._fits(assignments)

    def end(self) -> None:
        """Undo all of it."""
        self._set_aside.end()
