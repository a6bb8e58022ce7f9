"""A watchdog that looks at an event loop from outside, with virtual time."""

from __future__ import annotations

from moorage.clock import VirtualClock
from moorage.services.loop_watchdog import LoopWatchdog


class Watched:
    """A loop with a time limit of 10 s for one iteration, watched by a scripted thread."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.cycles = 0
        self.stalls: list[tuple[float, str]] = []
        self.stacks: list[str] = []
        self.watchdog = LoopWatchdog(10.0, self._stalled, lambda: self.cycles, self.clock.now)

    def _stalled(self, problem: str, stack: str) -> None:
        self.stalls.append((self.clock.now(), problem))
        self.stacks.append(stack)

    def pass_time(self, seconds: int, *, beats: bool = False, cycles: int = 0) -> None:
        """Let time pass in steps of a second; the loop turns in each, works in each, or is stuck."""
        for _ in range(seconds):
            if beats:
                self.watchdog.beat()
            self.cycles += cycles
            self.clock.advance(1.0)
            self.watchdog.check()


def test_a_loop_that_does_not_turn_for_the_limit_is_reported_once() -> None:
    watched = Watched()
    watched.pass_time(3, beats=True)
    watched.pass_time(9)
    assert watched.watchdog.problem is None
    watched.pass_time(5)
    assert watched.stalls == [(13.0, "the scheduling loop has not turned for 10.0 s")]
    assert watched.watchdog.problem == "the scheduling loop has not turned for 14.0 s"
    assert watched.stacks[0].endswith(" pass_time"), "the third call from where the loop's thread is"


def test_a_loop_that_turns_again_is_well_and_may_be_stuck_again() -> None:
    watched = Watched()
    watched.pass_time(12)
    watched.pass_time(1, beats=True)
    assert watched.watchdog.problem is None
    watched.pass_time(12)
    assert [when for when, _ in watched.stalls] == [10.0, 23.0]


def test_an_idle_loop_is_alive() -> None:
    watched = Watched()
    watched.pass_time(100, beats=True)
    assert watched.stalls == []


def test_a_batch_of_slow_cycles_is_alive_though_timers_wait() -> None:
    watched = Watched()
    watched.pass_time(100, cycles=1)
    assert watched.stalls == []


def test_a_suspended_process_is_not_blamed_on_its_loop() -> None:
    watched = Watched()
    watched.pass_time(2, beats=True)
    watched.clock.advance(3600.0)  # The watchdog's thread does not run either.
    watched.watchdog.check()
    assert watched.watchdog.problem is None
    watched.pass_time(7)
    assert watched.watchdog.problem is None, "what was missed counts as two looks"
    watched.pass_time(1)
    assert watched.watchdog.problem is not None
