"""Batches of demands, the nodes that are asked for because of them, and what becomes of these."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Hashable, Iterable, Sequence
from itertools import chain
from typing import Final, NamedTuple

from moorage import Handle, HypotheticalNodes, Nodes, Offer, Pod, offers_of
from moorage.optional_plugins.node_request.allowance import Allowance
from moorage.optional_plugins.node_request.arguments import NodeRequestArgs
from moorage.optional_plugins.node_request.backoff import Backoff, key_of
from moorage.optional_plugins.node_request.cool_down import CoolDown
from moorage.optional_plugins.node_request.demands import Demand
from moorage.optional_plugins.node_request.packing import NewNode, Packed, Packing
from moorage.optional_plugins.node_request.provisioning import (
    Answer,
    NodesWanted,
    Provisioner,
    ProvisioningError,
)
from moorage.optional_plugins.node_request.requested import RequestedNode, RequestedNodes, is_ready
from moorage.optional_plugins.node_request.telling import Telling

log = logging.getLogger("moorage.node_request")

_CHECK_SECONDS: Final = 10.0
"""Interval at which nodes that are asked for are looked for."""
_MARGIN_SECONDS: Final = 0.05
"""How much later demands are tried again than a backoff ends: timers and clocks are not quite equal."""
_MAX_HELD: Final = 10_000
"""Number of demands that are tried again when a backoff ends; of more, the oldest wait for other events."""
_COOLING: Final = "cool-down: a node has come for the pod, and it does not fit there"


class Place(NamedTuple):
    """The place of a pod on a node that is asked for."""

    pod: Pod
    demand: Demand
    name: str
    """The name that the node is taken to have."""


class Requester:
    """Asks for nodes, where there is a cluster."""

    def __init__(self, args: NodeRequestArgs, handle: Handle, provisioner: Provisioner) -> None:
        self._args = args
        self._handle = handle
        self._provisioner = provisioner
        self._offers = offers_of(args.shapes)
        self._telling = Telling(handle)
        self._backoff = Backoff(args.initial_backoff, args.max_backoff)
        self._cool_down = CoolDown(args.cool_down)
        self._requested = RequestedNodes()
        self._places: dict[str, Place] = {}
        """By uid of pods, the requested node on which each has a place."""
        self._batch: dict[Hashable, Demand] = {}
        self._held: dict[Hashable, Demand] = {}
        """Demands that are tried again when a backoff or cool-down ends."""
        self._lock = asyncio.Lock()
        """Held while demands are packed: no node may be given up meanwhile."""
        self._is_working = False
        self._is_checking = False
        self._paper: HypotheticalNodes | None = None

    # What the plugin calls

    def note(self, demand: Demand) -> str:
        """Take a demand into the next batch; returns what is known about it, for its status."""
        waiting = self._telling.waiting(self._awaited(demand))
        if waiting and demand.group is None:
            return waiting
        self._batch[demand.key] = demand
        if not self._is_working:
            self._is_working = True
            self._handle.in_background(self._work())
        return waiting or self._telling.known(demand)

    def _awaited(self, demand: Demand) -> list[RequestedNode]:
        """The nodes on which a demand's pods have places, and that are not ready."""
        places = (self._places[pod.uid].name for pod in demand.pods if pod.uid in self._places)
        nodes = self._handle.nodes()
        requested = [self._requested[name] for name in dict.fromkeys(places)]
        return [each for each in requested if not is_ready(nodes, each.expected)]

    # Batches

    async def _work(self) -> None:
        """Pack batch after batch, until there is none."""
        try:
            while self._batch:
                await self._handle.sleep(self._args.batch_window)
                if self._handle.has_ended:
                    return  # The pods were requeued: the plugin of the next configuration asks for nodes.
                async with self._lock:
                    batch, self._batch = self._batch, {}
                    await self._pack(list(batch.values()))
        finally:
            self._is_working = False

    async def _pack(self, batch: Sequence[Demand]) -> None:
        nodes = self._handle.nodes()
        self._refresh(nodes)
        self._tidy()
        demands = [demand for demand in batch if self._is_open(demand, nodes)]
        for pod in chain.from_iterable(demand.pods for demand in demands):
            self._places.pop(pod.uid, None)
            self.paper.forget(pod)
        allowance = self._allowance(nodes)
        now = self._handle.clock.now()
        parts: dict[bool, list[Demand]] = {True: [], False: []}
        for demand in demands:
            parts[self._cool_down.end(demand.pods, now) is not None].append(demand)
        for is_cooling, some in parts.items():
            refusal = _cooling if is_cooling else self._refusal
            packing = Packing(self.paper, nodes, self._offers, self._args.choice, allowance, refusal)
            for _ in packing.run(some):
                await asyncio.sleep(0)
            self._decided(some, packing.packed, allowance)

    def _tidy(self) -> None:
        """Remove the nodes that a batch has left that failed."""
        for name in {*self.paper.names} - {each.node.name for each in self._requested}:
            self.paper.remove(name)

    def _is_open(self, demand: Demand, nodes: Nodes) -> bool:
        """Whether a demand still needs a node, and no room is being made for it."""
        if any(self._handle.nominations.node_of(pod.uid) for pod in demand.pods):
            return False
        if demand.group is not None:
            return True
        uid = demand.pods[0].uid
        return uid not in nodes.snapshot.pods and uid not in self._places

    def _allowance(self, nodes: Nodes) -> Allowance:
        there = nodes.snapshot.row_of
        expected = (each for each in self._requested if (each.expected or each.node.name) not in there)
        return Allowance(self._args, nodes, ((each.offer, each.node) for each in expected))

    @property
    def paper(self) -> HypotheticalNodes:
        """The nodes that are asked for, with the pods that have a place there."""
        if self._paper is None:
            self._paper = self._handle.hypothetical_nodes()
        return self._paper

    def _refusal(self, offer: Offer) -> str:
        return self._backoff.refusal(offer, self._handle.clock.now())

    def _decided(self, demands: Sequence[Demand], packed: Packed, allowance: Allowance) -> None:
        """Ask for the new nodes; say why others get none."""
        by_uid = {pod.uid: demand for demand in demands for pod in demand.pods}
        pods = {pod.uid: pod for demand in demands for pod in demand.pods}
        for uid, name in packed.places.items():
            self._places[uid] = Place(pods[uid], by_uid[uid], name)
        for demand in demands:
            if (reason := packed.reasons.get(demand.key)) is not None:
                self._telling.not_triggered(demand, reason)
                self._hold(demand)
        by_offer: dict[Hashable, list[NewNode]] = {}
        for new in packed.new:
            allowance.give_back(*new)
            by_offer.setdefault(key_of(new.offer), []).append(new)
        for some in by_offer.values():
            for new in some:
                allowance.take(*new)
            self._ask(some[0].offer, some, allowance.count(some[0].offer))

    # Requests

    def _ask(self, offer: Offer, new: Sequence[NewNode], count: int) -> None:
        """Ask for nodes of an offer; count: how many of the shape there will be."""
        deadline = self._handle.clock.now() + self._args.provisioning_delay + self._args.provisioning_timeout
        requested = [RequestedNode(offer, node, deadline) for _, node in new]
        self._requested.add(requested, self._handle.nodes())
        self._telling.requested(offer, len(requested), len(self._requested))
        self._handle.in_background(self._request(offer, requested, count))
        self._check_later()

    async def _request(self, offer: Offer, requested: Sequence[RequestedNode], count: int) -> None:
        async with self._lock:
            places = [place for each in requested for place in self._places_on(each)]
        pods = [(place.pod, place.demand.message) for place in places]
        accepted: Sequence[RequestedNode] = requested
        try:
            answer = await self._provisioner.ask(NodesWanted(offer, [each.node for each in requested], pods))
            async with self._lock:
                accepted = self._accepted(requested, answer, count)
            await self._provisioner.complete([each.node for each in accepted])
        except ProvisioningError as error:
            async with self._lock:
                self._failed(accepted, str(error))

    def _accepted(
        self, requested: Sequence[RequestedNode], answer: Answer, count: int
    ) -> Sequence[RequestedNode]:
        accepted = requested[: answer.accepted]
        for each, name in zip(accepted, answer.names, strict=False):
            each.expected = name
        for each in accepted:
            pods = [place.pod for place in self._places_on(each)]
            self._telling.triggered(each, pods, count - len(requested), count)
        if refused := requested[answer.accepted :]:
            self._failed(refused, answer.reason)
        return accepted

    def _places_on(self, requested: RequestedNode) -> list[Place]:
        """The places on a node, if it is still asked for."""
        if requested not in self._requested:
            return []
        return [self._places[pod.uid] for pod in self.paper.pods_on(requested.node.name)]

    def _failed(self, requested: Sequence[RequestedNode], reason: str) -> None:
        """Nodes will not come: their shape is left alone for a time, and pods are tried again."""
        requested = [each for each in requested if each in self._requested]
        if not requested:
            return
        offer = requested[0].offer
        log.warning("%d of %s: %s", len(requested), offer.prefix, reason)
        self._backoff.failed(offer, self._handle.clock.now())
        again: dict[Hashable, Demand] = {}
        for each in requested:
            for place in self._given_up(each):
                again[place.demand.key] = place.demand
                self._telling.failed(place.pod, reason)
        self._telling.ended(offer, "failed", len(requested), len(self._requested))
        self._activate(again.values())

    def _given_up(self, requested: RequestedNode) -> list[Place]:
        """Expect a node no longer; returns the places that were there."""
        places = self._places_on(requested)
        self._requested.remove(requested)
        self.paper.remove(requested.node.name)
        for place in places:
            del self._places[place.pod.uid]
        return places

    # Arrivals

    def _refresh(self, nodes: Nodes) -> None:
        """Notice nodes that have come, nodes whose time is over, and pods that have got a node."""
        now, snapshot = self._handle.clock.now(), nodes.snapshot
        for each in self._requested.arrived(nodes):
            self._arrived(each, now)
        for late in self._requested.overdue(now):
            self._failed([late], f"no node came within {self._args.provisioning_timeout}")
        for uid in [uid for uid in self._places if uid in snapshot.pods]:
            self.paper.forget(self._places.pop(uid).pod)

    def _arrived(self, came: RequestedNode, now: float) -> None:
        places = self._given_up(came)
        self._cool_down.begin([place.pod for place in places], now)
        for demand in {place.demand.key: place.demand for place in places}.values():
            self._hold(demand)
        self._backoff.succeeded(came.offer)
        self._telling.ended(came.offer, "ready", 1, len(self._requested))

    def _check_later(self) -> None:
        if not self._is_checking:
            self._is_checking = True
            self._handle.clock.call_later(_CHECK_SECONDS, self._check)

    def _check(self) -> None:
        self._is_checking = False
        if not self._lock.locked():
            self._refresh(self._handle.nodes())
        if self._requested:
            self._check_later()

    # Another try

    def _hold(self, demand: Demand) -> None:
        """Try a demand again when the next backoff or cool-down ends, if there is one."""
        now = self._handle.clock.now()
        ends = [self._backoff.end(self._offers, now), self._cool_down.end(demand.pods, now)]
        later = [end for end in ends if end is not None]
        if not later:
            return
        if not self._held:
            self._handle.clock.call_later(min(later) - now + _MARGIN_SECONDS, self._retry)
        self._held[demand.key] = demand
        if len(self._held) > _MAX_HELD:
            del self._held[next(iter(self._held))]

    def _retry(self) -> None:
        held, self._held = self._held, {}
        if not self._handle.has_ended:
            self._activate(held.values())

    def _activate(self, demands: Iterable[Demand]) -> None:
        """Have demands tried again: those that are gone or have a node are not in the queue any more."""
        for demand in demands:
            if demand.group is None:
                self._handle.activate(demand.pods)
            else:
                self._handle.activate_group(demand.group.key)


def _cooling(offer: Offer) -> str:
    """Why a pod in cool-down asks for no node."""
    return _COOLING
