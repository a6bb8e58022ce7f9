"""Observer of a client's requests, for metrics."""

from __future__ import annotations

from moorage.http.transport import Request, Response


class RequestObserver:
    """Receives the outcome of requests; does nothing itself."""

    def waited(self, method: str, seconds: float) -> None:
        """A request waited for the rate limit, possibly for no time."""

    def answered(self, method: str, status: int | None, is_retry: bool) -> None:
        """An attempt ended; None: there was no response. The first attempt is no retry."""

    def finished(self, request: Request, response: Response | None, seconds: float) -> None:
        """A request ended, with all its attempts and backoff; None: there was no response."""
