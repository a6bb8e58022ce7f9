"""Numa: nodes on which the kubelet's topology manager can align the pod with NUMA zones."""

from __future__ import annotations

from collections.abc import Iterable

from moorage import (
    NOT_CONCERNED,
    SKIP,
    Action,
    Code,
    CycleState,
    DependsOn,
    FilterResult,
    Handle,
    IdentityCache,
    Interest,
    Nodes,
    NodeView,
    Objects,
    Pod,
    Reason,
    Resource,
    Scores,
    StateKey,
    Status,
    on,
)
from moorage.optional_plugins.numa.accounting import Accounting
from moorage.optional_plugins.numa.alignment import is_hopeless, refusal
from moorage.optional_plugins.numa.arguments import NumaArgs
from moorage.optional_plugins.numa.column_scoring import allocation_scores, least_zones_scores
from moorage.optional_plugins.numa.columns import INVALID_DATA, Refusals, add_refusals, reserved
from moorage.optional_plugins.numa.requests import PodRequests, pinned_of, requests_of
from moorage.optional_plugins.numa.scoring import LEAST_NUMA, allocation_score, least_zones_score
from moorage.optional_plugins.numa.topology import (
    NODE_RESOURCE_TOPOLOGY,
    NodeResourceTopology,
    zones_of,
)
from moorage.optional_plugins.numa.zone_rows import ZoneRow, ZoneRows

_REQUESTS: StateKey[PodRequests] = StateKey("Numa/requests")
_CONCERNED = DependsOn(pods=True, node_objects=(NodeResourceTopology,), runs_after_filter=False)


class Numa:
    """Rejects nodes that cannot align a pod, and scores the others by their zones."""

    name = "Numa"
    watched_kinds = (NODE_RESOURCE_TOPOLOGY,)

    def __init__(self, args: NumaArgs, handle: Handle) -> None:
        strategy = args.scoring_strategy
        self._strategy = strategy.type
        self._weights = {each.name: each.weight or 1 for each in strategy.resources}
        self._discards_reserved = args.discard_reserved_nodes
        self._accounting = Accounting(handle, args.cache.resync_method)
        self._zones = ZoneRows(self._accounting)
        self._requests: IdentityCache[Pod, PodRequests] = IdentityCache(requests_of)

    # Events

    def events(self) -> tuple[Interest, ...]:
        """New nodes, objects by which a pod may fit, and pods deleted that no object accounted for."""
        return (
            on(Resource.NODE, Action.ADD),
            on(
                NODE_RESOURCE_TOPOLOGY.resource,
                Action.ADD | Action.UPDATE | Action.DELETE,
                self._may_align,
                per_equivalence_class=True,
            ),
            on(Resource.POD, Action.DELETE, self._frees_zones, per_equivalence_class=True),
            on(Resource.POD, Action.UPDATE_POD_SCALE_DOWN, _is_itself),
        )

    def _may_align(
        self, pod: Pod, old: NodeResourceTopology | None, new: NodeResourceTopology | None
    ) -> bool:
        """Whether a node could align a pod if its object accounted for all pods there."""
        if new is None:
            return True
        zones = zones_of(new)
        free = {name: list(each.available) for name, each in zones.resources.items()}
        return refusal(zones, free, self._requests(pod)) is None

    def _frees_zones(self, pod: Pod, old: Pod, new: None) -> bool:
        """Whether a deleted pod was subtracted from zones of something that the waiting pod needs."""
        if not old.spec.node_name or self._accounting.is_accounted(old):
            return False
        return not self._requests(pod).pinned.keys().isdisjoint(pinned_of(old))

    # Filtering

    def depends_on(self, pod: Pod, objects: Objects) -> DependsOn | None:
        """The zones of the node and the pods on it, if the kubelet pins anything for the pod."""
        return _CONCERNED if self._requests(pod).pinned else NOT_CONCERNED

    def pre_filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """Pods for which nothing is pinned run anywhere."""
        requests = self._requests(pod)
        cycle.write(_REQUESTS, requests)
        return None if requests.pinned else SKIP

    def _needed(self, cycle: CycleState, pod: Pod) -> PodRequests:
        """What a pod requests; computed once for all pods of its equivalence class."""
        return cycle.read_or(_REQUESTS, lambda: self._requests(pod))

    def filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> FilterResult:
        """Reject the nodes whose topology manager would reject the pod."""
        known, refusals = self._zones, Refusals(len(nodes))
        requests = self._needed(cycle, pod)
        if requests.pinned:
            known.follow(nodes)
            if self._discards_reserved:
                refusals.add(reserved(known, nodes).nonzero()[0], INVALID_DATA, resolvable=True)
            add_refusals(known, nodes, requests, refusals)
        return refusals.result()

    def filter_node(self, cycle: CycleState, pod: Pod, node: NodeView) -> Reason | None:
        """As `filter`, for one node."""
        requests = self._needed(cycle, pod)
        row = self._zones.of(node) if requests.pinned else None
        if row is None:
            return None
        if self._discards_reserved and _is_reserved(row, node):
            return Reason((INVALID_DATA,))
        if not row.zones.refuses:
            return None
        text = refusal(row.zones, _free(row, node, requests.pinned), requests)
        if text is None:
            return None
        hopeless = is_hopeless(row.zones, requests)
        return Reason((text,), Code.UNRESOLVABLE if hopeless else Code.UNSCHEDULABLE)

    # Scoring

    def pre_score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """Only what Guaranteed pods get of zones differs between nodes."""
        requests = self._needed(cycle, pod)
        return None if requests.is_guaranteed and requests.pinned else SKIP

    def score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Scores:
        """The strategy's score of each node; 0 where nothing is known of its zones."""
        requests, known = self._needed(cycle, pod), self._zones
        known.follow(nodes)
        if self._strategy == LEAST_NUMA:
            return least_zones_scores(known, nodes, requests)
        return allocation_scores(known, nodes, requests, self._strategy, self._weights)

    def score_node(self, cycle: CycleState, pod: Pod, node: NodeView) -> int:
        """As `score`, for one node."""
        requests, row = self._needed(cycle, pod), self._zones.of(node)
        if row is None:
            return 0
        if self._strategy == LEAST_NUMA:
            return least_zones_score(row.zones, _free(row, node, requests.pinned), requests)
        free = _free(row, node, requests.names)
        return allocation_score(row.zones, free, requests, self._strategy, self._weights)


class NodeResourceTopologyMatch(Numa):
    """The same by the name that scheduler-plugins has for it, for configurations that name it so."""

    name = "NodeResourceTopologyMatch"
    replaces = {"filter": (Numa.name,), "score": (Numa.name,)}


def _free(row: ZoneRow, node: NodeView, names: Iterable[str]) -> dict[str, list[int]]:
    """What is left in the zones of a node, with the pods that are supposed to be there."""
    if not node.added and not node.removed:
        return row.free(names)
    here = node.snapshot.pods_of(node.row).infos
    return row.free_with(names, here, node.added, node.removed)


def _is_reserved(row: ZoneRow, node: NodeView) -> bool:
    if not node.added and not node.removed:
        return bool(row.held)
    return row.is_reserved_with(node.snapshot.pods_of(node.row).infos, node.added, node.removed)


def _is_itself(pod: Pod, old: Pod, new: Pod) -> bool:
    return new.uid == pod.uid
