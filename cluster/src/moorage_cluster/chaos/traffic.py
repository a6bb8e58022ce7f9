"""What a request of a scheduler is about: the classes by which faults are addressed."""

from __future__ import annotations

from typing import Final

from moorage.http.transport import Request

BIND: Final = "bind"
STATUS: Final = "status"
DELETE: Final = "delete"
EVENT: Final = "event"
LEASE: Final = "lease"
WATCH: Final = "watch"
LIST: Final = "list"
READ: Final = "read"
WRITE: Final = "write"
CLASSES: Final = (BIND, STATUS, DELETE, EVENT, LEASE, WATCH, LIST, READ, WRITE)

LEADERS_ONLY: Final = frozenset((BIND, STATUS, DELETE, WRITE))
"""The classes of requests that only the leader may send."""
_NAMED: Final = 2
"""Number of path segments after a resource's plural with which a request is about one object, at least."""


def class_of(request: Request) -> str:
    """The class of a request."""
    path, method = request.path, request.method
    if "/leases" in path:
        return LEASE
    if "/events" in path:
        return EVENT
    if method == "GET":
        return _class_of_reading(request)
    if path.endswith("/binding"):
        return BIND
    if path.endswith("/status"):
        return STATUS
    return DELETE if method == "DELETE" else WRITE


def _class_of_reading(request: Request) -> str:
    if "watch=" in request.query:
        return WATCH
    return LIST if is_collection(request.path) else READ


def is_collection(path: str) -> bool:
    """Whether a path is that of all objects of a resource, not of one object."""
    parts = path.strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    if rest[:1] == ["namespaces"] and len(rest) > _NAMED:
        rest = rest[2:]
    return len(rest) == 1


def resource_of(path: str) -> str:
    """The plural of the resource that a collection's path is about."""
    return path.rpartition("/")[2]
