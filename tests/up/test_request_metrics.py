"""The requests of a scheduler to the API server in its own process, as the page's Health view has them."""

from __future__ import annotations

from collections.abc import Awaitable

import pytest

from moorage.client.kinds import POD
from moorage.client.observed_transport import ObservedTransport
from moorage.client.request_observer import RequestObserver
from moorage.clock import VirtualClock
from moorage.http.errors import ConnectionFailed
from moorage.http.transport import Request, Response
from moorage.services.metrics import Metrics
from moorage.services.request_metrics import MeasuredRequests
from moorage.ui.health import figures
from moorage.ui.metric_readings import Reading, read_metrics
from moorage_cluster.local import LocalSettings
from tests.up.harness import ClusterHarness
from tests.up.objects import pod


def reading(metrics: Metrics) -> Reading:
    metrics.settle()
    return read_metrics(metrics.text().decode())


def test_health_has_the_requests_of_a_scheduler_in_the_servers_process() -> None:
    metrics = Metrics()
    with ClusterHarness(LocalSettings(nodes=1, requests=MeasuredRequests(metrics, "in-process"))) as cluster:
        before = reading(metrics)
        for number in range(4):
            cluster.create(POD, pod(f"web-{number}"))
        cluster.settle()
        plots = figures(reading(metrics).since(before), 2.0)
    # Four bindings and four events in two seconds.
    assert plots["requests"] == {"POST": 4.0}
    assert plots["requestLatency"].keys() == {"p50", "p90", "p99"}


class _Noted(RequestObserver):
    def __init__(self) -> None:
        self.outcomes: list[object] = []

    def answered(self, method: str, status: int | None, is_retry: bool) -> None:
        self.outcomes.append((method, status, is_retry))

    def finished(self, request: Request, response: Response | None, seconds: float) -> None:
        self.outcomes.append((response, seconds))


class _Server:
    """Takes two seconds for an answer, or for none."""

    def __init__(self, clock: VirtualClock, answer: Response | None) -> None:
        self._clock = clock
        self._answer = answer

    def handle(self, request: Request) -> Awaitable[Response]:
        async def answered() -> Response:
            self._clock.advance(2.0)
            if self._answer is None:
                raise ConnectionFailed("gone")
            return self._answer

        return answered()


@pytest.mark.parametrize("answer", [Response(201, b"{}"), Response(503, b""), None])
def test_each_outcome_is_told_once_with_its_duration(answer: Response | None) -> None:
    clock, observer = VirtualClock(), _Noted()
    transport = ObservedTransport(_Server(clock, answer), clock, observer)
    request = transport.handle(Request("POST", "/api"))
    with pytest.raises((StopIteration, ConnectionFailed)):
        request.send(None)
    assert observer.outcomes == [
        ("POST", None if answer is None else answer.status, False),
        (answer, 2.0),
    ]
