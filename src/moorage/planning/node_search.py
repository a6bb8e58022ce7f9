"""The search for the cheapest set of nodes on which a simulation places all pods.

Where pods stay pending, nodes for them are added; then nodes are left out, or replaced by cheaper ones, as
long as a simulation places everything.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace as changed
from typing import Final

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.planning.catalogue import Offer, Shape, new_nodes, offers_of
from moorage.planning.packing_model import PackingResult, cheapest_packing
from moorage.planning.pod_classes import Packing, packing_of
from moorage.planning.results import Progress
from moorage.planning.trial import Trial
from moorage.planning.verification import Verification, Verifier
from moorage.simulation.settings import Settings

_EPSILON: Final = 1e-9
_MAX_IDLE_ROUNDS: Final = 3
"""Number of times that nodes are added although no more pods were placed than before."""

Counts = tuple[int, ...]
"""How many nodes of each offer."""


class NodeSearch:
    """Finds the cheapest verified set, simulation by simulation."""

    def __init__(
        self,
        verifier: Verifier,
        shapes: Sequence[Shape],
        settings: Settings,
        max_simulations: int,
        progress: Progress,
    ) -> None:
        self.verifier = verifier
        self._shapes = shapes
        self.offers = offers_of(shapes)
        """All shapes in all their zones."""
        self._trial = Trial(verifier.cluster, settings)
        self.taken = frozenset(node.name for node in self._trial.nodes())
        """The names of the nodes that are there."""
        self._max_simulations = max_simulations
        self._progress = progress
        self._known: dict[Counts, Verification] = {}
        self.simulations = 0
        """Number of sets that were simulated."""
        self._bound = 0.0
        self._best: Counts | None = None

    @property
    def best(self) -> Counts | None:
        """The cheapest set that was verified."""
        return self._best

    def run(self, start: Counts, bound: float) -> None:
        """Search from a set, then from each shape alone, until a set is as cheap as the bound."""
        self._bound = bound
        self._improve_from(start)
        for shape in self._shapes:
            if self._best is not None and self.price(self._best) <= bound + _EPSILON:
                return
            self._beginwith_changes(shape)

    # The search

    def _beginwith_changes(self, shape: Shape) -> None:
        """Search from nodes of one shape alone, if they could be cheaper than the best set."""
        offers = [each for each in self.offers if each.shape is shape]
        packing = self.packing(self.verifier.pods, offers)
        if packing.homeless():
            return
        cheapest = cheapest_packing(packing)
        start = self.counts(packing, cheapest, (0,) * len(self.offers))
        if not cheapest.left_over and (self._best is None or self.price(start) < self.price(self._best)):
            self._improve_from(start)

    def _improve_from(self, counts: Counts) -> None:
        """Add nodes until all pods are placed, then make the set cheaper."""
        repaired = self._repaired(counts)
        if repaired is not None:
            self._consider(repaired)
            self._consider(self._cheaper(repaired))

    def _consider(self, counts: Counts) -> None:
        if self._best is None or self.price(counts) < self.price(self._best) - _EPSILON:
            self._best = counts

    def _repaired(self, counts: Counts) -> Counts | None:
        """A set with nodes added for the pods that are pending; None if that leads to nothing."""
        waiting, idle = len(self.verifier.pods), 0
        while (verified := self._verified(counts)) is not None and verified.pending:
            idle = 0 if len(verified.pending) < waiting else idle + 1
            waiting = min(waiting, len(verified.pending))
            more = self._more(self._pods_of(verified.pending), counts)
            if more == counts or idle > _MAX_IDLE_ROUNDS:
                return None
            counts = more
        return None if verified is None else counts

    def _pods_of(self, keys: Container[str]) -> list[Pod]:
        return [pod for pod in self.verifier.pods if pod.key in keys]

    def _cheaper(self, counts: Counts) -> Counts:
        """A set in which no node can be left out or be replaced by a cheaper one; as far as was tried."""
        while True:
            for smaller in self._smaller(counts):
                if (verified := self._verified(smaller)) is None:
                    return counts
                if not verified.pending:
                    counts = smaller
                    break
            else:
                return counts

    def _smaller(self, counts: Counts) -> Iterable[Counts]:
        """Cheaper sets that differ by one node and cost no less than the bound, the cheapest first."""
        places = range(len(counts))
        out = [place for place in places if counts[place]]
        fewer = [with_changes(counts, {place: -1}) for place in out]
        other = [
            with_changes(counts, {place: -1, into: 1})
            for place in out
            for into in places
            if self._cost(into) < self._cost(place)
        ]
        possible = [
            each
            for each in (*fewer, *other)
            if self.price(each) >= self._bound - _EPSILON and self._keeps_limits(each)
        ]
        return sorted(possible, key=lambda each: (self.price(each), each))

    def verification(self, counts: Counts) -> Verification:
        """What the simulation says, whether or not there were as many as are allowed."""
        return self._known.get(counts) or self.verifier.verify(self.nodes(counts))

    def _verified(self, counts: Counts) -> Verification | None:
        """What the simulation says; None if there were as many simulations as are allowed."""
        known = self._known.get(counts)
        if known is not None:
            return known
        if self.simulations >= self._max_simulations:
            return None
        self.simulations += 1
        verification = self._known[counts] = self.verifier.verify(self.nodes(counts))
        self._progress(self.simulations, self._max_simulations)
        return verification

    # Counts of nodes

    def packing(self, pods: Sequence[Pod], offers: Sequence[Offer]) -> Packing:
        """The packing of some pods into the nodes that are there, and those of some offers."""
        return packing_of(self._trial, pods, offers)

    def _more(self, pods: Sequence[Pod], counts: Counts) -> Counts:
        """A set with the cheapest nodes added for some pods, as far as limits allow."""
        packing = self.packing(pods, self.offers)
        if packing.homeless():
            return counts
        bins = tuple(
            changed(
                bin, limit=None if bin.limit is None else bin.limit - self._used(counts, bin.offers[0].shape)
            )
            for bin in packing.bins
            if bin.offers
        )
        packing = Packing(packing.classes, bins)
        return self.counts(packing, cheapest_packing(packing), counts)

    def counts(self, packing: Packing, result: PackingResult, before: Counts) -> Counts:
        """The nodes of a packing beside those that are there; zones that are alike get nodes in turn."""
        counts = list(before)
        for bin, number in zip(packing.bins, result.nodes, strict=True):
            places = [self.offers.index(offer) for offer in bin.offers]
            for _ in range(number if places else 0):
                counts[min(places, key=lambda place: (self._in_zone(counts, place), place))] += 1
        return tuple(counts)

    def _in_zone(self, counts: Sequence[int], place: int) -> int:
        """How many nodes there are in the zone of an offer."""
        zone = self.offers[place].zone
        return sum(count for count, offer in zip(counts, self.offers, strict=True) if offer.zone == zone)

    def _used(self, counts: Counts, shape: Shape) -> int:
        return sum(count for count, offer in zip(counts, self.offers, strict=True) if offer.shape is shape)

    def _keeps_limits(self, counts: Counts) -> bool:
        return all(shape.max is None or self._used(counts, shape) <= shape.max for shape in self._shapes)

    def _cost(self, place: int) -> float:
        return self.offers[place].shape.price_per_hour

    def price(self, counts: Counts) -> float:
        """What a set costs by hour."""
        return sum(count * self._cost(place) for place, count in enumerate(counts))

    def nodes(self, counts: Counts) -> list[Node]:
        """The nodes of a set."""
        nodes = []
        for offer, count in zip(self.offers, counts, strict=True):
            nodes += [node for node, _ in zip(new_nodes(offer, self.taken), range(count), strict=False)]
        return nodes


def with_changes(counts: Counts, changes: Mapping[int, int]) -> Counts:
    """A set with more or fewer nodes of some offers."""
    return tuple(count + changes.get(place, 0) for place, count in enumerate(counts))
