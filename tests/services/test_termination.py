"""A process ends when it is asked to, also while its event loop is stuck."""

from __future__ import annotations

import signal
import subprocess
import sys
from queue import Empty

import pytest

from moorage.services.termination import GRACE_SECONDS, follow_signals

KUBERNETES_GRACE_SECONDS = 30
LIMIT_SECONDS = 30
STUCK = """
import asyncio, uvloop
from moorage.services.termination import on_termination

async def main():
    on_termination(lambda: print("stopping", flush=True), grace_seconds={grace_seconds})
    print("ready", flush=True)
    {work}

uvloop.run(main())
"""


class Signals:
    """Signals as they come: one at each call, and then none until the time is over."""

    def __init__(self, count: int) -> None:
        self._left = count
        self.timeouts: list[float | None] = []

    def next(self, timeout: float | None = None) -> int:
        self.timeouts.append(timeout)
        if not self._left:
            raise Empty
        self._left -= 1
        return signal.SIGTERM


ENDS = {
    1: "Not terminated within the grace period of 25 s, exiting at once",
    2: "Requested to terminate again, exiting at once",
}


@pytest.mark.parametrize("count", ENDS)
def test_a_graceful_end_first_and_then_one_at_once(count: int) -> None:
    signals = Signals(count)
    states: list[str] = []
    follow_signals(signals.next, lambda: states.append("stop"), GRACE_SECONDS, states.append)
    assert states == ["stop", ENDS[count]]
    assert signals.timeouts == [None, GRACE_SECONDS]


def test_the_grace_period_is_below_that_of_pods() -> None:
    assert GRACE_SECONDS < KUBERNETES_GRACE_SECONDS


def started(work: str, grace_seconds: float) -> subprocess.Popen[str]:
    program = STUCK.format(work=work, grace_seconds=grace_seconds)
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stuck_loop_cannot_keep_the_process_from_ending(number: signal.Signals) -> None:
    with started("while True: pass", grace_seconds=0.01) as process:
        process.send_signal(number)
        output, errors = process.communicate(timeout=LIMIT_SECONDS)
    assert process.returncode == 1
    assert output == "", "the loop has not had a turn"
    assert "Not terminated within the grace period" in errors


def test_a_second_signal_ends_the_process_at_once() -> None:
    with started("await asyncio.Event().wait()", grace_seconds=3600) as process:
        process.send_signal(signal.SIGTERM)
        assert process.stdout is not None
        assert process.stdout.readline() == "stopping\n"
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=LIMIT_SECONDS)
    assert process.returncode == 1
    assert "Requested to terminate again" in errors
