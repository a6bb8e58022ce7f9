"""Request paths, parsed: which verb on which resource, or a non-resource path."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote

from moorage.api.text_cache import cached_by_text

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}
_NAMESPACE_PARTS = ("status", "finalize")


class Address(NamedTuple):
    """A parsed path: a request without its user (`RequestAttributes` has the same fields)."""

    verb: str
    group: str
    version: str
    resource: str
    subresource: str
    namespace: str
    name: str
    path: str
    is_resource: bool


@cached_by_text(count=1024, max_length=1024)
def parse_address(path: str, method: str, watching: bool) -> Address:
    """Parse a request's path; `watching` is the query's `watch`."""
    verb = method.lower()
    parts = path.strip("/").split("/")
    if "%" in path:
        parts = [unquote(part) for part in parts]
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return _elsewhere(verb, path)
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in _NAMESPACE_PARTS:
            rest = rest[2:]
    resource, name, *more = [*rest, ""] if len(rest) == 1 else rest
    if not all(rest) or len(more) > 1:
        return _elsewhere(verb, path)
    if method in ("GET", "HEAD"):
        verb = "get" if name else "watch" if watching else "list"
    elif method == "DELETE":
        verb = "delete" if name else "deletecollection"
    else:
        verb = _VERBS.get(method, verb)
    return Address(verb, group, version, resource, more[0] if more else "", namespace, name, path, True)


def _elsewhere(verb: str, path: str) -> Address:
    """A path that is not about a resource."""
    return Address(verb, "", "", "", "", "", "", path, False)
