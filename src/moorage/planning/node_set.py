"""The nodes of a catalogue that fit a backlog at least cost, verified by simulation.

The solver's cheapest packing is a proposal: the scheduler places pods one by one, and keeps constraints that
a packing does not know. Where pods stay pending, nodes for them are added; then nodes are taken away, or
replaced by cheaper ones, as long as a simulation places everything. The same begins with each shape alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace as changed
from typing import Final

from msgspec.structs import replace

from moorage.api.base import Object
from moorage.api.decode import InputError
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.planning.catalogue import Offer, Shape, check_shapes, new_nodes, offers_of
from moorage.planning.packing_model import PackingResult, cheapest_packing, require_solver
from moorage.planning.pod_classes import Packing, packing_of
from moorage.planning.results import (
    FORMAT,
    Interrupted,
    MessageCount,
    Progress,
    Struct,
    counted,
    no_progress,
)
from moorage.planning.trial import Trial
from moorage.planning.verification import Verification, Verifier
from moorage.simulation.settings import Settings

MAX_SIMULATIONS: Final = 100
"""Number of node sets that are simulated, unless told."""
_WIDE_GAP: Final = 0.1
"""Share of the bound from which a plan says why it costs more."""
_EPSILON: Final = 1e-9
_DIGITS: Final = 6
"""Number of decimals of prices and gaps."""
_MAX_IDLE_ROUNDS: Final = 3
"""Number of times that nodes are added although no more pods were placed than before."""


class ShapeCount(Struct, kw_only=True):
    """How many nodes of a shape in a zone."""

    shape: str
    zone: str
    count: int
    price_per_hour: float
    """Of one of them."""
    pods: int
    """How many pods the scheduler places on them."""


class NodeSet(Struct, kw_only=True):
    """The cheapest verified set of nodes."""

    api_version: str = FORMAT
    kind: str = "NodePlan"
    complete: bool
    """False if it was interrupted: the set is the best one up to then."""
    verified: bool
    """Whether the simulated scheduler places all pods on these nodes."""
    pods: int
    shapes: list[ShapeCount]
    cost_per_hour: float
    bound_per_hour: float
    """No nodes of the catalogue on which all pods can be placed cost less."""
    gap: float
    """By which share the cost is above the bound."""
    why: list[str]
    """Why the gap is wide, or why there is no verified set."""
    on_existing: int
    """How many pods go to nodes that are there already."""
    pending: list[MessageCount]
    """What the scheduler says of pods that stay pending; only of a set that is not verified."""
    simulations: int


def plan_nodes(
    objects: Iterable[Object],
    pods: Sequence[Pod],
    shapes: Sequence[Shape],
    settings: Settings,
    max_simulations: int = MAX_SIMULATIONS,
    progress: Progress = no_progress,
) -> NodeSet:
    """Which nodes to have beside those of a cluster, for some pods and the pending ones of the cluster."""
    require_solver()
    check_shapes(shapes)
    verifier = Verifier(objects, pods, settings)
    if not verifier.pods:
        raise InputError("", "there are no pods to place; give --workload")
    return _Search(verifier, shapes, settings, max_simulations, progress).run()


Counts = tuple[int, ...]
"""How many nodes of each offer."""


class _Search:
    """Finds the cheapest verified set, simulation by simulation."""

    def __init__(
        self,
        verifier: Verifier,
        shapes: Sequence[Shape],
        settings: Settings,
        max_simulations: int,
        progress: Progress,
    ) -> None:
        self._verifier = verifier
        self._shapes = shapes
        self._offers = offers_of(shapes)
        self._trial = Trial(verifier.cluster, settings)
        self._taken = frozenset(node.name for node in self._trial.nodes())
        self._max_simulations = max_simulations
        self._progress = progress
        self._known: dict[Counts, Verification] = {}
        self._simulations = 0
        self._bound = 0.0
        self._best: Counts | None = None

    def run(self) -> NodeSet:
        """The best set, with the bound beside it."""
        packing = self._packing(self._verifier.pods, self._offers)
        if homeless := packing.homeless():
            return self._impossible(packing, homeless)
        cheapest, complete = cheapest_packing(packing), False
        self._bound = cheapest.bound
        start = self._counts(packing, cheapest, (0,) * len(self._offers))
        with suppress(Interrupted):
            self._improve_from(start)
            for shape in self._shapes:
                if self._best is not None and self._price(self._best) <= self._bound + _EPSILON:
                    break
                self._begin_with(shape)
            complete = True
        return self._result(start, cheapest, complete=complete)

    # The search

    def _begin_with(self, shape: Shape) -> None:
        """Search from nodes of one shape alone, if they could be cheaper than the best set."""
        offers = [each for each in self._offers if each.shape is shape]
        packing = self._packing(self._verifier.pods, offers)
        if packing.homeless():
            return
        cheapest = cheapest_packing(packing)
        start = self._counts(packing, cheapest, (0,) * len(self._offers))
        if not cheapest.left_over and (self._best is None or self._price(start) < self._price(self._best)):
            self._improve_from(start)

    def _improve_from(self, counts: Counts) -> None:
        """Add nodes until all pods are placed, then make the set cheaper."""
        repaired = self._repaired(counts)
        if repaired is not None:
            self._consider(repaired)
            self._consider(self._cheaper(repaired))

    def _consider(self, counts: Counts) -> None:
        if self._best is None or self._price(counts) < self._price(self._best) - _EPSILON:
            self._best = counts

    def _repaired(self, counts: Counts) -> Counts | None:
        """A set with nodes added for the pods that are pending; None if that leads to nothing."""
        waiting, idle = len(self._verifier.pods), 0
        while (verified := self._verified(counts)) is not None and verified.pending:
            idle = 0 if len(verified.pending) < waiting else idle + 1
            waiting = min(waiting, len(verified.pending))
            more = self._more(self._pods_of(verified.pending), counts)
            if more == counts or idle > _MAX_IDLE_ROUNDS:
                return None
            counts = more
        return None if verified is None else counts

    def _pods_of(self, keys: Container[str]) -> list[Pod]:
        return [pod for pod in self._verifier.pods if pod.key in keys]

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
        fewer = [_with(counts, {place: -1}) for place in out]
        other = [
            _with(counts, {place: -1, into: 1})
            for place in out
            for into in places
            if self._cost(into) < self._cost(place)
        ]
        possible = [
            each
            for each in (*fewer, *other)
            if self._price(each) >= self._bound - _EPSILON and self._keeps_limits(each)
        ]
        return sorted(possible, key=lambda each: (self._price(each), each))

    def _verified(self, counts: Counts) -> Verification | None:
        """What the simulation says; None if there were as many simulations as are allowed."""
        known = self._known.get(counts)
        if known is not None:
            return known
        if self._simulations >= self._max_simulations:
            return None
        self._simulations += 1
        verification = self._known[counts] = self._verifier.verify(self._nodes(counts))
        self._progress(self._simulations, self._max_simulations)
        return verification

    # Counts of nodes

    def _packing(self, pods: Sequence[Pod], offers: Sequence[Offer]) -> Packing:
        return packing_of(self._trial, pods, offers)

    def _more(self, pods: Sequence[Pod], counts: Counts) -> Counts:
        """A set with the cheapest nodes added for some pods, as far as limits allow."""
        packing = self._packing(pods, self._offers)
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
        return self._counts(packing, cheapest_packing(packing), counts)

    def _counts(self, packing: Packing, result: PackingResult, before: Counts) -> Counts:
        """The nodes of a packing beside those that are there; zones that are alike get nodes in turn."""
        counts = list(before)
        for bin, number in zip(packing.bins, result.nodes, strict=True):
            places = [self._offers.index(offer) for offer in bin.offers]
            for _ in range(number if places else 0):
                counts[min(places, key=lambda place: (self._in_zone(counts, place), place))] += 1
        return tuple(counts)

    def _in_zone(self, counts: Sequence[int], place: int) -> int:
        """How many nodes there are in the zone of an offer."""
        zone = self._offers[place].zone
        return sum(count for count, offer in zip(counts, self._offers, strict=True) if offer.zone == zone)

    def _used(self, counts: Counts, shape: Shape) -> int:
        return sum(count for count, offer in zip(counts, self._offers, strict=True) if offer.shape is shape)

    def _keeps_limits(self, counts: Counts) -> bool:
        return all(shape.max is None or self._used(counts, shape) <= shape.max for shape in self._shapes)

    def _cost(self, place: int) -> float:
        return self._offers[place].shape.price_per_hour

    def _price(self, counts: Counts) -> float:
        return sum(count * self._cost(place) for place, count in enumerate(counts))

    def _nodes(self, counts: Counts) -> list[Node]:
        nodes = []
        for offer, count in zip(self._offers, counts, strict=True):
            nodes += [node for node, _ in zip(new_nodes(offer, self._taken), range(count), strict=False)]
        return nodes

    # The result

    def _result(self, start: Counts, cheapest: PackingResult, *, complete: bool) -> NodeSet:
        counts = start if self._best is None else self._best
        verification = self._known.get(counts) or self._verifier.verify(self._nodes(counts))
        price = self._price(counts)
        gap = price / cheapest.bound - 1 if cheapest.bound else 0.0
        why = []
        if cheapest.left_over:
            why.append(f"the limits of the catalogue leave no room for {cheapest.left_over} pods")
        if self._best is None or gap > _WIDE_GAP:
            why += self._reasons(start, cheapest)
        return self._as_result(counts, verification, cheapest.bound, gap, why, complete=complete)

    def _reasons(self, start: Counts, cheapest: PackingResult) -> list[str]:
        """Why the best set costs more than the bound; each is the outcome of a solver or a simulation."""
        reasons = []
        if not cheapest.is_optimal:
            reasons.append("the solver ended at its limit: the bound may be low")
        if cheapest.price > cheapest.bound * (1 + _WIDE_GAP):
            reasons.append(
                f"the bound lets nodes be bought in parts; the cheapest packing found in whole "
                f"nodes costs {cheapest.price:g}"
            )
        pending = self._verifier.verify(self._nodes(start)).pending
        if pending:
            loose = [without_constraints(pod) for pod in self._verifier.pods]
            still = self._verifier.verify(self._nodes(start), loose).pending
            where = (
                f"on the cheapest packing's nodes ({self._price(start):g}) {len(pending)} pods stay pending"
            )
            if len(still) < len(pending):
                reasons.append(
                    f"{where}, but {len(still)} without spread constraints and affinity between pods"
                )
            if still:
                reasons.append(f"{where}: the scheduler places pods one by one, and packs them less tightly")
        if self._simulations >= self._max_simulations:
            reasons.append(f"the search ended after {self._simulations} simulations (--max-simulations)")
        return reasons

    def _impossible(self, packing: Packing, homeless: Sequence[int]) -> NodeSet:
        """The result if pods fit on no node at all, even alone."""
        pods = [pod for cls in homeless for pod in packing.classes[cls].pods]
        one_each = (1,) * len(self._offers)
        verification = self._verifier.verify(self._nodes(one_each), pods)
        why = [f"{len(pods)} pods fit on no node of the catalogue, and on none that is there"]
        none = (0,) * len(self._offers)
        return self._as_result(none, verification, 0.0, 0.0, why, complete=True)

    def _as_result(
        self,
        counts: Counts,
        verification: Verification,
        bound: float,
        gap: float,
        why: list[str],
        *,
        complete: bool,
    ) -> NodeSet:
        by_node = Counter(verification.placed.values())
        shapes = []
        for place, (offer, count) in enumerate(zip(self._offers, counts, strict=True)):
            names = [node.name for node in self._nodes(_with((0,) * len(counts), {place: count}))]
            if count:
                shapes.append(
                    ShapeCount(
                        shape=offer.shape.name,
                        zone=offer.zone,
                        count=count,
                        price_per_hour=offer.shape.price_per_hour,
                        pods=sum(by_node[name] for name in names),
                    )
                )
        return NodeSet(
            complete=complete,
            verified=not verification.pending,
            pods=len(self._verifier.pods),
            shapes=shapes,
            cost_per_hour=round(self._price(counts), _DIGITS),
            bound_per_hour=round(bound, _DIGITS),
            gap=round(gap, _DIGITS),
            why=why,
            on_existing=sum(by_node[name] for name in self._taken),
            pending=counted(verification.pending.values()),
            simulations=self._simulations,
        )


def _with(counts: Counts, changes: Mapping[int, int]) -> Counts:
    return tuple(count + changes.get(place, 0) for place, count in enumerate(counts))


def without_constraints(pod: Pod) -> Pod:
    """A pod without what depends on other pods: spread constraints, affinity and anti-affinity to pods."""
    affinity = pod.spec.affinity
    loose = None if affinity is None else replace(affinity, pod_affinity=None, pod_anti_affinity=None)
    return replace(pod, spec=replace(pod.spec, affinity=loose, topology_spread_constraints=()))
