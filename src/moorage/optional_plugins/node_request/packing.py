"""Which nodes pods need: places on nodes that are asked for already, then on new ones.

Pods that are alike are packed together, those with the larger requests first; each goes to the first node on
which it passes all filters. The work is divided: it may be interrupted wherever a method yields.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count, groupby
from typing import Final, NamedTuple, TypeVar

from moorage import HypotheticalNodes, Node, Nodes, Offer, Pod, pod_requests
from moorage.optional_plugins.node_request.allowance import Allowance
from moorage.optional_plugins.node_request.choice import Option, chosen
from moorage.optional_plugins.node_request.demands import Demand

T = TypeVar("T")
Steps = Generator[None, None, T]
"""Work that may be interrupted, with its result."""
Allowed = Callable[[Node], bool]
"""Whether a pod may use a node, by the topology constraint of its group."""

NO_PARTS: Final = "composite groups with topology constraints are not supported"
NO_SHAPE: Final = "no shape is where the group may run"
_COMPARED: Final = ("cpu", "memory")
_RANKED_AT_ONCE: Final = 100
"""Number of demands that are ranked without an interruption."""


class NewNode(NamedTuple):
    """A node to ask for."""

    offer: Offer
    node: Node


@dataclass(slots=True)
class Packed:
    """What was decided.

    new: the nodes to ask for, in order. places: by uid of pods, the node on which each has a place.
    reasons: by key of demands that get no node, why.
    """

    new: list[NewNode] = field(default_factory=list)
    places: dict[str, str] = field(default_factory=dict)
    reasons: dict[Hashable, str] = field(default_factory=dict)


class Packing:
    """Packs demands into hypothetical nodes, and decides which to ask for.

    rule: how shapes are chosen. refusal: why an offer cannot be asked for at present; empty: it can.
    """

    def __init__(
        self,
        paper: HypotheticalNodes,
        nodes: Nodes,
        offers: Sequence[Offer],
        rule: str,
        allowance: Allowance,
        refusal: Callable[[Offer], str],
    ) -> None:
        self.packed = Packed()
        self._paper = paper
        self._cluster = nodes
        self._offers = offers
        self._rule = rule
        self._allowance = allowance
        self._refusal = refusal
        self._reason = ""
        """Why the last pod that got no place got none."""

    def run(self, demands: Iterable[Demand]) -> Steps[None]:
        """Decide about demands."""
        ordered = yield from self._in_order(demands)
        if not all(demand.is_local for demand in ordered):
            yield from self._paper.follow(self._cluster)
        for _, alike in groupby(ordered, self._alike):
            some = list(alike)
            if some[0].group is not None:
                yield from self._pack_group(some[0])
                continue
            unplaced = yield from self._place([demand.pods[0] for demand in some])
            self.packed.reasons.update(dict.fromkeys((pod.uid for pod in unplaced), self._reason))

    def _in_order(self, demands: Iterable[Demand]) -> Steps[list[Demand]]:
        """By priority, then the largest first; pods that are alike follow one another."""
        first: dict[Hashable, int] = {}
        ranked: list[tuple[int, float, int, int, Demand]] = []
        for number, demand in enumerate(demands):
            place = first.setdefault(self._alike(demand), len(first))
            ranked.append((-demand.priority, -self._size(demand), place, number, demand))
            if not number % _RANKED_AT_ONCE:
                yield
        return [demand for *_, demand in sorted(ranked)]

    def _alike(self, demand: Demand) -> Hashable:
        """Equal for single pods that are alike."""
        return self._paper.template_of(demand.pods[0]) if demand.group is None else demand.key

    def _size(self, demand: Demand) -> float:
        """The largest share that a demand's pods request together of the largest shape."""
        shares = []
        for name in _COMPARED:
            requested = sum(pod_requests(pod).get(name, 0) for pod in demand.pods)
            shares.append(requested / max(offer.shape.resources[name] for offer in self._offers))
        return max(shares)

    # Groups

    def _pack_group(self, demand: Demand) -> Steps[None]:
        """All nodes that a group needs, or none."""
        assert demand.group is not None
        why, key = NO_SHAPE, demand.group.group.topology_key
        parts = (demand.group, *demand.group.leaves())
        if demand.group.is_composite and any(part.group.topology_key for part in parts):
            self.packed.reasons[demand.key] = NO_PARTS
            return
        for allowed in self._placements(key):
            asked, unplaced = len(self.packed.new), 0
            for _, alike in groupby(demand.pods, self._paper.template_of):
                left = yield from self._place([*alike], allowed, with_copied=True)
                unplaced += len(left)
            self._forget_copied(demand.pods)
            if len(demand.pods) - unplaced >= demand.quorum:
                return
            why = self._reason
            self._undo(asked, demand.pods)
        self.packed.reasons[demand.key] = why

    def _placements(self, key: str) -> list[Allowed]:
        """The sets of nodes in which a group is tried: all, or those with a label's value of new nodes."""
        if not key:
            return [lambda node: True]
        values = dict.fromkeys(self._next_node(offer).labels.get(key) for offer in self._offers)
        return [_with_label(key, value) for value in values if value is not None]

    def _forget_copied(self, pods: Iterable[Pod]) -> None:
        """Take the pods off nodes that are there: they were put there to see what is left."""
        for pod in pods:
            name = self._paper.node_of(pod)
            if name and name not in self._paper.names:
                self._paper.forget(pod)

    def _undo(self, asked: int, pods: Iterable[Pod]) -> None:
        """Take back new nodes from a number on, and the places of pods."""
        for pod in pods:
            self._paper.forget(pod)
            self.packed.places.pop(pod.uid, None)
        while len(self.packed.new) > asked:
            offer, node = self.packed.new.pop()
            self._paper.remove(node.name)
            self._allowance.give_back(offer, node)

    # Pods that are alike

    def _place(
        self, pods: Sequence[Pod], allowed: Allowed = lambda node: True, *, with_copied: bool = False
    ) -> Steps[list[Pod]]:
        """Find places for pods that are alike; returns those that have none."""
        left = list(pods)
        while left and (name := self._first(left[0], allowed, with_copied=with_copied)):
            self._put(left.pop(0), name)
            yield
        while left:
            options = yield from self._options(left, allowed)
            if not options:
                break
            option = chosen(self._rule, left[0], options)
            placed = 0
            for _ in range(max(1, len(left) // option.capacity)):
                number = yield from self._open(option.offer, left)
                placed += number
                left = left[number:]
                if not number:
                    break
            if not placed:
                break
        return left

    def _first(self, pod: Pod, allowed: Allowed, *, with_copied: bool) -> str:
        """The first node that has a place for a pod; empty: none."""
        fitting = self._paper.fitting(pod, with_copied=with_copied)
        return next((name for name in fitting if allowed(self._paper.node(name))), "")

    def _put(self, pod: Pod, name: str) -> None:
        self._paper.assume(pod, name)
        if name in self._paper.names:
            self.packed.places[pod.uid] = name

    def _options(self, pods: Sequence[Pod], allowed: Allowed) -> Steps[list[Option]]:
        """The offers on whose nodes pods that are alike fit; `_reason` says why they do not on the others."""
        options: list[Option] = []
        reasons: Counter[str] = Counter()
        for offer in self._offers:
            node = self._next_node(offer)
            if not allowed(node):
                continue
            refusal = self._refusal(offer) or self._allowance.refusal(offer, node)
            texts = (refusal,) if refusal else self._paper.why_not(pods[0], node)
            reasons.update(dict.fromkeys(texts, 1))
            yield
            if not texts:
                capacity = yield from self._capacity(pods, node)
                options.append(Option(offer, capacity))
        told = sorted(f"{number} {text}" for text, number in reasons.items())
        self._reason = ", ".join(told) or NO_SHAPE
        return options

    def _capacity(self, pods: Sequence[Pod], node: Node) -> Steps[int]:
        """How many of some pods fit on a node, of which the first does."""
        with self._paper.taken(node):
            return (yield from self._fill(pods, node.name))

    def _fill(self, pods: Sequence[Pod], name: str) -> Steps[int]:
        """Put pods that are alike on a node until it is full; returns how many."""
        for number, pod in enumerate(pods):
            if not self._paper.fits(pod, name):
                return number
            self._paper.assume(pod, name)
            yield
        return len(pods)

    def _open(self, offer: Offer, pods: Sequence[Pod]) -> Steps[int]:
        """Ask for a node, and fill it; returns the number of pods on it, 0 if a limit is reached."""
        node = self._next_node(offer)
        if self._allowance.refusal(offer, node):
            return 0
        self._paper.add(node)
        number = yield from self._fill(pods, node.name)
        if not number:
            self._paper.remove(node.name)
            return 0
        self._allowance.take(offer, node)
        self.packed.new.append(NewNode(offer, node))
        self.packed.places.update(dict.fromkeys((pod.uid for pod in pods[:number]), node.name))
        return number

    def _next_node(self, offer: Offer) -> Node:
        """A node of an offer with a name that no other has."""
        taken, names = self._cluster.snapshot.row_of, self._paper.names
        nodes = map(offer.node, count())
        return next(node for node in nodes if node.name not in taken and node.name not in names)


def _with_label(key: str, value: str) -> Allowed:
    return lambda node: node.labels.get(key) == value
