"""The audit log: one line of JSON for each request, in the form of audit.k8s.io/v1 at the level Metadata.

It says who has asked for what, when, and with what result, but has neither bodies nor tokens.
"""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from moorage.admission.users import User
from moorage.api.decode import InputError
from moorage.api.manifests import Manifest, micro_timestamp
from moorage.apimachinery.errors import ApiError
from moorage.http.transport import Request, Response
from moorage_cluster.apiserver.address import Address, parse_address
from moorage_cluster.apiserver.options import flag, parse_query
from moorage_cluster.apiserver.server import ApiServer

_MODE: Final = 0o600
_REFERENCE: Final = {
    "resource": "resource",
    "namespace": "namespace",
    "name": "name",
    "group": "apiGroup",
    "version": "apiVersion",
    "subresource": "subresource",
}
"""The fields of an address, and their names in a reference."""

log = logging.getLogger(__name__)
_encode = msgspec.json.Encoder().encode


class AuditLog:
    """The file; a line is with the operating system before the request is answered."""

    def __init__(self, path: Path) -> None:
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, _MODE)
        except OSError as error:
            raise InputError(str(path), f"cannot be written: {error.strerror}") from None

    def write(self, event: Manifest) -> None:
        """Add an event; a request is answered also if that fails."""
        try:
            os.write(self._file, _encode(event) + b"\n")
        except OSError as error:
            log.error("cannot write the audit log: %s", error.strerror)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


class AuditedServer:
    """An API server whose requests are written to an audit log."""

    def __init__(
        self,
        server: ApiServer,
        authenticate: Callable[[str | None], User],
        now: Callable[[], datetime],
        audit_log: AuditLog,
    ) -> None:
        self._server = server
        self._authenticate = authenticate
        self._now = now
        self._log = audit_log

    async def handle(self, request: Request) -> Response:
        """The answer to a request; failures are answers too."""
        return self.answer(request)

    def answer(self, request: Request) -> Response:
        """The answer to a request; failures are answers too."""
        received = self._now()
        response = self._server.answer(request)
        self._log.write(self._event(request, response, received))
        return response

    def _event(self, request: Request, response: Response, received: datetime) -> Manifest:
        address = _address(request)
        query = f"?{request.query}" if request.query else ""
        event: Manifest = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Metadata",
            "auditID": str(uuid.uuid4()),
            "stage": "ResponseComplete" if isinstance(response.body, bytes) else "ResponseStarted",
            "requestURI": f"{request.path}{query}",
            "verb": address.verb,
            "user": self._user(request.headers),
            "userAgent": request.headers.get("user-agent", ""),
            "responseStatus": {"code": response.status},
            "requestReceivedTimestamp": micro_timestamp(received),
            "stageTimestamp": micro_timestamp(self._now()),
        }
        if address.is_resource:
            event["objectRef"] = _reference(address)
        return event

    def _user(self, headers: Mapping[str, str]) -> Manifest:
        try:
            user = self._authenticate(headers.get("authorization"))
        except ApiError:
            return {}
        return {"username": user.name, "groups": list(user.groups)}


def _address(request: Request) -> Address:
    watches = flag(parse_query(request.query), "watch")
    return parse_address(request.path, request.method, watches)


def _reference(address: Address) -> dict[str, Any]:
    """What a request is about."""
    return {name: value for field, name in _REFERENCE.items() if (value := getattr(address, field))}
