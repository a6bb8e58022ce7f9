"""How requests fail, on one page."""

from __future__ import annotations

from typing import Any


class RequestError(Exception):
    """The server said no: its Status, read."""

    def __init__(self, code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details or {}

    @property
    def is_not_found(self) -> bool:
        """There is no such object."""
        return self.code == 404

    @property
    def already_exists(self) -> bool:
        """An object of that name is there already."""
        return self.reason == "AlreadyExists"

    @property
    def is_conflict(self) -> bool:
        """The object has changed since it was read."""
        return self.code == 409 and self.reason != "AlreadyExists"

    @property
    def is_invalid(self) -> bool:
        """The object would break a rule of its kind."""
        return self.code == 422

    @property
    def is_expired(self) -> bool:
        """The wanted resourceVersion is gone: list anew."""
        return self.code == 410


class ConnectionFailed(Exception):  # noqa: N818 -- it says what happened
    """No answer: the server cannot be reached, or the connection broke."""


class NoAccess(ConnectionFailed):
    """The server is not who it should be, or credentials cannot be had: trying at once again is of no use."""


class AnswerLost(ConnectionFailed):
    """The request was sent and no readable answer came: whether it was carried out is unknown, so look."""


class KubeconfigError(Exception):
    """It is not known where the server is or how to be let in; the message is one line."""
