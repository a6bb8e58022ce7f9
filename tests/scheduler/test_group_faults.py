"""Gangs that compete for too little room while requests fail, seeded: each of them runs whole in the end."""

from __future__ import annotations

import os
from random import Random

import pytest

from moorage.client.kinds import POD
from moorage.client.retry import RetryingTransport
from tests.client.faults import Faults, FaultyTransport
from tests.scheduler.running import SchedulerHarness, in_harness
from tests.scheduler.test_groups import Groups

SEEDS = int(os.environ.get("MOORAGE_GROUP_SEEDS", "20"))
"""How many interleavings are tried: as many as there is time for; 200 and more now and then."""
GANG = 3
FAULTS = Faults(
    unreachable=0.05,
    lost=0.1,
    slow=0.2,
    answers=((409, 0.1), (429, 0.05), (500, 0.1), (503, 0.05)),
    cut=0.05,
    truncated=0.05,
    ended=0.05,
    repeated=0.2,
    split=0.2,
    expired=0.05,
)
NONE = Faults()
LONGEST_WAIT_SECONDS = 400.0
"""Longer than members wait for a permit, and than any backoff."""


async def _begin(groups: Groups, random: Random, names: list[str]) -> None:
    """Create gangs, their groups before or after their pods, in any order."""
    steps = [(name, what) for name in names for what in ("group", *map(str, range(GANG)))]
    random.shuffle(steps)
    for name, what in steps:
        if what == "group":
            await groups.add_group(name, min_count=GANG)
        else:
            await groups.add_pods(name, 1, first=int(what), terminationGracePeriodSeconds=0)
        await groups.harness.passes(random.choice((0.0, 0.0, 0.25, 1.0)), step=0.5)


async def _run_all(groups: Groups, names: list[str]) -> None:
    """Gangs that run whole come to an end, until all have run."""
    waited = 0.0
    left = list(names)
    while left and waited < LONGEST_WAIT_SECONDS:
        await groups.harness.passes(5, step=1.0)
        waited += 5
        for name in list(left):
            if len(await groups.bound(name)) == GANG:
                left.remove(name)
                waited = 0.0
                for number in range(GANG):
                    await groups.harness.client.delete(POD, "default", f"{name}-{number}", grace_seconds=0)
    assert not left, {name: await groups.bound(name) for name in left}


@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_gang_stays_half_placed_and_no_two_block_each_other(seed: int) -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        random = Random(seed)
        faulty = FaultyTransport(harness.line, harness.clock, NONE, seed)
        transport = RetryingTransport(faulty, harness.clock, harness.random) if seed % 2 else faulty
        await harness.add_node("n1", cpu="2")
        await harness.add_node("n2", cpu=random.choice(("1", "2")))
        groups = Groups(harness, transport=transport, seed=seed)
        await harness.passes(0.5)
        faulty.faults = FAULTS
        names = ["a", "b", "c"]
        await _begin(groups, random, names)
        await harness.passes(random.choice((1.0, 5.0)), step=0.5)
        faulty.faults = NONE
        await _run_all(groups, names)
        await harness.passes(5, step=1.0)
        assert all(times == 1 for times in harness.line.bound.values())
        await groups.ends()

    in_harness(scenario, seed=seed)
