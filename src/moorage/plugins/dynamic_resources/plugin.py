"""DynamicResources: devices that pods claim.

The cycle decides which devices each claim would get on each node. Reserve keeps the decision for the chosen
node (`in_flight_allocations`), so that no other pod gets the same devices; pre-bind writes it and waits for
devices that take time to get ready. Where no node fits, claims with devices that some node could not use are
deallocated, one at a time, so that the next attempt can choose again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from moorage.api.devices import DeviceClass, ResourceClaim, ResourceClaimStatus
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.selectors import RequiredNodes, node_terms
from moorage.cel.budget import WorkBudget, WorkLimitError
from moorage.client.kinds import DEVICE_TAINT_RULE, RESOURCE_CLAIM, Kind
from moorage.client.permissions import Permission
from moorage.cluster.object_tables import Objects, ObjectTable
from moorage.config.args import DynamicResourcesArgs
from moorage.framework.interface.cycle_state import CycleState, StateKey
from moorage.framework.interface.dependencies import DependsOn
from moorage.framework.interface.diagnosis import Diagnosis
from moorage.framework.interface.effects import DeleteClaim, WriteClaimStatus
from moorage.framework.interface.events import Action, Interest, Resource, on
from moorage.framework.interface.extension_points import (
    IN_PARALLEL,
    SKIP_IN_PARALLEL,
    PostFilterResult,
    PreFlight,
    Scores,
)
from moorage.framework.interface.filter_result import ALL, FilterResult, Reason, refuse_where
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.pod_groups import (
    MEMBER_CYCLES,
    GroupDryRun,
    PodGroupInfo,
    PodGroupPostFilterResult,
)
from moorage.framework.interface.status import SKIP, Code, PluginError, Status, unresolvable, unschedulable
from moorage.framework.runtime.go_arithmetic import proportional
from moorage.plugins.dynamic_resources.allocation_plans import Groups
from moorage.plugins.dynamic_resources.binding import BindingError, ClaimBinder
from moorage.plugins.dynamic_resources.clocks import deadline
from moorage.plugins.dynamic_resources.device_totals import DEVICE_KINDS
from moorage.plugins.dynamic_resources.extended_resources import (
    NOT_STORED,
    ExtendedResourceClaims,
    new_claim,
    wants_backed_resources,
)
from moorage.plugins.dynamic_resources.in_flight_allocations import InFlightAllocations
from moorage.plugins.dynamic_resources.node_device_state import NodeDeviceStates
from moorage.plugins.dynamic_resources.node_extended_resources import NodeExtendedResources
from moorage.plugins.dynamic_resources.outcomes import (
    AllocationPlan,
    GroupOutcome,
    GroupOutcomes,
    Outcomes,
    SearchOutcomes,
)
from moorage.plugins.dynamic_resources.pod_claims import (
    BindingFailedError,
    ClaimError,
    claim_uid,
    claims_of,
    overdue,
    protected,
    ready,
)
from moorage.plugins.dynamic_resources.pod_devices import PodDevices, Variants, work_limit
from moorage.plugins.dynamic_resources.structured.allocator import Allocator, allocation
from moorage.plugins.dynamic_resources.structured.claim_requests import AllocationError
from moorage.plugins.dynamic_resources.structured.device_rules import NEWER_RULES, OLDER_RULES
from moorage.plugins.dynamic_resources.structured.search_results import UNKNOWN, SearchResults, refusal

CANNOT_ALLOCATE = "cannot allocate all claims"
NOT_AVAILABLE = "resourceclaim not available on the node"
INVALID_POOLS = "invalid resource pools were encountered"
STALE_CLAIM = "cannot schedule extended resource claim"
CANNOT_FIT = "cannot fit resource"

DEALLOCATED = "deallocation of ResourceClaim completed"
GROUP_CLAIMS_FREED = "deallocation and deletion of ResourceClaims completed"
DELETED = "deletion of ResourceClaim completed"
NOTHING_TO_DO = "no new claims to deallocate"
NO_HELP = "still not schedulable"
NO_STATE = "not found"

_TEXTS = (CANNOT_ALLOCATE, INVALID_POOLS, NOT_AVAILABLE, CANNOT_FIT)
"""The refusals of searches come first, in the order of their codes."""
_REASONS = tuple(Reason((text,), Code.UNRESOLVABLE) for text in _TEXTS)
_CODES = {text: code for code, text in enumerate(_TEXTS, 1)}

_STATE: StateKey[PodDevices] = StateKey("DynamicResources")
_NO_DEVICES = DependsOn(tables=(DeviceClass,), runs_after_filter=False, reads=())
"""What the answers for a pod without devices depend on."""
_DEFAULT_BINDING_SECONDS = 600.0
_CLAIM_WORK = 12
"""Cost of finding and preparing a claim, in units of work."""


_WRITES: Final = (
    # The scheduler creates claims for extended resources; all claims have a finalizer while in use.
    *Permission.on(RESOURCE_CLAIM, "get", "create", "patch", "delete"),
    *Permission.on(RESOURCE_CLAIM, "patch", part="status"),
    # Since v1.36 writing a claim's allocation requires permission to bind it.
    *Permission.on(RESOURCE_CLAIM, "patch", part="binding"),
)


class DynamicResources:
    """Finds, reserves, writes and reverts the allocations of pods."""

    name = "DynamicResources"
    watched_kinds: tuple[Kind, ...] = DEVICE_KINDS
    write_permissions: Mapping[str, tuple[Permission, ...]] = {
        "post_filter": _WRITES,
        "pod_group_post_filter": _WRITES,
        "pre_bind": _WRITES,
    }

    def __init__(self, args: DynamicResourcesArgs, handle: Handle) -> None:
        self._handle = handle
        self._rules = rules = NEWER_RULES if handle.version.newer_device_rules else OLDER_RULES
        if rules.device_taint_rules_count:
            self.watched_kinds = (*DEVICE_KINDS, DEVICE_TAINT_RULE)
        self._filter_seconds = float(args.filter_timeout or 0)
        binding = args.binding_timeout
        self._binding_seconds = _DEFAULT_BINDING_SECONDS if binding is None else float(binding)
        self._in_flight = handle.objects.shared(InFlightAllocations)
        self._binder = ClaimBinder(handle, self._in_flight, self._binding_seconds)
        self._device_states = NodeDeviceStates(rules)
        self._results = SearchResults()
        self._node_extended_resources = NodeExtendedResources()
        self._extended_claims = ExtendedResourceClaims()

    # Queueing

    def events(self) -> tuple[Interest, ...]:
        """Claims added, updated or deallocated; classes, slices and nodes added or updated."""
        either = Action.ADD | Action.UPDATE
        claims = either | Action.DELETE if self._rules.claim_deletion_helps else either
        return (
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE),
            on(Resource.RESOURCE_CLAIM, claims, self._claim_helps, subjects=_pods_of_claim),
            on(Resource.POD, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM, self._has_claims_now),
            on(Resource.DEVICE_CLASS, either),
            on(Resource.RESOURCE_SLICE, either),
        )

    def _claim_helps(self, pod: Pod, old: ResourceClaim | None, new: ResourceClaim | None) -> bool:
        """Whether a claim frees devices, or is the pod's own and its status has changed."""
        freed = _frees_devices(old, new)
        if new is None:
            return freed
        if not freed and new.namespace != pod.namespace:
            return False
        try:
            own = claims_of(pod, self._handle.objects.of(ResourceClaim))
        except ClaimError:
            return False
        if freed:
            return True
        is_own = any(claim_uid(claim) == claim_uid(new) for claim in own)
        return is_own and (old is None or old.status != new.status)

    def _has_claims_now(self, pod: Pod, old: Pod, new: Pod) -> bool:
        return new.uid == pod.uid and self.pre_enqueue(new) is None

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Gate a pod until its claims exist."""
        if not pod.spec.resource_claims:
            return None
        try:
            claims_of(pod, self._handle.objects.of(ResourceClaim))
        except ClaimError as error:
            return unresolvable(str(error))
        return None

    # Claims of the pod

    def depends_on(self, pod: Pod, objects: Objects) -> DependsOn | None:
        """Does nothing for pods without device requests."""
        if pod.spec.resource_claims or wants_backed_resources(pod, objects.of(DeviceClass)):
            return None
        return _NO_DEVICES

    def pre_filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """Collect the pod's claims, and the devices that are allocated already."""
        cycle.write(_STATE, PodDevices())  # post-filter checks whether this pre-filter has run
        try:
            state = self._gather(pod, nodes)
        except ClaimError as error:
            return unresolvable(str(error))
        except WorkLimitError as error:
            raise PluginError(self.name, "pre_filter", str(error)) from None
        if not state.claims:
            return SKIP
        cycle.write(_STATE, state)
        return None

    def _gather(self, pod: Pod, nodes: Nodes) -> PodDevices:
        """The pod's claims in this cycle; ClaimError if the pod has to wait for one of them."""
        objects = nodes.objects
        claims, classes = objects.of(ResourceClaim), objects.of(DeviceClass)
        state = PodDevices(claims_of(pod, claims), work=WorkBudget(work_limit(len(nodes.snapshot))))
        if wants_backed_resources(pod, classes):
            state.claims.append(self._extended_claims.existing(pod, claims) or new_claim(pod))
            state.has_extended = True
        state.work.spend(_CLAIM_WORK * len(state.claims))
        waiting = False
        for place, claim in enumerate(state.claims):
            given = claim.status.allocation
            if given is None:
                waiting = True
                if self._in_flight.allocation(claim_uid(claim)) is not None:
                    raise ClaimError(f"resource claim {claim.key} is in the process of being allocated")
                if claim is not state.extended:
                    _check_classes(claim, classes)
            elif given.node_selector is not None:
                state.homes[place] = RequiredNodes((), node_terms(given.node_selector))
        if waiting:
            self._refresh(objects)
            state.allocator = Allocator(
                self._device_states.inventory,
                self._device_states.allocated,
                state.work,
                self._results,
                lambda: deadline(self._handle.clock, self._filter_seconds),
                self._rules,
            )
        return state

    def _refresh(self, objects: Objects) -> None:
        self._device_states.refresh(objects, self._in_flight.claims())

    def catch_up(self, nodes: Nodes) -> None:
        """Read new slices: 40,000 devices take a second, for which the first pod with a claim would wait."""
        self._refresh(nodes.objects)
        self._device_states.of(nodes)

    # Filtering

    def filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> FilterResult:
        """Reject nodes where claims cannot be used or allocated; keep the plans for the others."""
        try:
            state = cycle.read_or(_STATE, lambda: self._gather(pod, nodes))
            if not state.claims:
                return ALL
            if state.extended is not None and state.extended.spec.devices.requests:
                everywhere = np.ones(len(nodes), bool)
                return refuse_where(everywhere, STALE_CLAIM, resolvable=False)
            return self._filter(state, pod, nodes)
        except ClaimError as error:
            return refuse_where(np.ones(len(nodes), bool), str(error), resolvable=False)
        except (AllocationError, WorkLimitError) as error:
            raise PluginError(self.name, "filter", str(error)) from None

    def _filter(self, state: PodDevices, pod: Pod, nodes: Nodes) -> FilterResult:
        """One search for each group of equivalent nodes: the result for the first node is used for all."""
        variants = state.variants_in(pod, nodes.objects.of(DeviceClass))
        outcomes: Outcomes
        if state.allocator is None or state.has_extended:
            outcomes, numbers = self._outcomes_by_group(state, variants, nodes)
        else:
            outcomes, numbers = self._outcomes_of_searches(state, state.allocator, variants, nodes)
        codes = outcomes.refusals[numbers]
        for place, mask in self._unusable(state, nodes).items():
            missing = mask & outcomes.uses_claims[numbers]
            if missing.any():
                state.unavailable.add(place)
                codes[missing] = _CODES[NOT_AVAILABLE]
        has_refusals = bool(codes.any())
        if state.allocator is not None:
            plans = state.plans_for(nodes.snapshot, self._device_states.inventory, outcomes)
            plans.note(nodes, numbers, codes == 0 if has_refusals else None)
        return FilterResult(codes, _REASONS) if has_refusals else ALL

    def _outcomes_by_group(
        self, state: PodDevices, variants: Variants, nodes: Nodes
    ) -> tuple[GroupOutcomes, NDArray[np.integer]]:
        """An outcome for each group of nodes with equal requests and devices, and the group of each node."""
        codes, size = np.zeros(len(nodes), np.intp), 1
        if state.allocator is not None:
            codes, size = codes + self._device_states.of(nodes), len(self._device_states)
        if state.has_extended:
            codes, size = (
                codes + size * self._node_extended_resources.of(nodes),
                size * len(self._node_extended_resources),
            )
        groups = Groups(codes, size)
        there, rows = nodes.snapshot.nodes, nodes.row_numbers()[groups.firsts].tolist()
        found = [_find_devices(state, variants, there[row]) for row in rows]
        return state.outcomes, groups.numbers + state.outcomes.add(found)

    def _outcomes_of_searches(
        self, state: PodDevices, allocator: Allocator, variants: Variants, nodes: Nodes
    ) -> tuple[SearchOutcomes, NDArray[np.integer]]:
        """The same where the pod's requests are equal on all nodes: only new device states are searched."""
        codes, serials = self._device_states.of(nodes), self._device_states.serials
        if state.search_outcomes is None:
            claim_requests = variants.everywhere()
            state.search_outcomes = SearchOutcomes(claim_requests, allocator.results_for(claim_requests))
        outcomes = state.search_outcomes
        by_code = outcomes.results.numbers(serials)
        numbers = by_code[codes]
        unknown = np.flatnonzero(numbers == UNKNOWN)
        if len(unknown):
            there, rows = nodes.snapshot.nodes, nodes.row_numbers()[unknown]
            for place in Groups(codes[unknown], len(by_code)).firsts:
                result = allocator.find(there[rows[place]], outcomes.claim_requests)
                code = int(codes[unknown[place]])
                by_code[code] = outcomes.results.note(code, int(serials[code]), result)
            numbers = by_code[codes]
        return outcomes, numbers

    def _unusable(self, state: PodDevices, nodes: Nodes) -> dict[int, NDArray[np.bool_]]:
        """On which nodes each allocated claim cannot be used; none for claims that can be used everywhere."""
        unusable: dict[int, NDArray[np.bool_]] = {}
        for place, claim in enumerate(state.claims):
            if claim.status.allocation is None:
                continue
            if place in state.homes:
                unusable[place] = ~nodes.required_by(state.homes[place])
            if self._failed(claim):
                unusable[place] = np.ones(len(nodes), bool)
        return unusable

    def _failed(self, claim: ResourceClaim) -> bool:
        """Whether an allocated claim's devices will not get ready, or have timed out."""
        try:
            return not ready(claim) and overdue(claim, self._binding_seconds, self._handle.clock.utc_now())
        except BindingFailedError:
            return True

    # Making room

    def post_filter(
        self, cycle: CycleState, pod: Pod, nodes: Nodes, diagnosis: Diagnosis
    ) -> PostFilterResult | Status:
        """Deallocate a claim that only this pod uses and that some node could not use."""
        state = cycle.read(_STATE)
        if state is None:
            return unresolvable(NO_STATE)
        if not state.claims:
            return self._no_help(NOTHING_TO_DO)
        freed = _unused_claim(state, pod)
        if freed is None:
            return self._no_help(NO_HELP)
        reason = DELETED if isinstance(freed, DeleteClaim) else DEALLOCATED
        return PostFilterResult(unschedulable(reason), effects=(freed,))

    def _no_help(self, text: str) -> Status:
        return unschedulable() if self._rules.post_filter_is_silent else unschedulable(text)

    def pod_group_post_filter(
        self, cycle: CycleState, group: PodGroupInfo, dry_run: GroupDryRun
    ) -> PodGroupPostFilterResult | Status:
        """As `post_filter`, for each member of a group that has no topology constraint."""
        if group.is_composite or group.group.spec.scheduling_constraints is not None:
            return unschedulable()
        cycles = cycle.read(MEMBER_CYCLES) or {}
        states = ((pod, cycles[pod.uid].read(_STATE)) for pod in group.pods if pod.uid in cycles)
        found = (_unused_claim(state, pod) for pod, state in states if state is not None)
        return PodGroupPostFilterResult(
            unschedulable(GROUP_CLAIMS_FREED), effects=tuple(each for each in found if each is not None)
        )

    # Scoring

    def score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Scores:
        """The more of the preferred alternatives a node has, the higher; 0 for pods without claims."""
        state = cycle.read(_STATE)
        return np.zeros(len(nodes), np.int64) if state is None else state.scores(nodes)

    def normalize_score(self, cycle: CycleState, pod: Pod, nodes: Nodes, scores: Scores) -> Scores:
        """The best node gets 100."""
        return proportional(scores)

    # Reserving

    def reserve(self, cycle: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Keep the devices found for the chosen node as in-flight allocations."""
        state = cycle.read(_STATE)
        if state is None or state.allocator is None:
            return None
        found = None if state.plans is None else state.plans.get(node_name)
        if found is None:
            if all(state.claims[place] is state.extended for place in state.unallocated()):
                return None  # the node has the extended resources itself
            return Status(Code.ERROR, ("claim allocation not found for node",))
        plan, node_devices = found
        state.plan = plan
        for number, place in enumerate(list(state.unallocated())):
            claim_request = plan.claim_requests[number]
            if state.claims[place] is state.extended and plan.extended is None:
                continue
            given = allocation(
                claim_request.claim, claim_request, plan.picks[number], node_devices, node_name, self._rules
            )
            state.allocations[place] = given
            uid = state.in_flight_uids[place] = state.in_flight_uid(place, pod)
            claim = protected(claim_request.claim)
            self._in_flight.start(uid, replace(claim, status=replace(claim.status, allocation=given)))
        return None

    def unreserve(self, cycle: CycleState, pod: Pod, node_name: str) -> None:
        """Revert all allocations and reservations."""
        state = cycle.read(_STATE)
        if state is not None:
            self._binder.undo(state, pod)

    def pre_bind_pre_flight(self, cycle: CycleState, pod: Pod, node_name: str) -> PreFlight:
        """Nothing to do for a pod without claims."""
        state = cycle.read(_STATE)
        return SKIP_IN_PARALLEL if state is None or not state.claims else IN_PARALLEL

    async def pre_bind(self, cycle: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Write allocations and reservations, and wait for devices that take time."""
        state = cycle.read(_STATE)
        if state is None or not state.claims:
            return None
        try:
            await self._binder.bind(state, pod)
        except (BindingError, BindingFailedError) as error:
            return Status(Code.ERROR, (str(error),))
        return None


def _frees_devices(old: ResourceClaim | None, new: ResourceClaim | None) -> bool:
    """Whether a claim that had devices has none now."""
    if old is None or old.status.allocation is None:
        return False
    return new is None or new.status.allocation is None


def _pods_of_claim(pod: Pod, old: ResourceClaim | None, new: ResourceClaim | None) -> tuple[str, ...] | None:
    """Which of the pods with a spec a claim may help; None: all of them, if it frees devices or is named."""
    if new is None or _frees_devices(old, new):
        return None
    if new.namespace != pod.namespace:
        return ()
    if any(each.resource_claim_name == new.name for each in pod.spec.resource_claims):
        return None
    if new.controller is None:
        return ()
    return (new.controller.uid,) if new.controller.uid else None


def _find_devices(state: PodDevices, variants: Variants, node: Node) -> GroupOutcome:
    """Search for the pod's devices on a node; AllocationError if its requests are invalid."""
    variant = variants.of(node)
    if variant is None:
        return GroupOutcome(_CODES[CANNOT_FIT])
    claim_requests, extended = variant
    if extended is None and not state.user_claims:
        return GroupOutcome()
    if state.allocator is None:
        return GroupOutcome(uses_claims=True)
    result = state.allocator.find(node, claim_requests)
    if result.picks is None:
        return GroupOutcome(refusal(result))
    return GroupOutcome(uses_claims=True, plan=AllocationPlan(claim_requests, result.picks, extended))


def _check_classes(claim: ResourceClaim, classes: ObjectTable[DeviceClass]) -> None:
    """Whether all classes that a claim names exist; ClaimError if the pod has to wait for one."""
    for request in claim.spec.devices.requests:
        named = [(f"{request.name}/{each.name}", each.device_class_name) for each in request.first_available]
        if request.exactly is not None:
            named = [(request.name, request.exactly.device_class_name)]
        if not named:
            raise ClaimError(f"resource claim {claim.key}, request {request.name}: unknown request type")
        for name, device_class in named:
            if classes.get("", device_class) is None:
                raise ClaimError(f"request {name}: device class {device_class} does not exist")


def _unused_claim(state: PodDevices, pod: Pod) -> WriteClaimStatus | DeleteClaim | None:
    """How to free a claim that only this pod uses and that some node could not use."""
    for place in sorted(state.unavailable):
        claim = state.claims[place]
        users = claim.status.reserved_for
        if claim is not state.extended and (not users or [user.uid for user in users] == [pod.uid]):
            return WriteClaimStatus(claim, ResourceClaimStatus())
    extended = state.extended
    return DeleteClaim(extended) if extended is not None and extended.name != NOT_STORED else None
