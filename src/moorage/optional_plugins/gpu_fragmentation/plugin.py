"""GPUFragmentation: of the nodes where a pod fits, one where it makes few GPUs useless for others.

The score is 50 where a pod makes no more fragments than there are, 25 where it makes one more, 75 where it
takes one that was of no use to the expected pods, and approaches 0 and 100.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from moorage import (
    NODE_AND_PODS,
    SKIP,
    CycleState,
    DependsOn,
    Handle,
    Nodes,
    NodeView,
    Objects,
    Pod,
    Scores,
    StateKey,
    Status,
    pod_requests,
    resource_amounts,
)
from moorage.optional_plugins.gpu_fragmentation.arguments import (
    GPUFragmentationArgs,
    expected_shapes,
)
from moorage.optional_plugins.gpu_fragmentation.columns import ScoreColumns
from moorage.optional_plugins.gpu_fragmentation.learned import LearnedTarget
from moorage.optional_plugins.gpu_fragmentation.target import Target

_TAKEN: Final[StateKey[Mapping[str, int]]] = StateKey("GPUFragmentation/taken")


class GPUFragmentation:
    """Scores nodes by how many more of their free GPUs are of no use with a pod than without it."""

    name = "GPUFragmentation"
    watched_kinds: tuple[()] = ()

    def __init__(self, args: GPUFragmentationArgs, handle: Handle) -> None:
        shapes = expected_shapes(args)
        self._resource = args.resource
        self._expected = Target(args.resource, args.unit, shapes) if shapes else None
        """The pods that the configuration expects; None: they are learned."""
        self._learned = LearnedTarget(args.resource, args.unit, args.max_shapes, handle)
        self._columns = ScoreColumns()
        self._last: tuple[object, Mapping[str, int]] = (None, {})
        """The spec of the last pod, and what it takes; pods of a template share their spec."""

    def depends_on(self, pod: Pod, objects: Objects) -> DependsOn | None:
        """The node and the pods on it; all pods of the cluster where the expected ones are learned."""
        return None if self._expected is None else NODE_AND_PODS

    def skips_pod(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> bool:
        """Nothing can be learned where no pod on a node has a GPU: all nodes are equal then."""
        return self._expected is None and not nodes.snapshot.requested.is_anywhere(self._resource)

    def pre_filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Status:
        """The plugin rejects no node; that it is at this extension point lets it use `skips_pod`."""
        return SKIP

    def pre_score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """Compute what the pod takes."""
        if self.skips_pod(cycle, pod, nodes):
            return SKIP
        cycle.write(_TAKEN, self._taken(pod))
        return None

    def score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Scores:
        """From 0 (many more GPUs are of no use) to 100 (many fewer). Shape (nodes,)."""
        taken = cycle.read_or(_TAKEN, lambda: self._taken(pod))
        if self._expected is not None:
            return self._expected.score(nodes, taken)
        return self._columns.score(nodes, self._learned.of(nodes), taken)

    def score_node(self, cycle: CycleState, pod: Pod, node: NodeView) -> int:
        """As `score`, for one node."""
        target = self._learned.of(Nodes(node.snapshot)) if self._expected is None else self._expected
        return target.score_node(node, cycle.read_or(_TAKEN, lambda: self._taken(pod)))

    def _taken(self, pod: Pod) -> Mapping[str, int]:
        """What a pod takes from its node, in whole units; kept for the next pod with the same spec."""
        spec, taken = self._last
        if spec is not pod.spec:
            taken = resource_amounts(pod_requests(pod))
            self._last = (pod.spec, taken)
        return taken
