"""Events (`kubectl describe`), written as client-go's `tools/events` does.

`Recorder.event` only appends to a queue: the scheduler never waits for it, and while the queue is full,
    events are dropped. Repeated events become a series: the second occurrence is written, later ones are
    counted, and the count is written when the series ends (no occurrence for six minutes) and every half
    hour. A few writers do the writing; they are limited by the given client only, which should have its own
    rate limit, so that events never delay bindings.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from random import Random
from typing import Final

import msgspec

from moorage.api.pod import Pod
from moorage.client.client import Client
from moorage.client.kinds import EVENT
from moorage.client.waiting import sleep, within
from moorage.clock import Clock
from moorage.http.errors import ConnectionFailed, RequestError
from moorage.klog import Logger, kobj
from moorage.services.event_series import EventNames, Occurrence, Reference, SeriesEntry, new_entry

log = Logger(__name__)

MAX_QUEUED: Final = 1000
"""Maximum number of unprocessed occurrences; further ones are dropped."""
MAX_TO_WRITE: Final = 20_000
"""Maximum number of unwritten events; above it the queue is not processed, and fills."""
MAX_CACHED_EVENTS: Final = 20_000
"""Maximum number of events kept to detect repetitions; the oldest are dropped."""
FINISH_SECONDS: Final = 6 * 60.0
REFRESH_SECONDS: Final = 30 * 60.0
MAX_TRIES: Final = 12
RETRY_SECONDS: Final = 10.0
_RETRY_JITTER: Final = 0.25
MAX_WRITERS: Final = 32
"""Maximum number of events written at a time; bindings take precedence."""


class Broadcaster:
    """Receives occurrences from recorders, and writes events."""

    def __init__(self, client: Client, clock: Clock, random: Random, host: str) -> None:
        self._client = client
        self._clock = clock
        self._random = random
        self._host = host
        self._names = EventNames(random)
        self._queue: deque[Occurrence] = deque()
        self._entries: OrderedDict[tuple[object, ...], SeriesEntry] = OrderedDict()
        self._to_write: deque[SeriesEntry] = deque()
        self._tasks: asyncio.TaskGroup | None = None
        self._writers = 0
        self._backing_off: list[asyncio.Future[None]] = []
        """Idle writers: waking one costs less than a new task for every event."""
        self._is_taking_in = False
        """Whether the queue is going to be processed in this turn of the event loop."""
        self._is_idle = asyncio.Event()
        self._is_idle.set()
        self._flush = asyncio.Event()
        """Set, and replaced, when `flush` begins."""
        self.dropped = 0
        """Number of dropped occurrences."""

    def recorder(self, controller: str) -> Recorder:
        """A recorder for a reporting controller: a profile's scheduler name."""
        return Recorder(self, controller, f"{controller}-{self._host}", self._clock)

    def publish(self, occurrence: Occurrence) -> None:
        """Queue an occurrence; never waits."""
        if len(self._queue) >= MAX_QUEUED:
            self.dropped += 1
            return
        self._queue.append(occurrence)
        if self._is_taking_in:
            return
        self._is_idle.clear()
        if self._tasks is not None:
            self._is_taking_in = True
            asyncio.get_running_loop().call_soon(self._take_in)

    async def run(self) -> None:
        """Write events until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                tasks.create_task(self._every(FINISH_SECONDS, self._finish))
                self._take_in()
                try:
                    await self._every(REFRESH_SECONDS, self._refresh)
                finally:
                    self._tasks = None  # Before the group ends its tasks: it accepts no new ones then.
        finally:
            self._writers = 0
            self._backing_off.clear()

    async def flush(self, seconds: float) -> None:
        """Returns when everything is written, or after `seconds`; what waits for a retry is tried at once."""
        self._flush.set()
        self._flush = asyncio.Event()
        try:
            await within(self._clock, seconds, self._is_idle.wait())
        except TimeoutError:
            waiting = len(self._queue) + len(self._to_write) + self._writers - len(self._backing_off)
            log.warning("Shutting down with unwritten events", count=waiting)

    # -- from occurrences to events

    def _take_in(self) -> None:
        self._is_taking_in = False
        while self._queue and len(self._to_write) < MAX_TO_WRITE:
            occurrence = self._queue.popleft()
            key = occurrence.key
            entry = self._entries.get(key)
            if entry is None:
                entry = self._entries[key] = new_entry(occurrence, self._names)
                self._write_soon(entry)
                if len(self._entries) > MAX_CACHED_EVENTS:
                    self._forget_oldest()
            else:
                was_series = entry.is_series
                entry.count, entry.last = entry.count + 1, occurrence.at
                if not was_series:
                    self._write_soon(entry)
        self._set_if_idle()

    def _forget_oldest(self) -> None:
        _, oldest = self._entries.popitem(last=False)
        if oldest.is_series:
            self._write_soon(oldest)

    # -- writing

    def _write_soon(self, entry: SeriesEntry) -> None:
        """Have an event written: by the writer that is writing it already, or by an idle one."""
        entry.is_stale = True
        if entry.is_waiting or self._tasks is None:
            return
        entry.is_waiting = True
        self._to_write.append(entry)
        if len(self._to_write) == 1:
            self._wake_writer(self._tasks)
            asyncio.get_running_loop().call_soon(self._wake_writers)

    def _wake_writers(self) -> None:
        """Wake a writer for each event that is left: the first has written all until it had to wait."""
        if self._tasks is not None:
            for _ in range(len(self._to_write)):
                self._wake_writer(self._tasks)

    def _wake_writer(self, tasks: asyncio.TaskGroup) -> None:
        if self._backing_off:
            woken = self._backing_off.pop()
            if not woken.done():  # Otherwise all are ending.
                woken.set_result(None)
        elif self._writers < MAX_WRITERS:
            self._writers += 1
            tasks.create_task(self._write_all())

    async def _write_all(self) -> None:
        while True:
            while self._to_write:
                await self._write_with_retries(self._to_write.popleft())
                if self._queue:
                    self._take_in()
            await self._back_off()

    async def _back_off(self) -> None:
        """Returns when there is something to write."""
        woken = asyncio.get_running_loop().create_future()
        self._backing_off.append(woken)
        self._set_if_idle()
        await woken

    def _set_if_idle(self) -> None:
        """Wake `flush` if everything is written."""
        if len(self._backing_off) == self._writers and not self._queue:
            self._is_idle.set()

    async def _write_with_retries(self, entry: SeriesEntry) -> None:
        tries = 0
        while entry.is_stale:
            entry.is_stale = False  # Later occurrences are not in what is written now.
            if await self._write(entry):
                continue
            entry.is_stale = True
            tries += 1
            if tries == MAX_TRIES:
                log.error(None, "Unable to write event (retry limit exceeded!)", event=kobj(entry))
                break
            await self._wait_to_retry()
        entry.is_waiting = False

    async def _wait_to_retry(self) -> None:
        """Returns after the retry delay, or when events are flushed: a process that ends has no later."""
        delay = RETRY_SECONDS * (1 + _RETRY_JITTER * self._random.random())
        with suppress(TimeoutError):
            await within(self._clock, delay, self._flush.wait())

    async def _write(self, entry: SeriesEntry) -> bool:
        """Write an event, or its count; returns whether that is completed, successfully or not."""
        try:
            if not (entry.is_stored and await self._patched(entry)):
                await self._client.post(EVENT, entry.namespace, entry.current())
                entry.is_stored = True
        except RequestError as error:
            if error.already_exists:
                # The response to an earlier attempt was lost; a series' count has still to be written.
                entry.is_stored = True
                return not entry.is_series
            log.error(error, "Server rejected event (will not retry!)", event=kobj(entry))
        except (ConnectionFailed, msgspec.MsgspecError) as error:
            log.error(error, "Unable to write event (may retry after sleeping)", event=kobj(entry))
            return False
        return True

    async def _patched(self, entry: SeriesEntry) -> bool:
        """Write an event's count; False if the API server no longer has the event."""
        patch = {"series": entry.series}
        try:
            await self._client.patch(EVENT, entry.namespace, entry.name, patch, "strategic")
        except RequestError as error:
            if not error.is_not_found:
                raise
            entry.is_stored = False
            return False
        return True

    # -- periodically

    async def _every(self, seconds: float, act: Callable[[], object]) -> None:
        while True:
            await sleep(self._clock, seconds)
            act()

    def _finish(self) -> None:
        """End the series without recent occurrences, with their counts written."""
        oldest = self._clock.utc_now() - timedelta(seconds=FINISH_SECONDS)
        for key, entry in list(self._entries.items()):
            if entry.last < oldest:
                del self._entries[key]
                if entry.is_series:
                    self._write_soon(entry)

    def _refresh(self) -> None:
        """Write the counts of active series, so that they are not outdated for hours."""
        for entry in self._entries.values():
            if entry.is_series:
                self._write_soon(entry)


class SilentBroadcaster(Broadcaster):
    """Drops all occurrences, for simulations, whose events are not read."""

    def publish(self, occurrence: Occurrence) -> None:
        """Does nothing."""


class Recorder:
    """Records the events of one profile."""

    def __init__(self, broadcaster: Broadcaster, controller: str, instance: str, clock: Clock) -> None:
        self._broadcaster = broadcaster
        self._controller = controller
        self._instance = instance
        self._clock = clock

    def event(
        self, regarding: Reference, related: Reference | None, type: str, reason: str, action: str, note: str
    ) -> None:
        """An event occurred; never waits. `type` is Normal or Warning."""
        self._broadcaster.publish(
            Occurrence(
                self._clock.utc_now(),
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
        """A pod was bound."""
        note = f"Successfully assigned {pod.namespace}/{pod.name} to {node_name}"
        self.event(Reference.to_pod(pod), None, "Normal", "Scheduled", "Binding", note)

    def failed(self, pod: Pod, message: str) -> None:
        """A pod was not scheduled."""
        self.event(Reference.to_pod(pod), None, "Warning", "FailedScheduling", "Scheduling", message)

    def preempted(
        self, victim: Pod, preemptor: Reference, type: str, node_name: str, *, in_memory: bool = False
    ) -> None:
        """A pod was preempted, by a pod or a group (`type`).

        in_memory: it was not bound yet, and is not deleted.
        """
        note = f"Preempted by {type} {preemptor.uid} on node {node_name}"
        if in_memory:
            note += " (in kube-scheduler memory)."
        self.event(Reference.to_pod(victim), preemptor, "Normal", "Preempted", "Preempting", note)
