"""One run: a script is played in virtual time, then everything has to come right within a bound."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec

from moorage.simulation.virtual_loop import run_in_virtual_time
from moorage_cluster.chaos.final_checks import problems
from moorage_cluster.chaos.misbehaving import InjectedError
from moorage_cluster.chaos.network import HUNG_SECONDS
from moorage_cluster.chaos.script import Script
from moorage_cluster.chaos.world import World

RECOVERY_SECONDS: Final = 200.0
"""Time after the last fault in which all must come right, in seconds.

More than a half-open watch, an unanswered request and a backoff take; less than the five minutes after which
all unschedulable pods are tried again, so that a lost event shows.
"""
_VOLUMES_RECOVERY_SECONDS: Final = 420.0
"""The same with volumes: a reserved volume that is given back wakes no pods, as in kube-scheduler."""
_LOOK_SECONDS: Final = 10.0
"""Interval at which is looked whether all is well, in seconds."""
_LOGGER: Final = "moorage"
_NAMES_AND_NUMBERS: Final = re.compile(r"\S*\d\S*")


class Outcome(msgspec.Struct, frozen=True):
    """What a run has shown."""

    violations: list[str]
    injected: dict[str, int]
    """What went wrong, and how often."""
    bound: int
    """Number of pods that were bound."""
    seconds: float
    """Virtual time that has passed."""

    @property
    def is_well(self) -> bool:
        """Whether everything held."""
        return not self.violations

    @property
    def kinds(self) -> set[str]:
        """The violations without names and numbers: those that are equal are of one kind."""
        return {_NAMES_AND_NUMBERS.sub("", each) for each in self.violations}


class _UnexpectedErrors(logging.Handler):
    """Exceptions that were logged, but for those that a plugin was told to raise."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not _is_injected(error):
            self.texts.append(f"logged: {record.getMessage()}: {error!r}")


def _is_injected(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, InjectedError):
            return True
        error = error.__cause__ or error.__context__
    return False


def run_script(script: Script) -> Outcome:
    """Play a script in a loop of its own."""
    unexpected = _UnexpectedErrors()
    logger = logging.getLogger(_LOGGER)
    propagates, logger.propagate = logger.propagate, False
    logger.addHandler(unexpected)
    try:
        with TemporaryDirectory(prefix="moorage-chaos-") if script.is_durable else nullcontext() as directory:
            outcome = run_in_virtual_time(_play(script, Path(directory) if directory else None))
    finally:
        logger.removeHandler(unexpected)
        logger.propagate = propagates
    return msgspec.structs.replace(outcome, violations=[*outcome.violations, *unexpected.texts])


async def _play(script: Script, directory: Path | None) -> Outcome:
    world = World(script, directory)
    await world.play()
    left = await _recovery(world)
    seconds = world.clock.now()
    await world.close()
    left += [f"a task is left over: {each.get_coro()}" for each in await _endless_tasks()]
    return Outcome(
        violations=[*world.monitor.violations, *left],
        injected=dict(sorted(Counter(world.injected).items())),
        bound=len(world.monitor.bound),
        seconds=seconds,
    )


async def _recovery(world: World) -> list[str]:
    """What is still wrong when everything should have come right."""
    bound = _VOLUMES_RECOVERY_SECONDS if world.script.has_volumes else RECOVERY_SECONDS
    deadline = world.script.calm_at + bound
    while True:
        await asyncio.sleep(_LOOK_SECONDS)
        left = list(problems(world))
        if not left or world.clock.now() >= deadline:
            return left


async def _endless_tasks() -> set[asyncio.Task[object]]:
    """Tasks that have not ended although all processes have."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    return (await asyncio.wait(others, timeout=2 * HUNG_SECONDS))[1] if others else set()
