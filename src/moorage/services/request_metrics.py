"""Metrics of requests to the API server (`rest_client_*`)."""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from cryptography import x509

from moorage.api.manifests import utc_now
from moorage.client.exec_credentials import ExecObserver
from moorage.client.request_observer import RequestObserver
from moorage.http.transport import Request, Response
from moorage.services.metric_values import Distribution, Number
from moorage.services.metrics import Metrics


class _Cells(NamedTuple):
    """The cells for requests with one method."""

    limiter: Distribution
    duration: Distribution
    request_size: Distribution
    response_size: Distribution


class MeasuredRequests(RequestObserver):
    """Records the outcome of requests; `host` is the server's label."""

    def __init__(self, metrics: Metrics, host: str) -> None:
        self._metrics = metrics
        self._host = host
        self._by_method: dict[str, _Cells] = {}
        self._attempts: dict[tuple[str, int | None], Number] = {}

    def _cells(self, method: str) -> _Cells:
        metrics, labels = self._metrics, (method, self._host)
        cells = self._by_method[method] = _Cells(
            metrics.rate_limiter_duration.labels(*labels),
            metrics.request_duration.labels(*labels),
            metrics.request_size.labels(*labels),
            metrics.response_size.labels(*labels),
        )
        return cells

    def waited(self, method: str, seconds: float) -> None:
        """A request waited for the rate limit."""
        (self._by_method.get(method) or self._cells(method)).limiter.observe(seconds)

    def answered(self, method: str, status: int | None, is_retry: bool) -> None:
        """An attempt ended; None: there was no response."""
        attempts = self._attempts.get((method, status))
        if attempts is None:
            labels = (_code(status), method, self._host)
            attempts = self._attempts[method, status] = self._metrics.requests.labels(*labels)
        attempts.value += 1
        if is_retry:
            self._metrics.request_retries.labels(_code(status), method, self._host).inc()

    def finished(self, request: Request, response: Response | None, seconds: float) -> None:
        """A request ended; streamed responses have no size or duration."""
        body = None if response is None else response.body
        if body is not None and not isinstance(body, bytes):
            return
        cells = self._by_method.get(request.method) or self._cells(request.method)
        cells.duration.observe(seconds)
        cells.request_size.observe(len(request.body))
        if body is not None:
            cells.response_size.observe(len(body))


def _code(status: int | None) -> str:
    return "<error>" if status is None else str(status)


class FromThread(RequestObserver):
    """Calls another observer in its own loop: each value is written by one thread."""

    def __init__(self, observer: RequestObserver, loop: AbstractEventLoop) -> None:
        self._observer = observer
        self._loop = loop

    def waited(self, method: str, seconds: float) -> None:
        """A request waited for the rate limit."""
        self._loop.call_soon_threadsafe(self._observer.waited, method, seconds)

    def answered(self, method: str, status: int | None, is_retry: bool) -> None:
        """An attempt ended."""
        self._loop.call_soon_threadsafe(self._observer.answered, method, status, is_retry)

    def finished(self, request: Request, response: Response | None, seconds: float) -> None:
        """A request ended."""
        self._loop.call_soon_threadsafe(self._observer.finished, request, response, seconds)


class MeasuredPlugin(ExecObserver):
    """Records the calls of an exec plugin."""

    def __init__(self, metrics: Metrics, now: Callable[[], datetime] = utc_now) -> None:
        self._metrics = metrics
        self._now = now
        self._certificate: x509.Certificate | None = None

    def called(self, exit_code: int, status: str) -> None:
        """The plugin was run."""
        self._metrics.exec_plugin_calls.labels(str(exit_code), status).inc()

    def certificate(self, pem: str) -> None:
        """The plugin returned a certificate, which replaces the one before."""
        if self._certificate is not None:
            age = self._now() - self._certificate.not_valid_before_utc
            self._metrics.exec_certificate_age.observe(age.total_seconds())
        self._certificate = x509.load_pem_x509_certificate(pem.encode())

    def read(self) -> None:
        """Set the remaining validity of the certificate; called when metrics are read."""
        if self._certificate is not None:
            left = self._certificate.not_valid_after_utc - self._now()
            self._metrics.exec_certificate_seconds.set(left.total_seconds())
