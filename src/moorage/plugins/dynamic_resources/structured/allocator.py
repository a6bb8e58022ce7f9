"""From claims to allocations: one search per distinct device state, and the result as the API has it.

Nodes whose pools have the same shape, with the same places allocated, have equal states: the search runs
once and its result is read with each node's own devices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import NAMESPACE_URL, uuid5

from msgspec.structs import replace

from moorage.api.base import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from moorage.api.devices import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from moorage.api.node import Node
from moorage.api.selectors import NODE_NAME_FIELD, Operator
from moorage.cel.budget import WorkBudget
from moorage.plugins.dynamic_resources.structured.allocated_devices import AllocatedDevices
from moorage.plugins.dynamic_resources.structured.claim_requests import (
    AllocationError,
    Alternative,
    ClaimRequest,
)
from moorage.plugins.dynamic_resources.structured.device_rules import OLDER_RULES, DeviceRules
from moorage.plugins.dynamic_resources.structured.inventory import Inventory, NodeDevices
from moorage.plugins.dynamic_resources.structured.pools import DeviceEntry
from moorage.plugins.dynamic_resources.structured.search import OutOfTimeError, Pick, Search
from moorage.plugins.dynamic_resources.structured.search_results import (
    ClaimResults,
    Picks,
    SearchResult,
    SearchResults,
    search_result,
)

FROM_CLASS, FROM_CLAIM = "FromClass", "FromClaim"

_LOOKUP_WORK, _SEARCH_WORK = 4, 40
"""Cost of looking up a kept result, and of starting a search, in units of work."""


class Allocator:
    """Searches for devices, in one cycle: its inputs must not change while it is in use.

    work: the limit on the work of the searches.
    results: those of earlier searches.
    deadline: called when a search starts; returns a function that returns whether its time is over.
    """

    def __init__(
        self,
        inventory: Inventory,
        allocated: AllocatedDevices,
        work: WorkBudget,
        results: SearchResults,
        deadline: Callable[[], Callable[[], bool]] = lambda: lambda: False,
        rules: DeviceRules = OLDER_RULES,
    ) -> None:
        self._inventory = inventory
        self._work = work
        self._allocated = allocated
        self._deadline = deadline
        self._rules = rules
        self._all_results = results
        self._results: dict[tuple[ClaimRequest, ...], ClaimResults] = {}

    def results_for(self, claim_requests: tuple[ClaimRequest, ...]) -> ClaimResults:
        """The kept results for claims."""
        results = self._results.get(claim_requests)
        if results is None:
            results = self._results[claim_requests] = self._all_results.of(claim_requests)
        return results

    def find(self, node: Node, claim_requests: tuple[ClaimRequest, ...]) -> SearchResult:
        """Devices for claims on a node; AllocationError if the error is the same on all nodes."""
        self._work.spend(_LOOKUP_WORK)
        results = self.results_for(claim_requests)
        node_devices = self._inventory.seen_from(node)
        result = results.get(results.key(node_devices, self._allocated, self._work))
        if result is None:
            picks = self._search(node, claim_requests, node_devices, results)
            result = search_result(picks, meets_invalid_pools=node_devices.meets_invalid_pools)
            results.put(results.key(node_devices, self._allocated, self._work), result)
        return result

    def _search(
        self,
        node: Node,
        claim_requests: tuple[ClaimRequest, ...],
        node_devices: NodeDevices,
        results: ClaimResults,
    ) -> Picks | None:
        self._work.spend(_SEARCH_WORK)
        search = Search(
            claim_requests,
            node_devices,
            self._allocated,
            self._work,
            results.reading,
            results.candidates,
            self._deadline(),
            self._rules,
        )
        try:
            return search.run()
        except OutOfTimeError:
            raise AllocationError(f"node {node.name}: timed out trying to allocate devices") from None


def allocation(
    claim: ResourceClaim,
    claim_request: ClaimRequest,
    picks: Sequence[Pick],
    node_devices: NodeDevices,
    node_name: str,
    rules: DeviceRules = OLDER_RULES,
) -> AllocationResult:
    """The allocation of a claim on a node: the devices that were picked, as the node sees them."""
    entries = [node_devices.entry(pick.index) for pick in picks]
    results = tuple(
        _result(claim, pick, entry, place)
        for place, (pick, entry) in enumerate(zip(picks, entries, strict=True))
    )
    config = _config(claim, claim_request, picks, rules)
    devices = DeviceAllocationResult(results=results, config=config)
    return AllocationResult(devices=devices, node_selector=_node_selector(entries, node_name))


def _result(
    claim: ResourceClaim, pick: Pick, entry: DeviceEntry, place: int
) -> DeviceRequestAllocationResult:
    device = entry.device
    return DeviceRequestAllocationResult(
        request=pick.alternative.full_name,
        driver=entry.id.driver,
        pool=entry.id.pool,
        device=entry.id.device,
        admin_access=pick.alternative.admin,
        tolerations=pick.alternative.tolerations,
        binding_conditions=device.binding_conditions,
        binding_failure_conditions=device.binding_failure_conditions,
        share_id=_share_id(claim, entry, place) if pick.shared else None,
        consumed_capacity=dict(pick.amounts),
    )


def _share_id(claim: ResourceClaim, entry: DeviceEntry, place: int) -> str:
    """The id of a share: random, but reproducible in replays."""
    return str(uuid5(NAMESPACE_URL, f"{claim.metadata.uid or claim.key}/{entry.id}/{place}"))


def _config(
    claim: ResourceClaim, claim_request: ClaimRequest, picks: Sequence[Pick], rules: DeviceRules
) -> tuple[DeviceAllocationConfiguration, ...]:
    """Settings of the classes, once per class, then those of the claim that apply to what was chosen."""
    chosen: list[Alternative] = []
    for pick in picks:
        if pick.alternative not in chosen:
            chosen.append(pick.alternative)
    by_request = {alternative.request: alternative for alternative in chosen}
    requests_of: dict[str, list[Alternative]] = {}
    for alternatives in claim_request.requests:
        alternative = by_request.get(alternatives[0].request)
        if alternative is not None:
            requests_of.setdefault(alternative.device_class.name, []).append(alternative)
    config = [
        DeviceAllocationConfiguration(
            source=FROM_CLASS,
            requests=tuple(alternative.full_name for alternative in users),
            opaque=each.opaque,
        )
        for users in requests_of.values()
        for each in users[0].device_class.spec.config
    ]
    for each in claim.spec.devices.config:
        times = 1 if not each.requests else _shared_by(each.requests, by_request)
        if rules.config_for_all_names_none:
            times = min(times, 1)
        config += [
            DeviceAllocationConfiguration(source=FROM_CLAIM, requests=each.requests, opaque=each.opaque)
        ] * times
    if rules.config_for_all_names_none:
        config = [
            replace(each, requests=()) if _names_all(each.requests, claim, by_request) else each
            for each in config
        ]
    return tuple(config)


def _names_all(requests: tuple[str, ...], claim: ResourceClaim, chosen: dict[str, Alternative]) -> bool:
    """Whether some settings apply to all requests of a claim."""
    return all(
        each.name in requests or (each.name in chosen and chosen[each.name].full_name in requests)
        for each in claim.spec.devices.requests
    )


def _shared_by(requests: tuple[str, ...], chosen: dict[str, Alternative]) -> int:
    """Number of requests that some settings apply to: they are listed once for each."""
    return sum(name in requests or alternative.full_name in requests for name, alternative in chosen.items())


def _node_selector(entries: Sequence[DeviceEntry], node_name: str) -> NodeSelector | None:
    """Where the devices can be used; None: everywhere."""
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for entry in entries:
        spec = entry.slice.spec
        place = entry.device if spec.per_device_node_selection else spec
        if place.node_name is not None or entry.device.binds_to_node:
            here = NodeSelectorRequirement(key=NODE_NAME_FIELD, operator=Operator.IN, values=(node_name,))
            return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(here,)),))
        if place.node_selector is None:
            continue
        for term in place.node_selector.node_selector_terms:
            fields += [each for each in term.match_fields if not _listed(each, fields)]
            expressions += [each for each in term.match_expressions if not _listed(each, expressions)]
    if not fields and not expressions:
        return None
    term = NodeSelectorTerm(match_fields=tuple(fields), match_expressions=tuple(expressions))
    return NodeSelector(node_selector_terms=(term,))


def _listed(requirement: NodeSelectorRequirement, others: list[NodeSelectorRequirement]) -> bool:
    return any(
        (other.key, other.operator, frozenset(other.values))
        == (requirement.key, requirement.operator, frozenset(requirement.values))
        for other in others
    )
