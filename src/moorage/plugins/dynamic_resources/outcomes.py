"""What was found for a pod, by number: nodes with equal devices share an outcome."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from moorage.plugins.dynamic_resources.extended_resources import NodeClaim
from moorage.plugins.dynamic_resources.structured.claim_requests import ClaimRequest
from moorage.plugins.dynamic_resources.structured.search_results import (
    DEVICES_FOUND,
    ClaimResults,
    Picks,
    score,
)


class AllocationPlan(NamedTuple):
    """The devices for each claim of a pod on a group of equivalent nodes."""

    claim_requests: tuple[ClaimRequest, ...]
    picks: Picks
    extended: NodeClaim | None


class Outcomes(Protocol):
    """The outcomes for a pod; more are added while nodes are filtered."""

    @property
    def refusals(self) -> NDArray[np.int8]:
        """Why nodes are rejected, by number: the code of the reason; 0 for none."""

    @property
    def uses_claims(self) -> NDArray[np.bool_]:
        """Whether allocated claims must be usable there as well, by number."""

    def scores(self, earlier: int) -> NDArray[np.int64]:
        """The score of the devices, by number, with that of earlier allocations; 0 where there are none."""

    def plan(self, number: int) -> AllocationPlan | None:
        """The devices; None where there are none."""


class SearchOutcomes:
    """The outcomes for a pod with equal requests on all nodes: the kept results of searches."""

    def __init__(self, claim_requests: tuple[ClaimRequest, ...], results: ClaimResults) -> None:
        self.claim_requests = claim_requests
        self.results = results

    @property
    def refusals(self) -> NDArray[np.int8]:
        """Why there are no devices, by number."""
        return self.results.refusals

    @property
    def uses_claims(self) -> NDArray[np.bool_]:
        """Where there are devices."""
        return np.equal(self.results.refusals, DEVICES_FOUND)

    def scores(self, earlier: int) -> NDArray[np.int64]:
        """The score of each result."""
        scores = self.results.scores
        return np.where(self.uses_claims, scores + earlier, 0) if earlier else scores

    def plan(self, number: int) -> AllocationPlan | None:
        """The devices of a result."""
        picks = self.results.distinct[number].picks
        return None if picks is None else AllocationPlan(self.claim_requests, picks, None)


class GroupOutcome(NamedTuple):
    """The outcome for a group of equivalent nodes, apart from claims that are allocated already."""

    refusal: int = DEVICES_FOUND
    uses_claims: bool = False
    plan: AllocationPlan | None = None


class GroupOutcomes:
    """The outcomes of groups of nodes, for a pod whose requests or claims differ between nodes."""

    def __init__(self) -> None:
        self._outcomes: list[GroupOutcome] = []

    def add(self, outcomes: list[GroupOutcome]) -> int:
        """Add the outcomes of some groups; returns the number of the first."""
        first = len(self._outcomes)
        self._outcomes += outcomes
        return first

    @property
    def refusals(self) -> NDArray[np.int8]:
        """Why nodes of each group are rejected."""
        return np.array([each.refusal for each in self._outcomes], np.int8)

    @property
    def uses_claims(self) -> NDArray[np.bool_]:
        """Whether allocated claims must be usable on each group's nodes."""
        return np.array([each.uses_claims for each in self._outcomes], bool)

    def scores(self, earlier: int) -> NDArray[np.int64]:
        """The score of the devices of each group."""
        plans = [each.plan for each in self._outcomes]
        return np.array([0 if plan is None else earlier + score(plan.picks) for plan in plans], np.int64)

    def plan(self, number: int) -> AllocationPlan | None:
        """The devices of a group."""
        return self._outcomes[number].plan
