"""Results of searches for devices, kept from one attempt to the next.

A result depends only on the requests of the claims and on what the search reads of the node's pools. Claims
from one ResourceClaimTemplate have equal requests and share results. A search that reads a device's own
attributes, such as a serial number, has another result on every node: kept results let the attempts of such a
pod, each with a limit on its work, get through all nodes in the end.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.cel.budget import WorkBudget
from moorage.cluster.columns import Column
from moorage.plugins.dynamic_resources.structured.allocated_devices import AllocatedDevices
from moorage.plugins.dynamic_resources.structured.candidates import Candidates
from moorage.plugins.dynamic_resources.structured.claim_requests import ClaimRequest
from moorage.plugins.dynamic_resources.structured.constraints import constrained_attribute
from moorage.plugins.dynamic_resources.structured.device_kinds import CONTENT_ENCODER, Reading
from moorage.plugins.dynamic_resources.structured.inventory import NodeDevices
from moorage.plugins.dynamic_resources.structured.search import Pick

MAX_RESULTS: Final = 100_000
"""Maximum number of results kept, over all claims."""

MAX_CONTENTS: Final = 128
"""Maximum number of distinct contents of claims for which results are kept."""

UNKNOWN: Final = -1
"""The number of a result that is not known."""

Picks = tuple[tuple[Pick, ...], ...]
"""The devices of each claim."""


MAX_ALTERNATIVES: Final = 8
"""Maximum number of alternatives of a request, and the score of the first."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of a search in the pools of a node."""

    picks: Picks | None
    """The devices of each claim; None if there are not enough."""
    meets_invalid_pools: bool
    """Whether the node sees pools that cannot be used because of mistakes of their drivers."""


def score(picks: Picks) -> int:
    """The score of the alternatives of all claims; each counts once, for any number of devices."""
    return sum(
        MAX_ALTERNATIVES - alternative.place
        for each in picks
        for alternative in {pick.alternative for pick in each if pick.alternative.name}
    )


DEVICES_FOUND, NO_DEVICES, INVALID_POOLS = range(3)
"""What a result is: devices, not enough of them, or not enough of them where pools are invalid."""


def refusal(result: SearchResult) -> int:
    """What a result is, as a code."""
    if result.picks is not None:
        return DEVICES_FOUND
    return INVALID_POOLS if result.meets_invalid_pools else NO_DEVICES


_NOTHING_FOUND: Final = {invalid: SearchResult(None, invalid) for invalid in (False, True)}


def search_result(picks: Picks | None, *, meets_invalid_pools: bool) -> SearchResult:
    """A result; the same object for all searches that found nothing."""
    invalid = meets_invalid_pools
    return _NOTHING_FOUND[invalid] if picks is None else SearchResult(picks, invalid)


class ClaimResults:
    """The results for claims with equal requests."""

    def __init__(self, claim_requests: Sequence[ClaimRequest]) -> None:
        self.reading = Reading()
        self.candidates = Candidates()
        self.counted = 0
        """Number of results as they were last counted."""
        self.distinct: list[SearchResult] = []
        """The results, each once, by number."""
        self._scores = Column(np.int64)
        """The score of each result, by number."""
        self._refusals = Column(np.int8)
        """Why each result has no devices, by number: the see `refusals`."""
        self._number_of: dict[int, int] = {}
        """The number of each result, by identity."""
        self._numbers = np.zeros(0, np.int32)
        """The number of the result for each code of a device state."""
        self._serials = np.zeros(0, np.int64)
        """The device state that each code stood for then, by serial number."""
        self._by_reading: dict[Hashable, SearchResult] = {}
        """Results by what the searches for these claims read: few where nodes differ in other things."""
        constraints = [
            each for claim_request in claim_requests for each in claim_request.claim.spec.devices.constraints
        ]
        self._constrained = tuple(sorted(set(map(constrained_attribute, constraints))))

    def __len__(self) -> int:
        """Number of results kept."""
        return len(self.distinct) + len(self._by_reading) + len(self.candidates)

    @property
    def scores(self) -> NDArray[np.int64]:
        """The score of each result, by number."""
        return self._scores.values

    @property
    def refusals(self) -> NDArray[np.int8]:
        """Why each result has no devices: DEVICES_FOUND, NO_DEVICES or INVALID_POOLS, by number."""
        return self._refusals.values

    def numbers(self, serials: NDArray[np.int64]) -> NDArray[np.int32]:
        """The numbers of the results for all codes of device states, by serial number; or UNKNOWN."""
        count = len(serials)
        self._grow(count)
        return np.where(self._serials[:count] == serials, self._numbers[:count], np.int32(UNKNOWN))

    def note(self, code: int, serial: int, result: SearchResult) -> int:
        """Keep the result for a device state; returns its number."""
        number = self._number_of.setdefault(id(result), len(self.distinct))
        if number == len(self.distinct):
            self.distinct.append(result)
            self._scores.append(0 if result.picks is None else score(result.picks))
            self._refusals.append(refusal(result))
        self._numbers[code], self._serials[code] = number, serial
        return number

    def _grow(self, size: int) -> None:
        missing = size - len(self._serials)
        if missing > 0:
            self._numbers = np.append(self._numbers, np.full(missing, UNKNOWN, np.int32))
            self._serials = np.append(self._serials, np.full(missing, UNKNOWN, np.int64))

    def get(self, key: Hashable) -> SearchResult | None:
        """The result of another search that read equal values."""
        return self._by_reading.get(key)

    def put(self, key: Hashable, result: SearchResult) -> None:
        """Keep the result of a search by the values read so far."""
        self._by_reading[key] = result

    def key(self, node_devices: NodeDevices, allocated: AllocatedDevices, work: WorkBudget) -> Hashable:
        """The values that searches for these claims have read so far, on a node."""
        seen = tuple([allocated.state_for(block, self.reading, work) for block in node_devices.blocks])
        return seen, node_devices.equal_values(self._constrained, allocated.shapes, work)


class SearchResults:
    """The results for all claims, as far as there is room: the least recently used go first."""

    def __init__(self, limit: int = MAX_RESULTS) -> None:
        self._limit = limit
        self._by_content: OrderedDict[Hashable, ClaimResults] = OrderedDict()
        self._last: ClaimResults | None = None
        """Those used last, which may have grown since they were counted."""
        self._count = 0

    def __len__(self) -> int:
        """Number of results kept."""
        return sum(map(len, self._by_content.values()))

    def of(self, claim_requests: Sequence[ClaimRequest]) -> ClaimResults:
        """The results for some claims; they become the most recently used."""
        self._count_last()
        content = tuple(map(_content, claim_requests))
        results = self._by_content.pop(content, None)
        if results is not None and results.counted > self._limit:
            self._count -= results.counted
            results = None
        if results is None:
            results = ClaimResults(claim_requests)
        while self._by_content and (self._count > self._limit or len(self._by_content) >= MAX_CONTENTS):
            self._count -= self._by_content.popitem(last=False)[1].counted
        self._last = self._by_content[content] = results
        return results

    def _count_last(self) -> None:
        if self._last is not None:
            before, self._last.counted = self._last.counted, len(self._last)
            self._count += self._last.counted - before


def _content(claim_request: ClaimRequest) -> bytes:
    """A digest of a claim's requests, its device classes included."""
    classes = {each.device_class.name: each.device_class for one in claim_request.requests for each in one}
    specs = [(name, each.spec) for name, each in classes.items()]
    return sha256(CONTENT_ENCODER.encode((claim_request.claim.spec.devices, specs))).digest()
