"""The filters of a cycle for one node at a time: preemption evaluates a few nodes with other pods on them.

They exist only where every filter that runs depends on a node and the pods on it alone (`depends_on`).
Their results for a node are valid until its row changes, for all pods of the equivalence class.
"""

from __future__ import annotations

from moorage.api.pod import Pod
from moorage.framework.cache.result_cache import PluginResultCache
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.diagnosis import Refusal
from moorage.framework.interface.nodes import NodeView
from moorage.framework.runtime.plan import FilterPlan


class SingleNodeFilters:
    """The filters that run for the pods of one equivalence class.

    source: the result cache they belong to; results from another one may not be valid any more.
    """

    __slots__ = ("_filters", "source")

    def __init__(self, source: PluginResultCache, filters: FilterPlan) -> None:
        self.source = source
        self._filters = filters

    def refusal(
        self, cycle: CycleState, pod: Pod, node: NodeView, *, is_known_node: bool = False
    ) -> Refusal | None:
        """The first refusal of a node, if there is any.

        is_known_node: the node passed all filters before, with other pods on it; then only filters that
        depend on pods can reject it.
        """
        for call in self._filters.by_pods if is_known_node else self._filters.cached:
            reason = call.filter_node(cycle, pod, node)
            if reason is not None:
                return Refusal(call.plugin, reason)
        return None
