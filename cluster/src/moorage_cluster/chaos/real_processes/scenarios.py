"""What is done to which process and when: generated from a seed."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final, Literal

import msgspec

LEASE_SECONDS: Final = 4
"""Duration of the lease for which the schedulers compete, in seconds."""

Whom = Literal["leader", "standby", "server"]
What = Literal[
    "kill",  # SIGKILL; the process is started again after some seconds
    "stop",  # SIGSTOP, and SIGCONT after some seconds
    "stutter",  # SIGSTOP and SIGCONT in short bursts: all that a process does is slow
    "full-disk",  # the data directory takes no more bytes
    "connections",  # many connections that ask for nothing
    "memory",  # the process gets hardly more memory than it has
]

_FIRST_FAULT_SECONDS: Final = 1.0
_SHORT_STOPS: Final = 0.3
"""The share of stops that are shorter than the lease."""


class Fault(msgspec.Struct, frozen=True):
    """Something that happens to a process."""

    at: float
    """Seconds since users began."""
    what: What
    whom: Whom
    seconds: float
    """How long it lasts; for a kill, until the process is started again."""
    amount: int = 0
    """Number of connections, or bytes of memory beyond what the process has."""


class Plan(msgspec.Struct, frozen=True):
    """One run."""

    scenario: str
    seed: int
    seconds: float
    """How long users work and things fail."""
    faults: tuple[Fault, ...]
    max_files: int | None = None
    """Number of files that each process may open; None: as many as this one."""


class Scenario(msgspec.Struct, frozen=True):
    """What may happen to whom."""

    summary: str
    kinds: tuple[tuple[What, Whom], ...]
    every_seconds: float
    """Mean time between two faults."""
    max_files: int | None = None


_KILLS: Final[tuple[tuple[What, Whom], ...]] = (("kill", "leader"), ("kill", "standby"), ("kill", "server"))
_STOPS: Final[tuple[tuple[What, Whom], ...]] = (
    ("stop", "leader"),
    ("stop", "leader"),
    ("stop", "standby"),
    ("stop", "server"),
)
_SLOWNESS: Final[tuple[tuple[What, Whom], ...]] = (("stutter", "server"), ("stutter", "leader"))
_CONNECTIONS: Final[tuple[tuple[What, Whom], ...]] = (
    ("connections", "server"),
    ("connections", "leader"),
    ("connections", "standby"),
)
_MEMORY: Final[tuple[tuple[What, Whom], ...]] = (
    ("memory", "leader"),
    ("memory", "standby"),
    ("memory", "server"),
)

SCENARIOS: Final = {
    "kills": Scenario("leader, standby and API server are killed (SIGKILL)", _KILLS, 3.0),
    "stops": Scenario("they are stopped (SIGSTOP) beyond the lease, and continue", _STOPS, 5.0),
    "full-disk": Scenario(
        "the data directory is full for seconds; the server is killed meanwhile",
        (("full-disk", "server"), ("full-disk", "server"), ("kill", "server")),
        3.0,
    ),
    "slow": Scenario("API server and leader run in short bursts", _SLOWNESS, 4.0),
    "descriptors": Scenario(
        "each process may open 128 files, and clients hold connections", _CONNECTIONS, 4.0, max_files=128
    ),
    "memory": Scenario("processes get hardly more memory than they have", _MEMORY, 4.0),
    "everything": Scenario(
        "all of it, but for the limit of memory",
        (*_KILLS, *_STOPS, ("full-disk", "server"), *_SLOWNESS, *_CONNECTIONS),
        2.5,
        max_files=256,
    ),
}


def summaries() -> Iterator[tuple[str, str]]:
    """The scenarios, each with what fails."""
    return ((name, each.summary) for name, each in SCENARIOS.items())


def new_plan(scenario: str, seed: int, seconds: float) -> Plan:
    """The plan of a seed."""
    random = Random(f"{scenario} {seed}")
    kinds = SCENARIOS[scenario]
    faults = []
    at = _FIRST_FAULT_SECONDS
    while at < seconds:
        faults.append(_fault(random, at, *random.choice(kinds.kinds)))
        at += random.expovariate(1 / kinds.every_seconds)
    return Plan(scenario, seed, seconds, tuple(faults), kinds.max_files)


def _fault(random: Random, at: float, what: What, whom: Whom) -> Fault:
    seconds, amount = random.uniform(1.0, 5.0), 0
    match what:
        case "kill":
            seconds = random.uniform(0.0, 2.0)
        case "stop" if whom != "server" and random.random() >= _SHORT_STOPS:
            seconds = random.uniform(LEASE_SECONDS + 2.0, LEASE_SECONDS + 5.0)
        case "connections":
            amount = random.randrange(50, 400)
        case "memory":
            amount = random.randrange(0, 32 << 20)
    return Fault(round(at, 3), what, whom, round(seconds, 3), amount)
