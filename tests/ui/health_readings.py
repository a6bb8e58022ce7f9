"""Histories of a scheduler's health, as tests make them."""

from __future__ import annotations

from math import sin

from moorage.client.client import Client
from moorage.clock import VirtualClock
from moorage.http.transport import Request, Response
from moorage.services.metrics import Metrics
from moorage.ui.health import HealthHistory, health_feature
from moorage.ui.metric_readings import read_metrics
from moorage.ui.sources.source import Feature

START_SECONDS = 1_000_003_600.0
PROFILE = "default-scheduler"


class NoPort:
    """A scheduler that is not asked: tests make the readings."""

    async def handle(self, request: Request) -> Response:
        raise AssertionError(request.path)


def health_of(history: HealthHistory) -> Feature:
    """The feature that shows a history."""
    return health_feature(Client(NoPort()), VirtualClock(), history)


def example_history(seconds: int = 300) -> HealthHistory:
    """A scheduler with more work at some times than at others."""
    history, metrics = HealthHistory(), Metrics()
    for second in range(seconds):
        _work(metrics, second)
        history.add(START_SECONDS - seconds + second, second, read_metrics(metrics.text().decode()))
    return history


def _work(metrics: Metrics, second: int) -> None:
    """What happens in a second."""
    pods = int(60 + 40 * sin(second / 25) + 12 * sin(second / 3))
    for result, count in (("scheduled", pods), ("unschedulable", pods // 9)):
        metrics.schedule_attempts.labels(result, PROFILE).inc(count)
        for number in range(count):
            seconds = 0.002 * (1 + number % 7) * (1 + pods / 60)
            metrics.scheduling_attempt_duration.labels(result, PROFILE).observe(seconds)
    for place, (point, share) in enumerate(POINTS):
        duration = metrics.framework_extension_point_duration.labels(point, "Success", PROFILE)
        duration.observe(share * pods / 1000 * (1 + 0.2 * sin(second / 4 + place)))
    for verb, count in (("POST", pods), ("PATCH", pods // 9), ("GET", 2)):
        for number in range(count):
            metrics.request_duration.labels(verb, "127.0.0.1").observe(0.003 * (1 + number % 11))
    for queue, count in (("active", pods // 5), ("backoff", pods // 12), ("unschedulable", 18), ("gated", 4)):
        metrics.pending_pods.labels(queue).set(count)


POINTS = (("Filter", 1.9), ("Score", 1.2), ("PreFilter", 0.4), ("Bind", 0.8), ("PostFilter", 0.3))
"""Extension points, and milliseconds in each for a pod."""
