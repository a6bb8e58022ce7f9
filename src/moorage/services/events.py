"""Events that users read (`kubectl describe`), as client-go's `tools/events` writes them.

`Recorder.event` only puts what happened into a queue: the scheduler never waits for it, and if too much
happens at once, what happens then is not told. From the queue, what happened before becomes a series: its
second time is written, later ones are counted, and the count is written when the series ends (nothing for six
minutes) and every half an hour. A few writers do the writing; they go as fast as the client they are given,
whose rate limit should be its own, so that events never slow bindings down.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from datetime import datetime, timedelta
from random import Random
from typing import Final

import msgspec

from moorage.api.pod import Pod
from moorage.client.client import Client
from moorage.client.kinds import EVENT
from moorage.client.waiting import sleep
from moorage.clock import Clock
from moorage.http.errors import ConnectionFailed, RequestError
from moorage.klog import Logger, kobj
from moorage.services.event_series import Entry, Happening, Names, Reference, new_entry
from moorage.services.timing import within

log = Logger(__name__)

MOST_QUEUED: Final = 1000
"""What happens while so much has not even been looked at is not told."""
MOST_TO_WRITE: Final = 20_000
"""While so many events wait to be written, the queue is left alone, and fills."""
MOST_REMEMBERED: Final = 20_000
"""So many events are remembered, in case they happen again; then the oldest are forgotten."""
FINISH_SECONDS: Final = 6 * 60.0
REFRESH_SECONDS: Final = 30 * 60.0
MOST_TRIES: Final = 12
RETRY_SECONDS: Final = 10.0
_RETRY_JITTER: Final = 0.25
MOST_WRITERS: Final = 32
"""So many events are being written at the same time; the others wait, and bindings go first."""


class Broadcaster:
    """Takes what recorders say, and writes it."""

    def __init__(
        self, client: Client, clock: Clock, now: Callable[[], datetime], random: Random, host: str
    ) -> None:
        self._client = client
        self._clock = clock
        self._now = now
        self._random = random
        self._host = host
        self._names = Names(random)
        self._queue: deque[Happening] = deque()
        self._entries: OrderedDict[tuple[object, ...], Entry] = OrderedDict()
        self._to_write: deque[Entry] = deque()
        self._tasks: asyncio.TaskGroup | None = None
        self._writers = 0
        self._resting: list[asyncio.Future[None]] = []
        """Writers with nothing to write: waking one costs less than a new task for every event."""
        self._is_taking_in = False
        self._is_idle = asyncio.Event()
        self._is_idle.set()
        self.dropped = 0
        """How much was not told because too much happened."""

    def recorder(self, controller: str) -> Recorder:
        """Who reports under a name: a profile's scheduler name."""
        return Recorder(self, controller, f"{controller}-{self._host}", self._now)

    def tell(self, happened: Happening) -> None:
        """Take note of something; never waits."""
        if len(self._queue) >= MOST_QUEUED:
            self.dropped += 1
            return
        self._queue.append(happened)
        self._is_idle.clear()
        if self._tasks is not None and not self._is_taking_in:
            self._is_taking_in = True
            asyncio.get_running_loop().call_soon(self._take_in)

    async def run(self) -> None:
        """Write events until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                tasks.create_task(self._every(FINISH_SECONDS, self._finish))
                tasks.create_task(self._every(REFRESH_SECONDS, self._refresh))
                self._take_in()
        finally:
            self._tasks = None
            self._writers = 0
            self._resting.clear()

    async def flush(self, seconds: float) -> None:
        """Returns once all is written, or after that long."""
        try:
            await within(self._clock, seconds, self._is_idle.wait())
        except TimeoutError:
            waiting = len(self._queue) + len(self._to_write) + self._writers - len(self._resting)
            log.warning("Events are not written yet", count=waiting)

    # -- from what happened to what is to be written

    def _take_in(self) -> None:
        self._is_taking_in = False
        while self._queue and len(self._to_write) < MOST_TO_WRITE:
            happened = self._queue.popleft()
            key = happened.key
            entry = self._entries.get(key)
            if entry is None:
                entry = self._entries[key] = new_entry(happened, self._names)
                self._write_soon(entry)
                self._forget_oldest()
            else:
                was_series = entry.is_series
                entry.count, entry.last = entry.count + 1, happened.at
                if not was_series:
                    self._write_soon(entry)
        self._set_if_idle()

    def _forget_oldest(self) -> None:
        if len(self._entries) > MOST_REMEMBERED:
            _, oldest = self._entries.popitem(last=False)
            if oldest.is_series:
                self._write_soon(oldest)

    # -- writing

    def _write_soon(self, entry: Entry) -> None:
        """Have an event written; by whoever is writing it already, or by a writer that is free."""
        entry.is_stale = True
        if entry.is_waiting or self._tasks is None:
            return
        entry.is_waiting = True
        self._to_write.append(entry)
        if self._resting:
            woken = self._resting.pop()
            if not woken.done():  # Or else all are ending.
                woken.set_result(None)
        elif self._writers < MOST_WRITERS:
            self._writers += 1
            self._tasks.create_task(self._write_all())

    async def _write_all(self) -> None:
        while True:
            while self._to_write:
                await self._write_with_patience(self._to_write.popleft())
                self._take_in()
            await self._rest()

    async def _rest(self) -> None:
        """Returns when there is something to write again."""
        woken = asyncio.get_running_loop().create_future()
        self._resting.append(woken)
        self._set_if_idle()
        await woken

    def _set_if_idle(self) -> None:
        """Wake `flush` if everything is written."""
        if len(self._resting) == self._writers and not self._queue:
            self._is_idle.set()

    async def _write_with_patience(self, entry: Entry) -> None:
        tries = 0
        while entry.is_stale:
            entry.is_stale = False  # What happens from here on is not in what is written now.
            if await self._write(entry):
                continue
            entry.is_stale = True
            tries += 1
            if tries == MOST_TRIES:
                log.error(None, "Unable to write event (retry limit exceeded!)", event=kobj(entry))
                break
            await sleep(self._clock, RETRY_SECONDS * (1 + _RETRY_JITTER * self._random.random()))
        entry.is_waiting = False

    async def _write(self, entry: Entry) -> bool:
        """Write an event, or how often it has happened; whether that is done with, well or not."""
        try:
            if not (entry.is_stored and await self._patched(entry)):
                await self._client.post(EVENT, entry.namespace, entry.current())
                entry.is_stored = True
        except RequestError as error:
            if error.already_exists:
                # The answer to an earlier try was lost; a series' count has still to get there.
                entry.is_stored = True
                return not entry.is_series
            log.error(error, "Server rejected event (will not retry!)", event=kobj(entry))
        except (ConnectionFailed, msgspec.MsgspecError) as error:
            log.error(error, "Unable to write event (may retry after sleeping)", event=kobj(entry))
            return False
        return True

    async def _patched(self, entry: Entry) -> bool:
        """Write how often an event has happened; False if the API server has it no more."""
        patch = {"series": entry.series}
        try:
            await self._client.patch(EVENT, entry.namespace, entry.name, patch, "strategic")
        except RequestError as error:
            if not error.is_not_found:
                raise
            entry.is_stored = False
            return False
        return True

    # -- from time to time

    async def _every(self, seconds: float, act: Callable[[], object]) -> None:
        while True:
            await sleep(self._clock, seconds)
            act()

    def _finish(self) -> None:
        """End the series in which nothing has happened for long: with their counts written."""
        oldest = self._now() - timedelta(seconds=FINISH_SECONDS)
        for key, entry in list(self._entries.items()):
            if entry.last < oldest:
                del self._entries[key]
                if entry.is_series:
                    self._write_soon(entry)

    def _refresh(self) -> None:
        """Write the counts of series that go on: who reads them should not see an old one for hours."""
        for entry in self._entries.values():
            if entry.is_series:
                self._write_soon(entry)


class Recorder:
    """Says what happens, as one profile."""

    def __init__(
        self, broadcaster: Broadcaster, controller: str, instance: str, now: Callable[[], datetime]
    ) -> None:
        self._broadcaster = broadcaster
        self._controller = controller
        self._instance = instance
        self._now = now

    def event(
        self, regarding: Reference, related: Reference | None, type: str, reason: str, action: str, note: str
    ) -> None:
        """Something has happened; never waits. `type` is Normal or Warning."""
        self._broadcaster.tell(
            Happening(
                self._now(),
                self._controller,
                self._instance,
                regarding,
                related,
                type,
                reason,
                action,
                note,
            )
        )

    def scheduled(self, pod: Pod, node_name: str) -> None:
        """A pod has got its node."""
        note = f"Successfully assigned {pod.namespace}/{pod.name} to {node_name}"
        self.event(Reference.to_pod(pod), None, "Normal", "Scheduled", "Binding", note)

    def failed(self, pod: Pod, message: str) -> None:
        """A pod has got no node."""
        self.event(Reference.to_pod(pod), None, "Warning", "FailedScheduling", "Scheduling", message)

    def preempted(self, victim: Pod, preemptor: Pod, node_name: str, *, in_memory: bool = False) -> None:
        """A pod had to go for another; `in_memory`: it was not yet bound, and is not deleted."""
        note = f"Preempted by pod {preemptor.uid} on node {node_name}"
        if in_memory:
            note += " (in kube-scheduler memory)."
        related = Reference.to_pod(preemptor)
        self.event(Reference.to_pod(victim), related, "Normal", "Preempted", "Preempting", note)
