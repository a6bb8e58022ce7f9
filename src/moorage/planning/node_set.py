"""The nodes of a catalogue that fit a backlog at least cost, verified by simulation.

The solver's cheapest packing is a proposal: the scheduler places pods one by one, and keeps constraints that
a packing does not know. Where pods stay pending, nodes for them are added; then nodes are taken away, or
replaced by cheaper ones, as long as a simulation places everything. The same begins with each shape alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from moorage.api.base import Object
from moorage.api.decode import InputError
from moorage.api.pod import Pod
from moorage.planning.catalogue import Shape, check_shapes
from moorage.planning.node_search import Counts, NodeSearch, with_changes
from moorage.planning.packing_model import PackingResult, cheapest_packing, require_solver
from moorage.planning.results import (
    FORMAT,
    Interrupted,
    MessageCount,
    Progress,
    Struct,
    counted,
    no_progress,
)
from moorage.planning.verification import Verification, Verifier
from moorage.simulation.settings import Settings

MAX_SIMULATIONS: Final = 100
"""Number of node sets that are simulated, unless told."""
_WIDE_GAP: Final = 0.1
"""Share of the bound from which a plan says why it costs more."""
_DIGITS: Final = 6
"""Number of decimals of prices and gaps."""


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
    gap: float | None
    """By which share the cost is above the bound; None if there is no bound."""
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
    search = NodeSearch(verifier, shapes, settings, max_simulations, progress)
    packing = search.packing(verifier.pods, search.offers)
    if homeless := packing.homeless():
        return _impossible(search, [pod for cls in homeless for pod in packing.classes[cls].pods])
    cheapest, complete = cheapest_packing(packing), False
    start = search.counts(packing, cheapest, (0,) * len(search.offers))
    with suppress(Interrupted):
        search.run(start, cheapest.bound)
        complete = True
    best = search.best if search.best is not None else start
    plan = _result(search, best, search.verification(best), cheapest.bound, complete=complete)
    if cheapest.left_over:
        plan.why.append(f"within the limits of the catalogue, {_pods(cheapest.left_over)} without room")
    if search.best is None or plan.gap is None or plan.gap > _WIDE_GAP:
        plan.why += _reasons(search, start, cheapest)
        if complete and search.simulations >= max_simulations:
            plan.why.append(f"the search ended after {max_simulations} simulations (--max-simulations)")
    return plan


def _result(
    search: NodeSearch, counts: Counts, verification: Verification, bound: float, *, complete: bool
) -> NodeSet:
    by_node, price = Counter(verification.placed.values()), search.price(counts)
    gap = price / bound - 1 if bound else 0.0
    return NodeSet(
        complete=complete,
        verified=not verification.pending,
        pods=len(search.verifier.pods),
        shapes=list(_shape_counts(search, counts, by_node)),
        cost_per_hour=round(price, _DIGITS),
        bound_per_hour=round(bound, _DIGITS),
        gap=None if price and not bound else round(gap, _DIGITS),
        why=[],
        on_existing=sum(by_node[name] for name in search.taken),
        pending=counted(verification.pending.values()),
        simulations=search.simulations,
    )


def _shape_counts(search: NodeSearch, counts: Counts, by_node: Mapping[str, int]) -> Iterator[ShapeCount]:
    nothing = (0,) * len(counts)
    for place, (offer, count) in enumerate(zip(search.offers, counts, strict=True)):
        if count:
            yield ShapeCount(
                shape=offer.shape.name,
                zone=offer.zone,
                count=count,
                price_per_hour=offer.shape.price_per_hour,
                pods=sum(by_node[node.name] for node in search.nodes(with_changes(nothing, {place: count}))),
            )


def _reasons(search: NodeSearch, start: Counts, cheapest: PackingResult) -> Iterator[str]:
    """Why the best set costs more than the bound; each is the outcome of a solver or a simulation."""
    if not cheapest.is_optimal:
        yield "the solver ended at its limit: the bound may be low"
    if cheapest.price > cheapest.bound * (1 + _WIDE_GAP):
        yield (
            "the bound lets nodes be bought in parts; the cheapest packing found in whole nodes costs "
            f"{cheapest.price:g}"
        )
    pending = search.verification(start).pending
    if not pending:
        return
    loose = [_without_constraints(pod) for pod in search.verifier.pods]
    still = search.verifier.verify(search.nodes(start), loose).pending
    where = f"on the nodes of the cheapest packing ({search.price(start):g}) {_pods(len(pending))} pending"
    if len(still) < len(pending):
        yield f"{where}, but {len(still)} without spread constraints and affinity between pods"
    if still:
        yield f"{where}: the scheduler places pods one by one, and packs them less tightly"


def _impossible(search: NodeSearch, pods: Sequence[Pod]) -> NodeSet:
    """The result if pods fit on no node at all, even alone."""
    one_each = search.nodes((1,) * len(search.offers))
    verification = search.verifier.verify(one_each, pods)
    plan = _result(search, (0,) * len(search.offers), verification, 0.0, complete=True)
    plan.verified = False
    plan.why.append(f"{len(pods)} pods fit on no node of the catalogue, and on none that is there")
    return plan


def _pods(count: int) -> str:
    return f"{count} pod stays" if count == 1 else f"{count} pods stay"


def _without_constraints(pod: Pod) -> Pod:
    """A pod without what depends on other pods: spread constraints, affinity and anti-affinity to pods."""
    affinity = pod.spec.affinity
    loose = None if affinity is None else replace(affinity, pod_affinity=None, pod_anti_affinity=None)
    return replace(pod, spec=replace(pod.spec, affinity=loose, topology_spread_constraints=()))
