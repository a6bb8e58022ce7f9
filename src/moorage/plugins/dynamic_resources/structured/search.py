"""The search for devices: first fit, one device after another, with backtracking.

Claims, requests and alternatives are tried in their order, devices in the order of the node's; the
first complete solution is taken. Within a request devices are only tried in ascending order, because their
order makes no difference. A stack of steps, not recursion, holds what can be reverted.

Invariant: what the steps on the stack took is exactly what `_taking`, `_capacity`, `_counters`, the
constraints and the results show.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from moorage.api.devices import DeviceAttribute
from moorage.api.quantity import Quantity
from moorage.cel.budget import WorkBudget
from moorage.plugins.dynamic_resources.structured.allocated_devices import AllocatedDevices
from moorage.plugins.dynamic_resources.structured.candidates import (
    CANDIDATE,
    REJECTED,
    UNKNOWN,
    BlockCandidates,
    Candidates,
)
from moorage.plugins.dynamic_resources.structured.claim_requests import (
    AllocationError,
    Alternative,
    ClaimRequest,
)
from moorage.plugins.dynamic_resources.structured.constraints import (
    ClaimConstraint,
    attribute_of,
    constraint,
)
from moorage.plugins.dynamic_resources.structured.consumable_capacity import (
    consumed,
)
from moorage.plugins.dynamic_resources.structured.device_blocks import Block
from moorage.plugins.dynamic_resources.structured.device_checks import DeviceChecks
from moorage.plugins.dynamic_resources.structured.device_kinds import Reading
from moorage.plugins.dynamic_resources.structured.device_rules import OLDER_RULES, DeviceRules
from moorage.plugins.dynamic_resources.structured.inventory import NodeDevices
from moorage.plugins.dynamic_resources.structured.pools import DeviceId
from moorage.plugins.dynamic_resources.structured.shared_counters import Counters

MAX_RESULTS = 32
"""Maximum number of devices of a claim."""

TAKE_WORK, CONSTRAINT_WORK, COUNTER_WORK = 16, 8, 2
"""Work of taking a device, and for it of evaluating a constraint, and of checking a counter."""

BLOCK_WORK = 2
"""Work of looking for candidates in a block."""


class OutOfTimeError(Exception):
    """The search was aborted."""


@dataclass(frozen=True, slots=True, eq=False)
class Pick:
    """A device for a request, by its place on the node; `amounts` is what it takes of a shared device."""

    alternative: Alternative
    index: int
    shared: bool
    amounts: dict[str, Quantity]


class _Request:
    """A step: choose an alternative for a request."""

    __slots__ = ("alternatives", "claim", "failed", "number", "place")

    def __init__(self, claim: int, number: int, alternatives: tuple[Alternative, ...]) -> None:
        self.claim = claim
        self.number = number
        self.alternatives = alternatives
        self.place = -1
        self.failed = False
        """Whether some alternative failed for another reason than the size of the claim."""


class _Device:
    """A step: take one device for an alternative, and how to revert it."""

    __slots__ = ("added", "alternative", "counted", "number", "request", "start", "taken")

    def __init__(self, request: _Request, alternative: Alternative, number: int, start: int) -> None:
        self.request = request
        self.alternative = alternative
        self.number = number
        self.start = start
        self.taken = -1
        self.counted = False
        self.added = 0


class Search:
    """One search, for some claims on one node."""

    def __init__(
        self,
        claim_requests: tuple[ClaimRequest, ...],
        node_devices: NodeDevices,
        allocated: AllocatedDevices,
        work: WorkBudget,
        reading: Reading,
        candidates: Candidates,
        out_of_time: Callable[[], bool] = lambda: False,
        rules: DeviceRules = OLDER_RULES,
    ) -> None:
        self._claim_requests = claim_requests
        self._work = work
        self._candidates = candidates
        self._node_devices = node_devices
        self._allocated = allocated
        self._out_of_time = out_of_time
        self._rules = rules
        self._counters = Counters(allocated)
        self._checks = DeviceChecks(allocated, self._counters, work, reading, rules)
        self._taking: dict[DeviceId, set[int]] = {}
        self._capacity: dict[DeviceId, list[dict[str, Quantity]]] = {}
        self._constraints: list[list[ClaimConstraint]] = []
        self._results: list[list[Pick]] = []
        self._everything: dict[Alternative, list[int]] = {}
        """For alternatives that request all devices: the devices."""

    def run(self) -> tuple[tuple[Pick, ...], ...] | None:
        """The devices for each claim, or None if there is no solution."""
        for claim_request in self._claim_requests:
            self._prepare(claim_request)
        stack: list[_Request | _Device] = []
        if self._advance(stack, 0, -1):
            return self._solution()
        while stack:
            if self._out_of_time():
                raise OutOfTimeError
            step = stack[-1]
            if isinstance(step, _Device):
                if not self._take_next(step):
                    stack.pop()
                    step.request.failed |= step.number == 0
                elif self._after(stack, step):
                    return self._solution()
            elif not self._choose_next(stack, step):
                self._step_back(stack, step)
        return None

    def _solution(self) -> tuple[tuple[Pick, ...], ...]:
        return tuple(map(tuple, self._results))

    # Before the search

    def _prepare(self, claim_request: ClaimRequest) -> None:
        fewest = 0
        for alternatives in claim_request.requests:
            for alternative in alternatives:
                if alternative.all:
                    self._everything[alternative] = self._find_all(claim_request, alternative)
            fewest += min(map(self._count, alternatives))
        if fewest > MAX_RESULTS:
            raise AllocationError(
                f"claim {claim_request.claim.key}: number of requested devices {fewest} "
                f"exceeds the claim limit of {MAX_RESULTS}"
            )
        made = [constraint(each, self._rules) for each in claim_request.claim.spec.devices.constraints]
        self._constraints.append([each for each in made if each is not None])
        self._results.append([])

    def _find_all(self, claim_request: ClaimRequest, alternative: Alternative) -> list[int]:
        chosen: list[int] = []
        index = 0
        for view in self._node_devices.views:
            if not view.usable:
                pool_state = "being updated" if view.incomplete else "invalid"
                raise AllocationError(
                    f"claim {claim_request.claim.key}, request {alternative.own_name}: "
                    f"asks for all devices, but resource pool {'/'.join(view.id)} is currently {pool_state}"
                )
            self._work.spend(len(view.entries) * alternative.selector_work)
            for entry, is_reachable in zip(view.entries, view.reachable, strict=True):
                if self._checks.is_one_of_all(claim_request, alternative, entry, is_reachable):
                    chosen.append(index)
                index += 1
        return chosen

    def _count(self, alternative: Alternative) -> int:
        return len(self._everything[alternative]) if alternative.all else alternative.count

    # Steps

    def _advance(self, stack: list[_Request | _Device], claim: int, request: int) -> bool:
        """Go on after a request: to the next one, the next claim, or the end (True)."""
        request += 1
        while claim < len(self._claim_requests):
            if request < len(self._claim_requests[claim].requests):
                stack.append(_Request(claim, request, self._claim_requests[claim].requests[request]))
                return False
            claim, request = claim + 1, 0
        return True

    def _choose_next(self, stack: list[_Request | _Device], step: _Request) -> bool:
        """Start the next alternative that fits into the claim, if there is one."""
        while step.place + 1 < len(step.alternatives):
            step.place += 1
            alternative = step.alternatives[step.place]
            count = self._count(alternative)
            if not count:
                step.failed = True
            elif len(self._results[step.claim]) + count <= MAX_RESULTS:
                stack.append(_Device(step, alternative, 0, 0))
                return True
        return False

    def _step_back(self, stack: list[_Request | _Device], step: _Request) -> None:
        """No alternative is left. Other devices do not help a claim that is too large as a whole."""
        stack.pop()
        if step.failed:
            return
        while stack:
            above = stack[-1]
            if isinstance(above, _Request):
                more = above.place + 1 < len(above.alternatives)
                if above.claim != step.claim or more or above.failed:
                    return
            elif above.request.claim != step.claim:
                return
            else:
                self._give_back(above)
            stack.pop()

    def _after(self, stack: list[_Request | _Device], step: _Device) -> bool:
        """Go on after a device: to the request's next one, or to the next request. True at the end."""
        if step.number + 1 < self._count(step.alternative):
            stack.append(_Device(step.request, step.alternative, step.number + 1, step.taken + 1))
            return False
        return self._advance(stack, step.request.claim, step.request.number)

    def _take_next(self, step: _Device) -> bool:
        """Give back what the step has, and take the next device that fits."""
        alternative = step.alternative
        if step.taken >= 0:
            self._give_back(step)
            if alternative.all:
                return False
        if alternative.all:
            return self._take(step, self._everything[alternative][step.number])
        for index in self._possible(step):
            if self._take(step, index):
                step.start = index + 1
                return True
        return False

    def _possible(self, step: _Device) -> Iterator[int]:
        """The devices that may be taken, from the step's first on: candidates with the required values."""
        request, alternative = step.request, step.alternative
        key = (request.claim, request.number, alternative.place)
        required = self._required_values(step)
        starts, blocks = self._node_devices.starts, self._node_devices.blocks
        for number in range(max(bisect_right(starts, step.start) - 1, 0), len(blocks)):
            self._work.spend(BLOCK_WORK)
            block, start = blocks[number], starts[number]
            known = self._candidates.of(key, self._allocated.state(block), block)
            if not all(known.has_value(block, name, value) for name, value in required):
                continue
            for place in self._places(step, block, known, max(step.start - start, 0)):
                entry = block.entries[place]
                if all(attribute_of(entry, name) == value for name, value in required):
                    yield start + place

    def _places(self, step: _Device, block: Block, known: BlockCandidates, first: int) -> Iterator[int]:
        """The places of the candidates of a block; devices that are not known are evaluated."""
        if known.complete is not None:
            yield from known.complete[bisect_left(known.complete, first) :]
            return
        alternative, verdicts = step.alternative, known.verdicts
        claim_request = self._claim_requests[step.request.claim]
        for place in range(first, len(block.entries)):
            if verdicts[place] == UNKNOWN:
                if self._is_taken(step, block.entries[place].id):
                    continue
                self._work.spend(alternative.selector_work)
                is_candidate = self._checks.is_candidate(claim_request, alternative, block, place)
                known.note(place, CANDIDATE if is_candidate else REJECTED)
            if verdicts[place] == CANDIDATE:
                yield place

    def _required_values(self, step: _Device) -> list[tuple[str, DeviceAttribute]]:
        """The attributes, with their values, that the next device of a step must have."""
        alternative = step.alternative
        values = [
            each.required_value(alternative.request, alternative.name)
            for each in self._constraints[step.request.claim]
        ]
        return [value for value in values if value is not None]

    # Checking one device

    def _is_taken(self, step: _Device, device: DeviceId) -> bool:
        """Whether the search has taken a device that cannot be taken again."""
        taking = self._taking.get(device)
        if not taking:
            return False
        return not step.alternative.admin or step.request.claim in taking

    def _available(self, step: _Device, device: DeviceId) -> bool:
        """Whether a device is not in use. Admin access ignores allocations to other claims."""
        if self._is_taken(step, device):
            return False
        held = self._allocated.of(device)
        return step.alternative.admin or held is None or not held.exclusive

    def _take(self, step: _Device, index: int) -> bool:
        """Take a device if all checks pass; nothing is changed if not."""
        block, place = self._node_devices.locate(index)
        entry = block.entries[place]
        alternative, claim = step.alternative, step.request.claim
        self._work.spend(TAKE_WORK + CONSTRAINT_WORK * len(self._constraints[claim]))
        shared = entry.device.allow_multiple_allocations
        if not self._available(step, entry.id):
            return False
        if not alternative.tolerates(entry.device.taints):
            return False
        is_shared = entry.id in self._capacity or self._checks.is_shared(entry)
        counts = bool(entry.device.consumes_counters) and not is_shared
        view = block.view_of[place]
        if counts:
            self._work.spend(COUNTER_WORK * len(view.counters or ()))
        if counts and not self._counters.take(view, entry):
            return False
        step.taken, step.counted, step.added = index, counts, 0
        for each in self._constraints[claim]:
            if not each.add(alternative.request, alternative.name, entry):
                self._undo_checks(step)
                if alternative.all:
                    raise AllocationError(
                        f"claim {self._claim_requests[claim].claim.key}, request {alternative.own_name}: "
                        f"cannot add device {entry.id} because a claim constraint would not be satisfied"
                    )
                return False
            step.added += 1
        if not self._checks.has_capacity(alternative, entry, self._capacity.get(entry.id, ())):
            self._undo_checks(step)
            return False
        amounts: dict[str, Quantity] = {}
        if shared:
            amounts = consumed(entry.device.capacity, alternative.capacity)
            self._capacity.setdefault(entry.id, []).append(amounts)
        else:
            self._taking.setdefault(entry.id, set()).add(claim)
        self._results[claim].append(Pick(alternative, index, shared, amounts))
        return True

    def _give_back(self, step: _Device) -> None:
        if step.taken < 0:
            return
        entry = self._node_devices.entry(step.taken)
        pick = self._results[step.request.claim].pop()
        if pick.shared:
            shares = self._capacity[entry.id]
            shares.pop()
            if not shares:
                del self._capacity[entry.id]
        else:
            self._taking[entry.id].discard(step.request.claim)
        self._undo_checks(step)

    def _undo_checks(self, step: _Device) -> None:
        alternative = step.alternative
        for each in reversed(self._constraints[step.request.claim][: step.added]):
            each.remove(alternative.request, alternative.name)
        if step.counted:
            block, place = self._node_devices.locate(step.taken)
            self._counters.give_back(block.view_of[place], block.entries[place])
        step.taken, step.counted, step.added = -1, False, 0
