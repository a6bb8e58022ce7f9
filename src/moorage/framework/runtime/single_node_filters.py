"""The filters of a cycle, one node at a time: preemption asks about a few nodes with other pods on them.

There are such only where every filter that runs depends on a node and the pods on it alone (`depends_on`).
What was found out of a node in this way holds until its row changes, for all pods of the equivalence class.
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

    source: whose memory they are from; what was found out with another one's may not hold any more.
    """

    __slots__ = ("_filters", "source")

    def __init__(self, source: PluginResultCache, filters: FilterPlan) -> None:
        self.source = source
        self._filters = filters

    def refusal(
        self, cycle: CycleState, pod: Pod, node: NodeView, *, is_known_node: bool = False
    ) -> Refusal | None:
        """The first refusal of a node, if there is any.

        is_known_node: all filters let the pod in before, with other pods on the same node; then only those
        who look at pods can say anything else.
        """
        for call in self._filters.by_pods if is_known_node else self._filters.cached:
            reason = call.filter_node(cycle, pod, node)
            if reason is not None:
                return Refusal(call.plugin, reason)
        return None
