"""The health of a scheduler over the last minutes, from its own metrics.

The page's process reads them each second, also while no page is open, so that a new page shows the past
minutes. The number of samples is bounded.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import parse_qs

from moorage.api.base import Struct
from moorage.client.client import Client
from moorage.client.waiting import sleep
from moorage.clock import Clock
from moorage.http.errors import ConnectionFailed, RequestError
from moorage.http.transport import Request, Response
from moorage.services.responses import document
from moorage.ui.application import problem
from moorage.ui.metric_readings import (
    ATTEMPT_DURATION,
    ATTEMPTS,
    EXTENSION_POINT_DURATION,
    PENDING_PODS,
    REQUEST_DURATION,
    Reading,
    percentile,
    read_metrics,
)
from moorage.ui.sources.source import Feature

METRICS_PATH: Final = "/metrics"
SAMPLE_SECONDS: Final = 1.0
"""Pause between two samples, in seconds."""
MAX_SAMPLES: Final = 600
"""Number of samples that are kept: those of ten minutes."""
_PERCENTILES: Final = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
PER_SECOND: Final = "1/s"
SECONDS: Final = "s"
SHARE: Final = "s/s"
PODS: Final = "pods"
UNITS: Final[Mapping[str, str]] = {
    "attempts": PER_SECOND,
    "attemptLatency": SECONDS,
    "queue": PODS,
    "extensionPoints": SHARE,
    "requests": PER_SECOND,
    "requestLatency": SECONDS,
}
"""The unit of each plot, in the order in which they are shown."""


class HealthSeries(Struct, omit_defaults=False):
    """A value for each time; None where there is none, as for percentiles of nothing."""

    name: str
    values: tuple[float | None, ...]


class HealthPlot(Struct, omit_defaults=False):
    """Values of one unit."""

    name: str
    """`attempts` by result, `attemptLatency`, `queue` by place, `extensionPoints`: seconds spent in each in a
    second, `requests` to the API server by verb, `requestLatency`."""
    unit: str
    series: tuple[HealthSeries, ...]


class Health(Struct, omit_defaults=False):
    """Samples, oldest first, as columns."""

    times: tuple[float, ...]
    """Seconds since 1970."""
    plots: tuple[HealthPlot, ...]
    problem: str = ""
    """Why there is no newer sample."""


class _Sample(NamedTuple):
    time: float
    values: Mapping[str, Mapping[str, float]]
    """By plot and series."""


class HealthHistory:
    """The samples of the last minutes, made from readings."""

    def __init__(self) -> None:
        self._samples: deque[_Sample] = deque(maxlen=MAX_SAMPLES)
        self._last: tuple[float, Reading] | None = None
        self.problem = ""

    def add(self, time: float, now: float, reading: Reading) -> None:
        """One more reading. time: seconds since 1970; now: of a clock that is never set back."""
        before, self._last = self._last, (now, reading)
        self.problem = ""
        if before is None or now <= before[0]:
            return
        newest = self._samples[-1].time if self._samples else 0.0
        if time <= newest:  # The system's clock was set back: times stay in order.
            time = newest + SAMPLE_SECONDS
        self._samples.append(_Sample(time, figures(reading.since(before[1]), now - before[0])))

    def since(self, time: float) -> Health:
        """The samples after a time."""
        times = [each.time for each in self._samples]
        newer = list(self._samples)[bisect_right(times, time) :]
        plots = (
            HealthPlot(name=name, unit=unit, series=_columns(name, newer)) for name, unit in UNITS.items()
        )
        return Health(times=tuple(each.time for each in newer), plots=tuple(plots), problem=self.problem)


def _columns(plot: str, samples: Iterable[_Sample]) -> tuple[HealthSeries, ...]:
    rows = [each.values[plot] for each in samples]
    names = dict.fromkeys(name for row in rows for name in row)
    return tuple(HealthSeries(name=name, values=tuple(row.get(name) for row in rows)) for name in names)


def figures(increase: Reading, seconds: float) -> dict[str, dict[str, float]]:
    """The values of all plots, from what has happened in some seconds."""

    def rates(name: str, label: str) -> dict[str, float]:
        return {key: value / seconds for key, value in sorted(increase.by_label(name, label).items())}

    return {
        "attempts": rates(ATTEMPTS, "result"),
        "attemptLatency": dict(_percentiles(increase, ATTEMPT_DURATION)),
        "queue": increase.by_label(PENDING_PODS, "queue"),
        "extensionPoints": rates(f"{EXTENSION_POINT_DURATION}_sum", "extension_point"),
        "requests": rates(f"{REQUEST_DURATION}_count", "verb"),
        "requestLatency": dict(_percentiles(increase, REQUEST_DURATION)),
    }


def _percentiles(increase: Reading, histogram: str) -> Iterator[tuple[str, float]]:
    buckets = increase.buckets(histogram)
    for name, share in _PERCENTILES.items():
        value = percentile(buckets, share)
        if value is not None:
            yield name, value


def health_feature(scheduler: Client, clock: Clock, history: HealthHistory) -> Feature:
    """Samples a scheduler's metrics into a history, and shows them."""

    async def health(request: Request) -> Response:
        given = parse_qs(request.query).get("since", ["0"])[0]
        try:
            return document(history.since(float(given)))
        except ValueError:
            return problem(HTTPStatus.BAD_REQUEST, "since: not a time in seconds")

    async def sample() -> None:
        while True:
            try:
                text = await scheduler.exchange("GET", METRICS_PATH)
                history.add(clock.utc_now().timestamp(), clock.now(), read_metrics(text.decode()))
            except (RequestError, ConnectionFailed, ValueError) as error:
                history.problem = str(error)
            await sleep(clock, SAMPLE_SECONDS)

    return Feature("health", {"health": health}, sample)
