"""A watch in which the events of a script fail."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from moorage.client.waiting import sleep
from moorage.clock import Clock
from moorage.http.errors import AnswerLost
from moorage.http.transport import Stream
from moorage_cluster.chaos.script import WatchFault


@dataclass(slots=True)
class EventNumber:
    """The number of the next event of a resource's watches."""

    value: int = 0


class FaultyWatch(Stream):
    """One watch of a scheduler."""

    def __init__(
        self,
        stream: Stream,
        resource: str,
        faults: Mapping[tuple[str, int], WatchFault],
        number: EventNumber,
        clock: Clock,
        injected: Counter[str],
        is_calm: Callable[[], bool],
    ) -> None:
        self._stream = stream
        self._resource = resource
        self._faults = faults
        self._number = number
        self._clock = clock
        self._injected = injected
        self._is_calm = is_calm
        self._closed = asyncio.Event()
        self._sent: list[bytes] = []

    @property
    def is_behind(self) -> bool:
        """As the watch itself."""
        return self._stream.is_behind

    def close(self) -> None:
        """The reader is gone."""
        self._closed.set()
        self._stream.close()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            for line in piece.splitlines(keepends=True):
                if self._closed.is_set():
                    return
                async for part in self._faulty(line, self._next_fault()):
                    yield part
                if self._closed.is_set():
                    return

    def _next_fault(self) -> WatchFault | None:
        number = self._number.value
        self._number.value += 1
        fault = None if self._is_calm() else self._faults.get((self._resource, number))
        if fault is not None:
            self._injected[f"watch of {self._resource}: {fault.fault}"] += 1
        return fault

    async def _faulty(self, line: bytes, fault: WatchFault | None) -> AsyncIterator[bytes]:
        """An event, as it arrives; the watch is closed behind those that are its last."""
        middle = len(line) // 2
        match fault.fault if fault is not None else None:
            case "cut":
                raise AnswerLost("injected: connection reset")
            case "cut-in-object":
                yield line[:middle]
                raise AnswerLost("injected: connection reset")
            case "ended-in-object":
                yield line[:middle]
                self.close()
                return
            case "ended":
                self.close()
                return
            case "half-open":
                await self._closed.wait()
                return
            case "410":
                yield _expired()
                self.close()
                return
            case "split":
                yield line[:middle]
                yield line[middle:]
                self._sent.append(line)
                return
            case "late":
                assert fault is not None
                await sleep(self._clock, fault.seconds)
        self._sent.append(line)
        yield line
        if fault is not None and fault.fault == "repeated":
            yield self._sent[len(self._sent) // 2]
        elif fault is not None and fault.fault == "idle-bookmark":
            yield _bookmark(line)


def _expired() -> bytes:
    status = {
        "kind": "Status",
        "status": "Failure",
        "code": 410,
        "reason": "Expired",
        "message": "injected 410",
    }
    return msgspec.json.encode({"type": "ERROR", "object": status}) + b"\n"


def _bookmark(line: bytes) -> bytes:
    """A bookmark with the version of an event that has come already."""
    known: dict[str, Any] = json.loads(line)["object"]
    meta = {"resourceVersion": known["metadata"]["resourceVersion"], "creationTimestamp": None}
    head = {"apiVersion": known["apiVersion"], "kind": known["kind"], "metadata": meta}
    return msgspec.json.encode({"type": "BOOKMARK", "object": head}) + b"\n"
