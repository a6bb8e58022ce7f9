"""Members of a group that are assumed on nodes while the group is tried, and forgotten afterwards."""

from __future__ import annotations

from moorage.api.pod import Pod
from moorage.cluster.cache import Cache
from moorage.framework.interface.pod_groups import Assignment
from moorage.framework.interface.status import Code, PluginError, Status
from moorage.framework.runtime.framework import Framework
from moorage.klog import Logger, kobj

log = Logger(__name__)


class AssumedMembers:
    """Assumed members, in order. Its length is a mark: `forget_from` forgets what came after it."""

    def __init__(self, framework: Framework, cache: Cache) -> None:
        self._framework = framework
        self._cache = cache
        self._assumed: list[tuple[Assignment, Pod]] = []

    def __len__(self) -> int:
        return len(self._assumed)

    def add(self, assignment: Assignment) -> Status:
        """Assume a member on its node and reserve what it needs; if that fails, nothing is left of it."""
        like = assignment.cycle.equivalence_class
        assumed = self._cache.assume_pod(
            assignment.pod, assignment.node_name, None if like is None else like.info(assignment.pod)
        )
        self._assumed.append((assignment, assumed))
        try:
            status = self._framework.reserve(assignment.cycle, assumed, assignment.node_name)
        except PluginError as error:
            status = Status(Code.ERROR, (str(error),), error.plugin)
        if status.code is not Code.SUCCESS:
            self.forget_from(len(self._assumed) - 1)
        return status

    def forget_from(self, mark: int) -> None:
        """Undo assumptions, the last one first, until `mark` of them are left."""
        while len(self._assumed) > mark:
            assignment, assumed = self._assumed.pop()
            for error in self._framework.unreserve(assignment.cycle, assumed, assignment.node_name):
                log.error(error, "Unreserve failed", pod=kobj(assumed))
            self._cache.forget_pod(assumed)
