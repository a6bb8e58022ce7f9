"""CPU profiles: stacks of the main thread as text."""

from __future__ import annotations

import asyncio
import re
import signal

import pytest

from moorage.clock import VirtualClock
from moorage.http.transport import Request, Response
from moorage.services.cpu_profile import DEFAULT_SECONDS, CpuProfile, folded, profile_routes


def burn_cpu_until_sampled(profile: CpuProfile) -> str:
    with profile.recording() as stacks:
        while not stacks:
            sum(range(1000))
    return folded(stacks)


def test_stacks_name_files_and_functions_outermost_first() -> None:
    before = signal.getsignal(signal.SIGPROF)
    first, *_ = burn_cpu_until_sampled(CpuProfile()).splitlines()
    assert re.fullmatch(r"\S.*;\S+test_cpu_profile\.py:burn_cpu_until_sampled(;.*)? [1-9]\d*", first)
    assert first.index("pytest") < first.index("burn_cpu")
    assert signal.getsignal(signal.SIGPROF) is before
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("query", "seconds"),
    [
        ("seconds=5", 5.0),
        ("", DEFAULT_SECONDS),
        *((f"seconds={each}", DEFAULT_SECONDS) for each in ("0", "x", "inf")),
    ],
)
def test_a_profile_takes_as_long_as_asked_for(query: str, seconds: float) -> None:
    clock = VirtualClock()
    record = profile_routes(clock)["/debug/pprof/profile"]

    async def ask() -> Response:
        request = Request("GET", "/debug/pprof/profile", query)
        recording = asyncio.ensure_future(record(request))
        await asyncio.sleep(0)
        clock.advance(seconds - 0.001)
        await asyncio.sleep(0)
        assert not recording.done()
        second = await record(request)
        assert second.status == 500
        assert second.body == b"Could not enable CPU profiling: cpu profiling already in use\n"
        clock.advance(0.001)
        return await recording

    answer = asyncio.run(ask())
    assert (answer.status, answer.content_type) == (200, "text/plain; charset=utf-8")
