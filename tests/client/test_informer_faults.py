"""An informer under all kinds of faults: it ends up in the server's state, and reports each change once."""

from __future__ import annotations

import asyncio

import pytest

from moorage.client.retry import RetryingTransport
from tests.client.faults import Faults, FaultyTransport
from tests.client.harness import ClientHarness, RecordingInformer, in_harness, versions

SEEDS = range(4)
WRITES = 60
NONE = Faults()

# Faults after which no change may be missing: the watch goes on exactly where it broke.
RESUMABLE = {
    "cut watches": Faults(cut=0.15),
    "truncated events": Faults(truncated=0.15),
    "watches that end": Faults(ended=0.2),
    "repeated events": Faults(repeated=0.5),
    "events in pieces": Faults(split=0.5),
    "late events": Faults(slow=0.3),
    "half-open watches": Faults(half_open=0.05),
    "a server that cannot be reached": Faults(cut=0.1, unreachable=0.5),
    "lost answers": Faults(ended=0.1, lost=0.3),
    "a server in trouble": Faults(ended=0.1, answers=((429, 0.2), (500, 0.2), (503, 0.2))),
}
# Faults after which changes may be merged: everything is listed again.
EXPIRING = {
    "expired watches": Faults(expired=0.1),
    "expired answers": Faults(ended=0.2, answers=((410, 0.4),)),
    "everything": Faults(
        unreachable=0.1,
        lost=0.1,
        slow=0.2,
        answers=((409, 0.02), (410, 0.05), (429, 0.05), (500, 0.05), (503, 0.05)),
        cut=0.05,
        truncated=0.05,
        ended=0.05,
        half_open=0.02,
        repeated=0.2,
        split=0.2,
        expired=0.02,
    ),
}


async def _lived_through(harness: ClientHarness, faults: Faults, seed: int) -> RecordingInformer:
    """An informer that followed a busy server on a bad network, some time after all was well again."""
    transport = FaultyTransport(harness.server.api, harness.clock, NONE, seed)
    recorded = harness.informer(RetryingTransport(transport, harness.clock, harness.random), seed)
    running = asyncio.ensure_future(recorded.informer.run())
    try:
        await harness.passes(1)
        assert recorded.informer.version > 0
        recorded.reported.clear()
        transport.faults = faults
        for _ in range(WRITES):
            await harness.write()
            await harness.passes(harness.random.choice((0.25, 0.5, 3.0)))
        assert transport.injected, "nothing went wrong, so nothing was tested"
        transport.faults = NONE
        # Longer than the longest pause, and than a silent watch is believed in.
        await harness.passes(160, step=1.0)
        await harness.write()
        await harness.passes(1)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    return recorded


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("faults", RESUMABLE.values(), ids=RESUMABLE)
def test_every_change_is_reported_once_and_in_order(faults: Faults, seed: int) -> None:
    async def scenario(harness: ClientHarness) -> None:
        recorded = await _lived_through(harness, faults, seed)
        assert recorded.known == versions(await harness.objects()) | _others(recorded)
        assert recorded.reported == harness.history

    in_harness(scenario, seed=seed)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("faults", EXPIRING.values(), ids=EXPIRING)
@pytest.mark.parametrize("history", [5, 20_000])
def test_what_is_known_in_the_end_is_what_the_server_has(faults: Faults, history: int, seed: int) -> None:
    async def scenario(harness: ClientHarness) -> None:
        recorded = await _lived_through(harness, faults, seed)
        assert recorded.known == versions(await harness.objects()) | _others(recorded)
        happened = {(name, version) for type, name, version in harness.history if type != "DELETED"}
        reported = [(name, version) for type, name, version in recorded.reported if type != "DELETED"]
        assert len(set(reported)) == len(reported), "a change was reported twice"
        assert set(reported) <= happened, "a change was reported that never was"

    in_harness(scenario, seed=seed, history=history)


def _others(recorded: RecordingInformer) -> dict[str, int]:
    """What the server made itself, in other namespaces."""
    return {
        name: int(obj["metadata"]["resourceVersion"])
        for (namespace, name), obj in recorded.informer.objects.items()
        if namespace != "default"
    }
