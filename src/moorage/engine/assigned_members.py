"""Members of a group on their nodes: whether they pass all filters there, while other pods come and go.

In general each member is filtered after those before it are assumed. Where a node's answer depends on none of
the pods that move elsewhere, nodes are independent of each other: those where nothing moved need not be
filtered again, and members that are alike are filtered together, each on its node.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property

from moorage.api.pod import Pod
from moorage.cluster.cache import Cache
from moorage.cluster.pod_table import PodInfo
from moorage.engine.assumed_members import AssumedMembers
from moorage.engine.engine import Engine
from moorage.framework.cache.equivalence_classes import EquivalenceClass
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.diagnosis import Diagnosis
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.pod_groups import Assignment
from moorage.framework.runtime.framework import Framework


class AssignedMembers:
    """The assignments of a group's members, in turn."""

    def __init__(
        self, engine: Engine, framework: Framework, cache: Cache, assignments: Sequence[Assignment]
    ) -> None:
        self._engine = engine
        self._framework = framework
        self._cache = cache
        self._assignments = assignments
        self._assumed = AssumedMembers(framework, cache)

    def fit(self) -> bool:
        """Whether members pass all filters on their nodes, each assumed there before the next."""
        try:
            for each in self._assignments:
                cycle, snapshot = CycleState(), self._cache.snapshot()
                if not self._engine.passing(self._framework, each.pod, snapshot, [each.node_name], cycle):
                    return False
                self._assumed.add(Assignment(each.pod, each.node_name, cycle))
            return True
        finally:
            self._assumed.forget_from(0)

    # Node by node

    @cached_property
    def by_node(self) -> dict[str, list[Assignment]]:
        """The assignments to each node, in turn."""
        by_node: dict[str, list[Assignment]] = {}
        for each in self._assignments:
            by_node.setdefault(each.node_name, []).append(each)
        return by_node

    def is_by_node(self, moving: Sequence[PodInfo]) -> bool:
        """Whether a node's answers depend on other nodes neither by members nor by some pods that move."""
        snapshot = self._cache.snapshot()
        of_class: dict[EquivalenceClass, Pod] = {}
        for each in self._assignments:
            like = self._class_of(each)
            if like is None or like.is_named or snapshot.nominated.node_of(each.pod.uid) is not None:
                return False
            of_class.setdefault(like, each.pod)
        moving = [*moving, *(like.info(pod) or PodInfo(pod) for like, pod in of_class.items())]
        nodes = Nodes(snapshot)
        for like, pod in of_class.items():
            cycle = CycleState()
            cycle.equivalence_class = like
            if self._framework.pre_filter(cycle, pod, nodes, Diagnosis(len(nodes))) is None:
                return False
            if not self._framework.filters_by_node(cycle, pod, nodes, moving):
                return False
        return True

    def refused(self, names: Collection[str]) -> set[str]:
        """Those of some nodes where not all members pass, each assumed before the next on its node.

        Only where `is_by_node` is true.
        """
        refused: set[str] = set()
        waiting = {name: list(reversed(self.by_node[name])) for name in names}
        try:
            while waiting:
                turn = {name: members.pop() for name, members in waiting.items()}
                refused.update(self._refused(list(turn.values())))
                waiting = {name: left for name, left in waiting.items() if left and name not in refused}
                for name in waiting:
                    self._assumed.add(turn[name])
        finally:
            self._assumed.forget_from(0)
        return refused

    def _refused(self, assignments: Sequence[Assignment]) -> set[str]:
        """The nodes that do not pass the filters for their member; each has one."""
        alike: dict[EquivalenceClass | None, list[Assignment]] = {}
        for each in assignments:
            alike.setdefault(self._class_of(each), []).append(each)
        snapshot, refused = self._cache.snapshot(), set()
        for some in alike.values():
            names = [each.node_name for each in some]
            passing = self._engine.passing(self._framework, some[0].pod, snapshot, names, CycleState())
            refused.update(set(names).difference(passing))
        return refused

    def _class_of(self, assignment: Assignment) -> EquivalenceClass | None:
        return self._engine.equivalence_class(assignment.pod, self._cache.latest_snapshot())
