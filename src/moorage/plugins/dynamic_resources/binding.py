"""The binding cycle: allocations and reservations are written, and devices awaited until they are ready."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final

from msgspec.structs import replace

from moorage.api.decode import convert
from moorage.api.devices import ResourceClaim, ResourceClaimStatus
from moorage.api.pod import Pod, PodExtendedResourceClaimStatus
from moorage.backoff import Backoff
from moorage.client.kinds import RESOURCE_CLAIM
from moorage.client.waiting import sleep
from moorage.framework.interface.effects import (
    CreateClaim,
    DeleteClaim,
    Effect,
    WriteClaimStatus,
    WriteExtendedResourceStatus,
)
from moorage.framework.interface.events import Action, Resource
from moorage.framework.interface.handle import Handle
from moorage.http.errors import ConnectionFailed, RequestError
from moorage.plugins.dynamic_resources.extended_resources import NOT_STORED, NodeClaim, new_claim, to_store
from moorage.plugins.dynamic_resources.in_flight_allocations import InFlightAllocations
from moorage.plugins.dynamic_resources.pod_claims import (
    BindingFailedError,
    overdue,
    protected,
    ready,
    reserved,
    reserved_for,
    takes_time,
    unreserved,
)
from moorage.plugins.dynamic_resources.pod_devices import PodDevices

_INITIAL_BACKOFF_SECONDS: Final = 0.5
_MAX_BACKOFF_SECONDS: Final = 10.0


class BindingError(Exception):
    """A claim could not be bound; the pod has to be tried again."""


class BindingTimeoutError(BindingError):
    """Devices did not get ready in time."""


class ClaimBinder:
    """Writes reserved allocations, and reverts them."""

    def __init__(self, handle: Handle, in_flight: InFlightAllocations, timeout_seconds: float) -> None:
        self._handle = handle
        self._in_flight = in_flight
        self._timeout_seconds = timeout_seconds
        self._tasks: set[asyncio.Task[None]] = set()

    async def bind(self, state: PodDevices, pod: Pod) -> None:
        """Write each claim that the pod has not reserved yet; then wait until all devices are ready."""
        for place, claim in enumerate(state.claims):
            if not reserved_for(pod, claim):
                await self._bind(state, place, pod)
        if any(map(takes_time, state.claims)):
            await self._wait(state)

    async def _wait(self, state: PodDevices) -> None:
        """Wait until all devices are ready, and record the result in metrics."""
        began, outcome = self._handle.clock.now(), "error"
        try:
            if not await self._handle.wait_until(lambda: self._ready(state), self._timeout_seconds):
                raise BindingTimeoutError("device binding timeout: context deadline exceeded")
            outcome = "success"
        except BindingTimeoutError:
            outcome = "timeout"
            raise
        except BindingFailedError:
            outcome = "failure"
            raise
        finally:
            given = [claim.status.allocation for claim in state.claims]
            results = [result for each in given if each is not None for result in each.devices.results]
            self._handle.metrics.devices_awaited(
                outcome,
                self._handle.clock.now() - began,
                [result.driver for result in results],
                [result.driver for result in results if result.binding_conditions],
            )

    async def _bind(self, state: PodDevices, place: int, pod: Pod) -> None:
        extended = state.plan.extended if state.plan is not None and state.is_extended(place) else None
        if state.claims[place].name == NOT_STORED:
            if extended is None:
                return  # the node has the resources itself
            state.claims[place] = await self._create(extended, pod)
        claim = self._latest(state.claims[place])
        status = self._status(state, place, claim, pod)
        written = protected(claim)
        # Cancelled or not, a write that has begun goes on: what became of it must be known.
        state.writes[place] = asyncio.ensure_future(
            self._handle.effects.perform(WriteClaimStatus(written, status))
        )
        stored = await asyncio.shield(state.writes[place])
        answer = stored if isinstance(stored, ResourceClaim) else replace(written, status=status)
        state.claims[place] = answer
        del state.writes[place]
        if place in state.in_flight_uids:
            self._show(answer)
            self._in_flight.mark_written(state.in_flight_uids[place], answer)
        if extended is not None:
            backed = PodExtendedResourceClaimStatus(
                request_mappings=extended.mappings, resource_claim_name=answer.name
            )
            await self._handle.effects.perform(WriteExtendedResourceStatus(pod, backed))

    async def _create(self, extended: NodeClaim, pod: Pod) -> ResourceClaim:
        """Create the claim that stands for a pod's extended resources."""
        created = None
        try:
            created = await self._handle.effects.perform(CreateClaim(to_store(extended.claim), pod))
        finally:
            self._handle.metrics.claim_created(created is not None)
        if not isinstance(created, ResourceClaim):
            raise BindingError(f"create claim for extended resources of pod {pod.key}: no answer")
        return created

    def _latest(self, claim: ResourceClaim) -> ResourceClaim:
        """A claim as it is now: others may have changed it since the cycle began."""
        shown = self._handle.objects.of(ResourceClaim).get(claim.namespace, claim.name)
        return claim if shown is None or shown.metadata.uid != claim.metadata.uid else shown

    def _status(self, state: PodDevices, place: int, claim: ResourceClaim, pod: Pod) -> ResourceClaimStatus:
        if claim.metadata.deletion_timestamp is not None:
            raise BindingError(f"claim {claim.key} got deleted in the meantime")
        given = state.allocations.get(place)
        if given is not None and claim.status.allocation is not None:
            raise BindingError(f"claim {claim.key} got allocated elsewhere in the meantime")
        given = given or claim.status.allocation
        if given is None:
            raise BindingError(f"claim {claim.key} got deallocated elsewhere in the meantime")
        if given.allocation_timestamp is None:
            given = replace(given, allocation_timestamp=self._handle.clock.utc_now())
        return reserved(pod, claim.status, given)

    def _show(self, claim: ResourceClaim) -> None:
        """Make a write visible to others before its watch event arrives."""
        table = self._handle.objects.of(ResourceClaim)
        shown = table.get(claim.namespace, claim.name)
        if shown is not None and shown.metadata.uid == claim.metadata.uid and shown.status != claim.status:
            table.assume(claim)

    def _ready(self, state: PodDevices) -> bool:
        """Whether all devices are ready in the informer's cache; raises if some never will be."""
        table = self._handle.objects.of(ResourceClaim)
        for place, claim in enumerate(state.claims):
            if not takes_time(claim):
                continue
            shown = table.get(claim.namespace, claim.name)
            if shown is None and not state.is_extended(place):
                raise BindingError(f'could not find ResourceClaim "{claim.key}"')
            if shown is None or shown.status.allocation is None:
                return False  # the watch event of the write has not arrived yet
            state.claims[place] = shown
            if not ready(shown):
                if overdue(shown, self._timeout_seconds, self._handle.clock.utc_now()):
                    raise BindingTimeoutError(f"device binding timeout: claim={shown.name}")
                return False
        return True

    # Reverting

    def undo(self, state: PodDevices, pod: Pod) -> None:
        """Drop in-flight allocations, and revert what was written already; idempotent."""
        state.allocations.clear()
        for place, claim in enumerate(state.claims):
            uid, write = state.in_flight_uids.pop(place, None), state.writes.pop(place, None)
            if write is not None and not _is_refused(write):
                self._run(self._revert_write(write, claim, pod, uid))
                continue
            if uid is not None:
                self._in_flight.cancel(uid)
            if state.is_extended(place):
                if claim.name != NOT_STORED:
                    state.claims[place] = new_claim(pod)
                    self._start(DeleteClaim(claim), uid)
            elif reserved_for(pod, claim):
                latest = self._latest(claim)
                written = latest if reserved_for(pod, latest) else claim
                status = unreserved(pod, written.status)
                state.claims[place] = replace(written, status=status)
                self._start(WriteClaimStatus(written, status), None)

    async def _revert_write(
        self, write: asyncio.Future[Any], claim: ResourceClaim, pod: Pod, uid: str | None
    ) -> None:
        """Revert a write for which the pod no longer waits, or whose answer was lost.

        Until it is known whether it took effect, the devices count as allocated.
        """
        await asyncio.wait((write,))
        stored = None if _is_refused(write) else await self._read(claim)
        if stored is None or not reserved_for(pod, stored):
            if uid is not None:
                self._in_flight.cancel(uid)
                # The devices are free, of which no event of the API server tells.
                self._handle.announce(Resource.RESOURCE_SLICE, Action.UPDATE)
            return
        if uid is not None:
            self._in_flight.mark_written(uid, stored)
        await self._attempt(WriteClaimStatus(stored, unreserved(pod, stored.status)), None)

    async def _read(self, claim: ResourceClaim) -> ResourceClaim | None:
        """A claim as the API server has it; None if it is gone. Asks until there is an answer."""
        backoff = Backoff(_INITIAL_BACKOFF_SECONDS, _MAX_BACKOFF_SECONDS, self._handle.random)
        while True:
            try:
                stored = await self._handle.client.get(RESOURCE_CLAIM, claim.namespace, claim.name)
            except RequestError as error:
                if error.is_not_found:
                    return None
            except ConnectionFailed:
                pass
            else:
                latest = convert(stored, ResourceClaim)
                return latest if latest.metadata.uid == claim.metadata.uid else None
            await sleep(self._handle.clock, backoff.next_seconds())

    def _start(self, effect: Effect, in_flight_uid: str | None) -> None:
        """Write in the background: any failure is repaired in the pod's next attempt.

        in_flight_uid: the in-flight allocation that ends when it is done.
        """
        self._run(self._attempt(effect, in_flight_uid))

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something in the background; in a dry run, which writes nothing, not at all."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            work.close()
            return
        task = loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _attempt(self, effect: Effect, in_flight_uid: str | None) -> None:
        with suppress(Exception):
            await self._handle.effects.perform(effect)
            if in_flight_uid is not None:
                self._in_flight.drop(in_flight_uid)


def _is_refused(write: asyncio.Future[Any]) -> bool:
    """Whether it is known that a write took no effect: it has failed, and not because its answer was lost."""
    if not write.done() or write.cancelled():
        return False
    return write.exception() is not None and not isinstance(write.exception(), ConnectionFailed)
