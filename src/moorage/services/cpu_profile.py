"""`/debug/pprof/profile`: a CPU profile of the main thread, where the scheduling loop runs.

The system sends SIGPROF for every few milliseconds of CPU time that the process has used, and the stack at
that moment is counted. The result has a line for each stack, outermost function first, and its number of
samples: the format of flamegraph.pl, which speedscope reads, too. Time in the event loop and in system calls,
where no Python function runs, is counted for the function that runs the loop.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from http import HTTPStatus
from types import CodeType, FrameType
from typing import Final
from urllib.parse import parse_qs

from moorage.client.waiting import sleep
from moorage.clock import Clock
from moorage.http.transport import Request, Response
from moorage.services import responses
from moorage.services.responses import Handler

DEFAULT_SECONDS: Final = 30.0
"""Duration of a profile unless the request has one, as in Go."""
_INTERVAL_SECONDS: Final = 0.002
"""CPU time between two samples, in seconds; many systems make it longer."""
_PACKAGES: Final = ("moorage/", "site-packages/", "python3.", "lib/")
"""Where the part of a file's path begins that is shown; the first that is found."""


class ProfileInUseError(Exception):
    """A profile is being recorded already."""


class CpuProfile:
    """Counts stacks of the main thread; recorded from its event loop."""

    def __init__(self) -> None:
        self._stacks: Counter[tuple[CodeType, ...]] | None = None

    @contextmanager
    def recording(self) -> Iterator[Counter[tuple[CodeType, ...]]]:
        """Counts stacks, outermost function first, for the duration of the context."""
        if self._stacks is not None:
            raise ProfileInUseError
        stacks = self._stacks = Counter()
        before = signal.signal(signal.SIGPROF, self._sample)
        signal.setitimer(signal.ITIMER_PROF, _INTERVAL_SECONDS, _INTERVAL_SECONDS)
        try:
            yield stacks
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            signal.signal(signal.SIGPROF, before)
            self._stacks = None

    def _sample(self, number: int, frame: FrameType | None) -> None:
        stack = []
        while frame is not None:
            stack.append(frame.f_code)
            frame = frame.f_back
        if self._stacks is not None:
            self._stacks[tuple(reversed(stack))] += 1


def folded(stacks: Counter[tuple[CodeType, ...]]) -> str:
    """A line for each stack: functions with their files, and the number of samples."""
    lines = [f"{';'.join(map(_name, stack))} {count}\n" for stack, count in stacks.most_common()]
    return "".join(lines)


@lru_cache(maxsize=4096)
def _name(code: CodeType) -> str:
    path = code.co_filename
    for package in _PACKAGES:
        _, found, rest = path.rpartition(package)
        if found:
            path = found + rest
            break
    return f"{path}:{code.co_qualname}".replace(";", ",")


def profile_routes(clock: Clock) -> dict[str, Handler]:
    """`/debug/pprof/profile?seconds=30`; to be called in the profiled loop."""
    profile = CpuProfile()

    async def record(request: Request) -> Response:
        try:
            with profile.recording() as stacks:
                await sleep(clock, _seconds(request.query))
        except ProfileInUseError:
            problem = "Could not enable CPU profiling: cpu profiling already in use"
            return responses.error(HTTPStatus.INTERNAL_SERVER_ERROR, problem)
        return responses.text(folded(stacks))

    return {"/debug/pprof/profile": record}


def _seconds(query: str) -> float:
    """The duration that a query asks for; the default if it has none, or none that can be used."""
    try:
        seconds = float(parse_qs(query)["seconds"][0])
    except (KeyError, ValueError):
        return DEFAULT_SECONDS
    return seconds if 0 < seconds < float("inf") else DEFAULT_SECONDS
