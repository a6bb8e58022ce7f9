"""Other profiles while the scheduler runs: what they look at is known before they are used, and no more."""

from __future__ import annotations

import asyncio
from typing import Any

from moorage.api.storage import PersistentVolumeClaim
from moorage.client.client import Client
from moorage.client.kinds import NODE, PERSISTENT_VOLUME_CLAIM, POD, SERVICE
from moorage.config.load import default_config, parse_config
from moorage.http.transport import Request, Response, Transport
from moorage.plugins import default_registry
from moorage.scheduler.scheduler import Scheduler
from tests.scheduler.plugins import Hold, profile, registry_with
from tests.scheduler.running import SchedulerHarness, in_harness
from tests.scheduler.storage import add_claim, using

SMALL: Any = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "plugins": {
                "multiPoint": {
                    "enabled": [{"name": name} for name in ("PrioritySort", "NodeName", "DefaultBinder")],
                    "disabled": [{"name": "*"}],
                }
            }
        }
    ],
}


class Slow:
    """A transport over which claims are not told of until they may be."""

    def __init__(self, harness: SchedulerHarness) -> None:
        self._harness = harness
        self.may_tell = asyncio.Event()

    async def handle(self, request: Request) -> Response:
        if request.path.endswith("/persistentvolumeclaims"):
            await self.may_tell.wait()
        return await self._harness.line.handle(request)


def kinds_of(scheduler: Scheduler) -> set[Any]:
    return {informer.kind for informer in scheduler.informers}


def small_scheduler(harness: SchedulerHarness, line: Transport) -> Scheduler:
    """A scheduler at work whose plugins look at nodes and pods alone."""
    client, config = Client(line, harness.server.token), parse_config(SMALL, "test")
    registry = default_registry()
    scheduler = Scheduler(client, config, registry, harness.clock, harness.random, "host")
    harness.runs(scheduler.run())
    return scheduler


def test_plugins_are_used_once_what_they_look_at_is_known_and_no_longer_than_needed() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        slow = Slow(harness)
        scheduler = small_scheduler(harness, slow)
        await harness.add_node("n1", cpu="1")
        await harness.passes(1)
        assert kinds_of(scheduler) == {NODE, POD}
        reloading = asyncio.ensure_future(scheduler.reconfigure(default_config()))
        await harness.passes(1)
        assert not reloading.done()
        await harness.add_pod("large", cpu="9")  # Which the profile of old does not look at.
        await harness.passes(1)
        assert await harness.node_of("large") == "n1"
        slow.may_tell.set()
        await harness.passes(1)
        await reloading
        await harness.add_pod("larger", cpu="10")
        await harness.passes(1)
        assert await harness.node_of("larger") == ""
        assert kinds_of(scheduler) > {NODE, POD, PERSISTENT_VOLUME_CLAIM, SERVICE}
        await add_claim(harness, "data")
        await harness.passes(1)
        claims = scheduler.cache.objects.of(PersistentVolumeClaim)
        assert claims.get("default", "data") is not None
        await scheduler.reconfigure(parse_config(SMALL, "test"))
        await harness.passes(1)
        assert kinds_of(scheduler) == {NODE, POD}
        await add_claim(harness, "more")
        await harness.passes(1)
        assert (claims.get("default", "data"), claims.get("default", "more")) == (None, None)
        assert await harness.node_of("larger") == "n1"
        scheduler.cache.validate()

    in_harness(scenario)


def test_what_is_under_way_keeps_what_it_looks_at() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        hold = Hold()
        config = parse_config(profile("Hold"), "test")
        scheduler = Scheduler(
            Client(harness.line, harness.server.token),
            config,
            registry_with(hold),
            harness.clock,
            harness.random,
            "host",
        )
        harness.runs(scheduler.run())
        await harness.add_node("n1")
        await harness.add_pod("held")
        await harness.passes(1)
        await scheduler.reconfigure(parse_config(SMALL, "test"))
        await harness.passes(1)
        assert PERSISTENT_VOLUME_CLAIM in kinds_of(scheduler)
        hold.waiting().allow("Hold")
        await harness.passes(1)
        assert await harness.node_of("held") == "n1"
        assert kinds_of(scheduler) == {NODE, POD}

    in_harness(scenario)


def test_a_newer_wish_does_not_lose_what_it_needs() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        slow = Slow(harness)
        scheduler = small_scheduler(harness, slow)
        await harness.add_node("n1")
        await harness.passes(1)
        first = asyncio.ensure_future(scheduler.reconfigure(default_config()))
        await harness.passes(1)
        first.cancel()
        second = asyncio.ensure_future(scheduler.reconfigure(default_config()))
        await harness.passes(1)
        slow.may_tell.set()
        await harness.passes(1)
        await second
        await add_claim(harness, "data")
        await harness.add_pod("p", **using("data"))
        await harness.passes(1)
        assert "PersistentVolumeClaim" in {type(one).__name__ for one in _objects(scheduler)}

    in_harness(scenario)


def _objects(scheduler: Scheduler) -> list[Any]:
    return [one for informer in scheduler.informers for one in informer.objects.values()]
