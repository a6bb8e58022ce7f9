"""The errors of requests."""

from __future__ import annotations

from typing import Any


class RequestError(Exception):
    """The server rejected the request: its Status, decoded."""

    def __init__(self, code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details or {}

    @property
    def is_not_found(self) -> bool:
        """The object does not exist."""
        return self.code == 404

    @property
    def already_exists(self) -> bool:
        """An object of that name exists already."""
        return self.reason == "AlreadyExists"

    @property
    def is_conflict(self) -> bool:
        """The object has changed since it was read."""
        return self.code == 409 and self.reason != "AlreadyExists"

    @property
    def is_invalid(self) -> bool:
        """The object is invalid."""
        return self.code == 422

    @property
    def is_expired(self) -> bool:
        """The resourceVersion is too old: list again."""
        return self.code == 410


class ConnectionFailed(Exception):  # noqa: N818 -- it says what happened
    """No response: the server cannot be reached, or the connection broke."""


class NoAccess(ConnectionFailed):
    """The server's identity is wrong, or there are no credentials: an immediate retry is of no use."""


class AnswerLost(ConnectionFailed):
    """The request was sent without a readable response: it is unknown whether it was carried out."""


class KubeconfigError(Exception):
    """The server's address or credentials cannot be determined; the message is one line."""
