"""The scheduler through all kinds of faults, seeded: in the end everything is where it belongs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moorage.client.kinds import NODE, POD, SERVICE
from moorage.client.retry import RetryingTransport
from moorage.http.transport import Transport
from moorage.scheduler.scheduler import Scheduler
from tests.client.faults import Faults, FaultyTransport
from tests.scheduler.running import World, in_world

pytestmark = pytest.mark.slow

SEEDS = range(3)
STEPS = 40
NAMES = 14
"""So few that pods of one name come and go."""
NONE = Faults()

FAULTS = {
    "cut watches": Faults(cut=0.1),
    "truncated events": Faults(truncated=0.1),
    "watches that end": Faults(ended=0.15),
    "repeated events": Faults(repeated=0.4),
    "late events and answers": Faults(slow=0.4),
    "half-open watches": Faults(half_open=0.05),
    "expired watches": Faults(expired=0.1),
    "a server that cannot be reached": Faults(cut=0.05, unreachable=0.4),
    "lost answers": Faults(lost=0.3),
    "conflicts": Faults(answers=((409, 0.3),)),
    "a server in trouble": Faults(answers=((429, 0.15), (500, 0.15), (503, 0.15))),
    "expired answers": Faults(ended=0.1, answers=((410, 0.2),)),
    "everything": Faults(
        unreachable=0.05,
        lost=0.1,
        slow=0.2,
        answers=((409, 0.05), (410, 0.03), (429, 0.05), (500, 0.05), (503, 0.05)),
        cut=0.03,
        truncated=0.03,
        ended=0.03,
        half_open=0.02,
        repeated=0.2,
        split=0.2,
        expired=0.02,
    ),
}

TO_WRITES = ("lost answers", "conflicts", "a server in trouble")


async def _live(world: World, steps: int, **spec: Any) -> None:
    """Pods come and go, nodes come and change, at random. `spec`: choices for fields of pods."""
    random = world.random
    for _ in range(steps):
        name = f"p{random.randrange(NAMES)}"
        match random.choice(("pod", "pod", "pod", "pod", "gone", "node", "service")):
            case "pod":
                if await world.exists(POD, "default", name):
                    await world.client.patch(POD, "default", name, _labelled(random.random()), "merge")
                else:
                    chosen = {field: random.choice(choices) for field, choices in spec.items()}
                    await world.add_pod(name, random.choice(("500m", "1", "2", "3")), **chosen)
            case "gone":
                if await world.exists(POD, "default", name):
                    await world.delete_pod(name)
            case "node":
                await _change_node(world, f"n{random.randrange(3)}")
            case "service":
                await _change_service(world)
        await world.passes(random.choice((0.0, 0.25, 1.5)))


def _labelled(value: float) -> dict[str, object]:
    return {"metadata": {"labels": {"changed": str(value)}}}


async def _change_node(world: World, name: str) -> None:
    if not await world.exists(NODE, "", name):
        await world.add_node(name)
    else:
        await world.client.patch(NODE, "", name, _labelled(world.random.random()), "merge")


async def _change_service(world: World) -> None:
    if await world.exists(SERVICE, "default", "web"):
        await world.client.delete(SERVICE, "default", "web")
    else:
        spec = {"selector": {"app": "p1"}, "ports": [{"port": 80}]}
        meta = {"name": "web", "namespace": "default"}
        body = {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}
        await world.client.create(SERVICE, "default", body)


async def _recovered(world: World, scheduler: Scheduler) -> None:
    """Some time after all is well again: longer than any pause, and than a silent watch is believed in."""
    await world.passes(200, step=1.0)
    await world.check(scheduler)


@pytest.mark.parametrize("retries", [True, False], ids=["retried", "as it is"])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("faults", FAULTS.values(), ids=FAULTS)
def test_nothing_is_lost_or_done_twice(faults: Faults, seed: int, retries: bool) -> None:
    async def scenario(world: World) -> None:
        faulty = FaultyTransport(world.line, world.clock, NONE, seed)
        transport: Transport = RetryingTransport(faulty, world.clock, world.random) if retries else faulty
        await world.add_node("n0")
        await world.add_node("n1", cpu="2", pods="3")
        scheduler = world.scheduler(transport=transport, seed=seed)
        await world.passes(1)
        faulty.faults = faults
        await _live(world, STEPS)
        assert faulty.injected, "nothing went wrong, so nothing was tested"
        faulty.faults = NONE
        await _recovered(world, scheduler)
        assert world.line.bound, "nothing was bound, so nothing was tested"

    in_world(scenario, seed=seed)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "faults",
    [FAULTS[name] for name in (*TO_WRITES, "late events and answers", "everything")],
    ids=[*TO_WRITES, "late events and answers", "everything"],
)
def test_the_important_pods_prevail(faults: Faults, seed: int) -> None:
    async def scenario(world: World) -> None:
        await world.add_priority("high", 1000)
        await world.add_priority("low", 10)
        await world.add_node("n0")
        await world.add_node("n1", cpu="2", pods="3")
        faulty = FaultyTransport(world.line, world.clock, faults, seed)
        scheduler = world.scheduler(transport=RetryingTransport(faulty, world.clock, world.random), seed=seed)
        await _live(
            world,
            STEPS,
            priorityClassName=("high", "low"),
            terminationGracePeriodSeconds=(0,),
        )
        faulty.faults = NONE
        await _recovered(world, scheduler)

    in_world(scenario, seed=seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_server_that_is_killed_and_comes_back_finds_its_scheduler_at_work(
    seed: int, tmp_path: Path
) -> None:
    async def scenario(world: World) -> None:
        await world.add_node("n0")
        await world.add_node("n1")
        faulty = FaultyTransport(world.line, world.clock, Faults(slow=0.5), seed)
        scheduler = world.scheduler(transport=RetryingTransport(faulty, world.clock, world.random), seed=seed)
        for _ in range(3):
            await _live(world, 12)
            world.kill_server()
            await world.passes(world.random.choice((0.25, 5.0, 40.0)))
            world.start_server()
        await _live(world, 12)
        faulty.faults = NONE
        await _recovered(world, scheduler)

    in_world(scenario, data_dir=tmp_path, seed=seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_server_that_has_forgotten_its_history_is_listed_anew(seed: int) -> None:
    async def scenario(world: World) -> None:
        await world.add_node("n0")
        faulty = FaultyTransport(world.line, world.clock, Faults(cut=0.2, slow=0.3), seed)
        scheduler = world.scheduler(transport=faulty, seed=seed)
        await _live(world, STEPS)
        faulty.faults = NONE
        await _recovered(world, scheduler)

    in_world(scenario, seed=seed, history=3)


def test_a_scheduler_that_is_started_anew_goes_on_where_the_first_one_ended() -> None:
    async def scenario(world: World) -> None:
        await world.add_node("n0")
        faulty = FaultyTransport(world.line, world.clock, Faults(lost=1.0), seed=1)
        first = world.scheduler(transport=world.line)
        for index in range(3):
            await world.add_pod(f"p{index}")
        await world.passes(1)
        assert first.cache.pod_count == 3
        second = world.scheduler(transport=faulty)
        faulty.faults = NONE
        for index in range(3, 6):
            await world.add_pod(f"p{index}")
        await world.passes(120, step=1.0)
        await world.check(second)

    in_world(scenario)
