"""What a client tells whoever keeps metrics."""

from __future__ import annotations

from moorage.http.transport import Request, Response


class RequestObserver:
    """Is told what becomes of requests; does nothing itself."""

    def waited(self, method: str, seconds: float) -> None:
        """A request has waited for its turn, because there is a limit; perhaps no time at all."""

    def answered(self, method: str, status: int | None, is_retry: bool) -> None:
        """One attempt is over; None: there was no answer. The first attempt is no retry."""

    def finished(self, request: Request, response: Response | None, seconds: float) -> None:
        """A request is over, with all its attempts and pauses; None: there was no answer."""
