"""Reads in the API server's audit log who has written what, and when, and what must not be among it.

Only the holder of the lease binds pods, writes their status and evicts them, and only until the lease ends. A
request that waits in a socket cannot be taken back. So what was written late counts only if the API server
answered all the time since the writer's last renewal: else the request may have been sent in time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from moorage_cluster.chaos.real_processes.deployment import ACCOUNT
from moorage_cluster.chaos.real_processes.scenarios import LEASE_SECONDS

_SLACK_SECONDS: Final = 0.5
"""How long a request may take from its sender to the API server on a busy machine, in seconds."""
_LEASE: Final = "kube-scheduler"
_READING: Final = ("get", "list", "watch")
_ANY_CANDIDATE: Final = (
    "leases",
    "events",
    "selfsubjectaccessreviews",
    "tokenreviews",
    "subjectaccessreviews",
)
"""Resources that are written by schedulers that do not lead, too."""
_CREATED: Final = 201
_SUCCESSFUL: Final = range(200, 300)


class _User(msgspec.Struct):
    username: str = ""


class _Reference(msgspec.Struct):
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


class _Status(msgspec.Struct):
    code: int


class _Event(msgspec.Struct, rename="camel"):
    verb: str
    user: _User
    response_status: _Status
    request_received_timestamp: datetime
    object_ref: _Reference | None = None


_decode = msgspec.json.Decoder(_Event).decode


@dataclass(slots=True)
class AuditTrail:
    """What is known from the audit log so far; failed: called with what must not happen."""

    path: Path
    failed: Callable[[str], None]
    pauses: list[tuple[float, float]] = field(default_factory=list)
    """When the API server did not answer, in Unix seconds; the end is infinite as long as it does not."""
    holder: str = ""
    """The user that has written the lease last."""
    takeovers: int = 0
    """Number of times that another user wrote the lease."""
    bindings: Counter[str] = field(default_factory=Counter)
    """How often the binding of each pod was acknowledged."""
    late: int = 0
    """Number of late writes that may have been sent in time."""
    candidates: set[str] = field(default_factory=set)
    """The users that have asked for the lease."""
    _offset: int = 0
    _renewed: dict[str, float] = field(default_factory=dict)

    def read(self) -> None:
        """Read what has been added."""
        if not self.path.exists():
            return
        with self.path.open("rb") as log:
            log.seek(self._offset)
            data = log.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        for line in whole.splitlines():
            event = _decode(line)
            if event.user.username.startswith(ACCOUNT):
                self._requested(event)

    def _requested(self, event: _Event) -> None:
        about = event.object_ref or _Reference()
        is_lease = about.resource == "leases" and about.name in (_LEASE, "")
        if is_lease:
            self.candidates.add(event.user.username)
        if event.verb not in _READING:
            self._written(event, about, is_lease=is_lease)

    def _written(self, event: _Event, about: _Reference, *, is_lease: bool) -> None:
        at = event.request_received_timestamp.timestamp()
        user, code = event.user.username, event.response_status.code
        if is_lease:
            if code in _SUCCESSFUL:
                self.takeovers += user != self.holder
                self.holder = user
                self._renewed[user] = at
            return
        if about.resource in _ANY_CANDIDATE:
            return
        self._check_leader(
            user, at, f"{event.verb} {about.resource}/{about.name} {about.subresource}".strip()
        )
        if about.subresource == "binding" and code == _CREATED:
            self.bindings[about.name] += 1
            if self.bindings[about.name] > 1:
                self.failed(f"pod {about.name} was bound {self.bindings[about.name]} times")

    def _check_leader(self, user: str, at: float, what: str) -> None:
        name = user.removeprefix(ACCOUNT)
        renewed = self._renewed.get(user)
        if renewed is None:
            self.failed(f"scheduler process {name} did {what} and never held the lease")
        elif self.holder != user:
            self._late(renewed, at, f"scheduler process {name} did {what} when another held the lease")
        elif at > renewed + LEASE_SECONDS + _SLACK_SECONDS:
            late = at - renewed - LEASE_SECONDS
            self._late(renewed, at, f"scheduler process {name} did {what} {late:.3f} s after its lease ended")

    def _late(self, renewed: float, at: float, what: str) -> None:
        if any(begin <= at and renewed <= end for begin, end in self.pauses):
            self.late += 1
        else:
            self.failed(what)
