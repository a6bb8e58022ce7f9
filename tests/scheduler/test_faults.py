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
from tests.scheduler.running import SchedulerHarness, in_harness

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


async def _live(harness: SchedulerHarness, steps: int, **spec: Any) -> None:
    """Pods come and go, nodes come and change, at random. `spec`: choices for fields of pods."""
    random = harness.random
    for _ in range(steps):
        name = f"p{random.randrange(NAMES)}"
        match random.choice(("pod", "pod", "pod", "pod", "gone", "node", "service")):
            case "pod":
                if await harness.exists(POD, "default", name):
                    await harness.client.patch(POD, "default", name, _labelled(random.random()), "merge")
                else:
                    chosen = {field: random.choice(choices) for field, choices in spec.items()}
                    await harness.add_pod(name, random.choice(("500m", "1", "2", "3")), **chosen)
            case "gone":
                if await harness.exists(POD, "default", name):
                    await harness.delete_pod(name)
            case "node":
                await _change_node(harness, f"n{random.randrange(3)}")
            case "service":
                await _change_service(harness)
        await harness.passes(random.choice((0.0, 0.25, 1.5)))


def _labelled(value: float) -> dict[str, object]:
    return {"metadata": {"labels": {"changed": str(value)}}}


async def _change_node(harness: SchedulerHarness, name: str) -> None:
    if not await harness.exists(NODE, "", name):
        await harness.add_node(name)
    else:
        await harness.client.patch(NODE, "", name, _labelled(harness.random.random()), "merge")


async def _change_service(harness: SchedulerHarness) -> None:
    if await harness.exists(SERVICE, "default", "web"):
        await harness.client.delete(SERVICE, "default", "web")
    else:
        spec = {"selector": {"app": "p1"}, "ports": [{"port": 80}]}
        meta = {"name": "web", "namespace": "default"}
        body = {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}
        await harness.client.create(SERVICE, "default", body)


async def _recovered(harness: SchedulerHarness, scheduler: Scheduler) -> None:
    """Some time after all is well again: longer than any pause, and than a silent watch is believed in."""
    await harness.passes(200, step=1.0)
    await harness.check(scheduler)


@pytest.mark.parametrize("retries", [True, False], ids=["retried", "as it is"])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("faults", FAULTS.values(), ids=FAULTS)
def test_nothing_is_lost_or_done_twice(faults: Faults, seed: int, retries: bool) -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        faulty = FaultyTransport(harness.line, harness.clock, NONE, seed)
        transport: Transport = RetryingTransport(faulty, harness.clock, harness.random) if retries else faulty
        await harness.add_node("n0")
        await harness.add_node("n1", cpu="2", pods="3")
        scheduler = harness.scheduler(transport=transport, seed=seed)
        await harness.passes(1)
        faulty.faults = faults
        await _live(harness, STEPS)
        assert faulty.injected, "nothing went wrong, so nothing was tested"
        faulty.faults = NONE
        await _recovered(harness, scheduler)
        assert harness.line.bound, "nothing was bound, so nothing was tested"

    in_harness(scenario, seed=seed)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "faults",
    [FAULTS[name] for name in (*TO_WRITES, "late events and answers", "everything")],
    ids=[*TO_WRITES, "late events and answers", "everything"],
)
def test_the_important_pods_prevail(faults: Faults, seed: int) -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        await harness.add_priority("high", 1000)
        await harness.add_priority("low", 10)
        await harness.add_node("n0")
        await harness.add_node("n1", cpu="2", pods="3")
        faulty = FaultyTransport(harness.line, harness.clock, faults, seed)
        scheduler = harness.scheduler(
            transport=RetryingTransport(faulty, harness.clock, harness.random), seed=seed
        )
        await _live(
            harness,
            STEPS,
            priorityClassName=("high", "low"),
            terminationGracePeriodSeconds=(0,),
        )
        faulty.faults = NONE
        await _recovered(harness, scheduler)

    in_harness(scenario, seed=seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_server_that_is_killed_and_comes_back_finds_its_scheduler_at_work(
    seed: int, tmp_path: Path
) -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        await harness.add_node("n0")
        await harness.add_node("n1")
        faulty = FaultyTransport(harness.line, harness.clock, Faults(slow=0.5), seed)
        scheduler = harness.scheduler(
            transport=RetryingTransport(faulty, harness.clock, harness.random), seed=seed
        )
        for _ in range(3):
            await _live(harness, 12)
            harness.kill_server()
            await harness.passes(harness.random.choice((0.25, 5.0, 40.0)))
            harness.start_server()
        await _live(harness, 12)
        faulty.faults = NONE
        await _recovered(harness, scheduler)

    in_harness(scenario, data_dir=tmp_path, seed=seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_server_that_has_forgotten_its_history_is_listed_again(seed: int) -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        await harness.add_node("n0")
        faulty = FaultyTransport(harness.line, harness.clock, Faults(cut=0.2, slow=0.3), seed)
        scheduler = harness.scheduler(transport=faulty, seed=seed)
        await _live(harness, STEPS)
        faulty.faults = NONE
        await _recovered(harness, scheduler)

    in_harness(scenario, seed=seed, history=3)


def test_a_scheduler_that_is_started_again_goes_on_where_the_first_one_ended() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        await harness.add_node("n0")
        faulty = FaultyTransport(harness.line, harness.clock, Faults(lost=1.0), seed=1)
        first = harness.scheduler(transport=harness.line)
        for index in range(3):
            await harness.add_pod(f"p{index}")
        await harness.passes(1)
        assert first.cache.pod_count == 3
        second = harness.scheduler(transport=faulty)
        faulty.faults = NONE
        for index in range(3, 6):
            await harness.add_pod(f"p{index}")
        await harness.passes(120, step=1.0)
        await harness.check(second)

    in_harness(scenario)
