"""The state of DynamicResources for one pod in one cycle."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from moorage.api.devices import AllocationResult, DeviceClass, ResourceClaim
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.selectors import RequiredNodes
from moorage.cel.budget import WORK_LIMIT, WorkBudget
from moorage.cluster.object_tables import ObjectTable
from moorage.cluster.snapshot import Snapshot
from moorage.framework.interface.extension_points import Scores
from moorage.framework.interface.nodes import Nodes
from moorage.plugins.dynamic_resources.allocation_plans import AllocationPlans
from moorage.plugins.dynamic_resources.extended_resources import (
    NOT_STORED,
    NodeClaim,
    backing_class,
    left_to_devices,
    node_claim,
    wanted_resources,
)
from moorage.plugins.dynamic_resources.outcomes import AllocationPlan, GroupOutcomes, Outcomes, SearchOutcomes
from moorage.plugins.dynamic_resources.pod_claims import claim_uid
from moorage.plugins.dynamic_resources.structured.allocator import Allocator
from moorage.plugins.dynamic_resources.structured.claim_requests import ClaimRequest, claim_request
from moorage.plugins.dynamic_resources.structured.inventory import Inventory
from moorage.plugins.dynamic_resources.structured.search_results import MAX_ALTERNATIVES

_NO_RESOURCES: frozenset[str] = frozenset()

_USUAL_NODE_COUNT, _NODE_WORK = 5_000, 8
"""Number of nodes that the limit on work is for, and the units of work in addition for each further node."""


def work_limit(node_count: int) -> int:
    """The units of work that an attempt to schedule a pod may do for its claims."""
    return WORK_LIMIT + _NODE_WORK * max(node_count - _USUAL_NODE_COUNT, 0)


@dataclass(slots=True, eq=False)
class PodDevices:
    """A pod's claims, and the results for them.

    claims: those the pod names, then the one for its extended resources, if it has any.
    """

    claims: list[ResourceClaim] = field(default_factory=list)
    has_extended: bool = False
    homes: dict[int, RequiredNodes] = field(default_factory=dict)
    """Where allocated claims can be used, by place in `claims`; those without an entry: everywhere."""
    work: WorkBudget = field(default_factory=WorkBudget)
    """The work that the attempt may still do for the pod's claims."""
    allocator: Allocator | None = None
    """None if all claims are allocated."""
    plans: AllocationPlans | None = None
    """The plans for each node; None before filtering."""
    plan: AllocationPlan | None = None
    """The plan for the node where the pod was reserved."""
    unavailable: set[int] = field(default_factory=set)
    """Allocated claims that some node could not use."""
    allocations: dict[int, AllocationResult] = field(default_factory=dict)
    """What was reserved, by place in `claims`."""
    in_flight_uids: dict[int, str] = field(default_factory=dict)
    """Under which id each claim is in flight, by place in `claims`."""
    writes: dict[int, asyncio.Future[Any]] = field(default_factory=dict)
    """The writes of claims whose end is not noted in `claims`, by place there."""
    variants: Variants | None = None
    """The pod's requests on each node; made when nodes are first filtered."""
    outcomes: GroupOutcomes = field(default_factory=GroupOutcomes)
    """What was found on groups of nodes, for pods whose requests differ between nodes."""
    search_outcomes: SearchOutcomes | None = None
    """What was found, for other pods; made when nodes are first filtered."""

    def variants_in(self, pod: Pod, classes: ObjectTable[DeviceClass]) -> Variants:
        """The pod's requests on each node: the same objects for the whole cycle."""
        if self.variants is None:
            self.variants = Variants(pod, self, classes)
        return self.variants

    @property
    def extended(self) -> ResourceClaim | None:
        """The claim for the pod's extended resources."""
        return self.claims[-1] if self.has_extended else None

    def is_extended(self, place: int) -> bool:
        """Whether the claim in a place is the one for the pod's extended resources."""
        return self.has_extended and place == len(self.claims) - 1

    @property
    def user_claims(self) -> list[ResourceClaim]:
        """The claims that the pod names."""
        return self.claims[:-1] if self.has_extended else self.claims

    def unallocated(self) -> Iterator[int]:
        """The places of the claims that have no devices yet."""
        return (i for i, claim in enumerate(self.claims) if claim.status.allocation is None)

    def in_flight_uid(self, place: int, pod: Pod) -> str:
        """The key of a claim in flight: its uid, or for one that is not stored yet, the pod's."""
        claim = self.claims[place]
        return f"{pod.uid}/{NOT_STORED}" if claim.name == NOT_STORED else claim_uid(claim)

    def plans_for(self, snapshot: Snapshot, inventory: Inventory, outcomes: Outcomes) -> AllocationPlans:
        """The plans for the nodes of a snapshot, as far as they were filtered."""
        if self.plans is None or self.plans.snapshot is not snapshot:
            self.plans = AllocationPlans(snapshot, inventory, outcomes)
        return self.plans

    def scores(self, nodes: Nodes) -> Scores:
        """The sum over the alternatives chosen on each node: the more preferred ones it had, the better."""
        if self.plans is None:
            return np.zeros(len(nodes), np.int64)
        return self.plans.scores(nodes, self.earlier_score())

    def earlier_score(self) -> int:
        """The part of the score that claims allocated in earlier cycles bring; the same on every node."""
        score = 0
        for claim in self.claims:
            if claim.status.allocation is None:
                continue
            given = {result.request for result in claim.status.allocation.devices.results}
            for request in claim.spec.devices.requests:
                for place, each in enumerate(request.first_available):
                    score += (MAX_ALTERNATIVES - place) * (f"{request.name}/{each.name}" in given)
        return score


class Variants:
    """A pod's requests on each node: nodes differ in the extended resources they have themselves."""

    def __init__(self, pod: Pod, state: PodDevices, classes: ObjectTable[DeviceClass]) -> None:
        self._pod = pod
        self._state = state
        self._classes = classes
        self._wanted = wanted_resources(pod) if state.has_extended else {}
        self._backed = {name for name in self._wanted if backing_class(name, classes) is not None}
        self._known: dict[frozenset[str], tuple[tuple[ClaimRequest, ...], NodeClaim | None]] = {}

    def everywhere(self) -> tuple[ClaimRequest, ...]:
        """The claims to allocate for a pod that has no extended resources: the same on every node."""
        if _NO_RESOURCES not in self._known:
            self._known[_NO_RESOURCES] = self._make(_NO_RESOURCES)
        return self._known[_NO_RESOURCES][0]

    def of(self, node: Node) -> tuple[tuple[ClaimRequest, ...], NodeClaim | None] | None:
        """The claims to allocate on a node, with the one for extended resources; None if it lacks some."""
        resources = left_to_devices(self._wanted, self._backed, node) if self._wanted else _NO_RESOURCES
        if resources is None:
            return None
        if resources not in self._known:
            self._known[resources] = self._make(resources)
        return self._known[resources]

    def _make(self, resources: frozenset[str]) -> tuple[tuple[ClaimRequest, ...], NodeClaim | None]:
        state = self._state
        extended: NodeClaim | None = None
        if state.extended is not None and resources:
            extended = node_claim(self._pod, state.extended, resources, self._classes)
        last = len(state.claims) - 1
        claim_requests = tuple(
            claim_request(
                extended.claim if extended is not None and place == last else state.claims[place],
                self._classes,
                state.work,
            )
            for place in state.unallocated()
        )
        return claim_requests, extended
