"""The health of a scheduler over time, as the page's API has it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from http import HTTPStatus

import msgspec

from moorage.client.client import Client
from moorage.clock import VirtualClock
from moorage.http.transport import Request, Response
from moorage.services.metrics import Metrics
from moorage.ui.health import MAX_SAMPLES, UNITS, Health, HealthHistory, health_feature
from moorage.ui.metric_readings import ATTEMPTS, Reading, read_metrics


def reading(scheduled: float) -> Reading:
    return read_metrics(f'{ATTEMPTS}{{result="scheduled",profile="a"}} {scheduled}\n')


def scheduled(health: Health) -> tuple[float | None, ...]:
    attempts = next(plot for plot in health.plots if plot.name == "attempts")
    return next((each.values for each in attempts.series if each.name == "scheduled"), ())


def test_rates_are_those_of_the_time_that_has_passed() -> None:
    history = HealthHistory()
    for time, count in ((0.0, 0), (1.0, 10), (3.0, 40), (4.0, 0)):
        history.add(1000 + time, time, reading(count))
    health = history.since(0)
    assert health.times == (1001, 1003, 1004)
    assert scheduled(health) == (10, 15, 0)
    assert {plot.name: plot.unit for plot in health.plots} == UNITS


def test_only_newer_samples_are_told() -> None:
    history = HealthHistory()
    for second in range(5):
        history.add(1000 + second, second, reading(second))
    newer = history.since(1002)
    assert newer.times == (1003, 1004)
    assert scheduled(newer) == (1, 1)
    assert history.since(1004).times == ()


def test_samples_are_bounded() -> None:
    history = HealthHistory()
    for second in range(MAX_SAMPLES + 10):
        history.add(1000 + second, second, reading(0))
    times = history.since(0).times
    assert len(times) == MAX_SAMPLES
    assert times[-1] == 1000 + MAX_SAMPLES + 9


def test_times_stay_in_order_when_the_clock_is_set_back() -> None:
    history = HealthHistory()
    for second, time in enumerate((1000, 1001, 500, 501)):
        history.add(time, second, reading(0))
    times = history.since(0).times
    assert list(times) == sorted(set(times))
    assert len(times) == 3


def test_a_series_that_begins_later_has_no_values_before() -> None:
    history = HealthHistory()
    history.add(1000, 0, Reading({}))
    history.add(1001, 1, Reading({}))
    history.add(1002, 2, reading(4))
    assert scheduled(history.since(0)) == (None, 4)


class Port:
    """A scheduler's port, which fails once."""

    def __init__(self, metrics: Metrics) -> None:
        self.requests = 0
        self._metrics = metrics

    async def handle(self, request: Request) -> Response:
        assert request.path == "/metrics"
        self.requests += 1
        if self.requests == 2:
            return Response(503, b"stuck", "text/plain")
        self._metrics.schedule_attempts.labels("scheduled", "default-scheduler").inc(5)
        return Response(200, self._metrics.text(), "text/plain")


async def sampled(clock: VirtualClock, requests: int) -> tuple[Health, Health]:
    """What is told after the failed request, and in the end."""
    port, history = Port(Metrics()), HealthHistory()
    feature = health_feature(Client(port, "", "test"), clock, history)
    assert feature.work is not None
    working = asyncio.ensure_future(feature.work())

    async def told() -> Health:
        response = await feature.routes["health"](Request("GET", "/api/v1/health", "since=0", {}, b""))
        assert isinstance(response.body, bytes)
        return msgspec.json.decode(response.body, type=Health)

    failed = Health(times=(), plots=())
    while port.requests < requests:
        before = port.requests
        clock.advance(1.0)
        while port.requests == before:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        if port.requests == 2:
            failed = await told()
    working.cancel()
    with suppress(asyncio.CancelledError):
        await working
    return failed, await told()


def test_the_scheduler_is_asked_each_second_and_may_fail() -> None:
    failed, last = asyncio.run(sampled(VirtualClock(), 4))
    assert failed.problem != ""
    assert last.problem == ""
    # Two seconds between the first and the third: the second request failed.
    assert scheduled(last)[0] == 2.5


def test_a_time_that_is_none_is_refused() -> None:
    feature = health_feature(Client(Port(Metrics()), "", "test"), VirtualClock(), HealthHistory())
    request = Request("GET", "/api/v1/health", "since=yesterday", {}, b"")

    async def asked() -> Response:
        return await feature.routes["health"](request)

    assert asyncio.run(asked()).status == HTTPStatus.BAD_REQUEST
