"""How a server refuses a request: a Status with Kubernetes' code and reason."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

from moorage.api.text import shortened

MAX_CAUSES: Final = 100
"""Causes in a Status."""
_MAX_MESSAGE_LENGTH: Final = 64 * 1024


class ApiError(Exception):
    """A request that cannot be fulfilled: becomes a Status."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = int(code)
        self.reason = reason
        self.message = shortened(message, _MAX_MESSAGE_LENGTH)
        self.details = details or {}
        if "causes" in self.details:
            self.details["causes"] = self.details["causes"][:MAX_CAUSES]
        self.headers = headers or {}
        self.metadata = metadata or {}

    @property
    def status(self) -> dict[str, Any]:
        """The Status object that clients read."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details:
            status["details"] = self.details
        status["code"] = self.code
        return status


def too_large(limit_bytes: int) -> ApiError:
    """The body is too long."""
    message = f"Request entity too large: limit is {limit_bytes}"
    return ApiError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "RequestEntityTooLarge", message)
