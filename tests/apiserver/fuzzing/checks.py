"""What every answer must be, and what must be true of the store between requests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from moorage.http.transport import Response
from moorage_cluster.apiserver.embedded import EmbeddedServer
from moorage_cluster.apiserver.selector_parsing import FieldValues
from tests.apiserver.fuzzing.request import Shot

_CODES = {200, 201, 202, 304, 400, 401, 403, 404, 405, 406, 409, 410, 413, 415, 422, 429, 504}
DESIGNED_500S = {
    r"the spec replicas field .* does not exist": "a custom object's scale, when the object lacks the field",
    r".*accessor error: .* is of the type .*": "a custom object's scale, when the field is of the wrong type",
    r"value cannot be set because .* is not a map\[string\]interface\{\}": "the same, when it is written",
}
"""Internal errors that Kubernetes answers with by design: their messages, and when they come."""
_PATCHES_WITH_500S = ("application/strategic-merge-patch+json", "application/apply-patch+yaml")
"""Kubernetes passes on what its merge libraries say, as 500 without a reason."""
_POSTS_WITH_500S = ("/binding", "/bindings", "/eviction")
"""So it does with what is wrong with a binding or an eviction."""
_WRONG_VERSION = re.compile(
    r'strconv\.ParseUint: parsing "(?:\d{20,}": value out of range|.*": invalid syntax)', re.DOTALL
)
"""And with a resourceVersion that is no number, where an object is written over (tried on kube-apiserver)."""
_VERSION_OF_NEW = "resourceVersion should not be set on objects to be created"
_BAD_IN_HEADERS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")
_MAX_HEADER_BYTES = 8 * 1024
_EVENTS = {"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"}


class Wrong(AssertionError):  # noqa: N818 - the server is wrong, not this program
    """An answer, or a state of the server, that must not be."""


def check_answer(shot: Shot, status: int, content_type: str, headers: Mapping[str, str], body: bytes) -> Any:
    """That an answer has the right shape; the result is what it says, where that is JSON."""
    if status not in _CODES and status != 500:
        raise Wrong(f"the code is {status}")
    _check_headers(headers)
    if shot.method == "HEAD" and not body:
        return None
    if not content_type.startswith("application/json"):
        if status >= 400:
            raise Wrong(f"a failure of type {content_type!r}")
        return None
    try:
        status_object = msgspec.json.decode(body)
        body.decode()
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Wrong(f"the answer is not JSON: {error}") from None
    if not isinstance(status_object, dict):
        raise Wrong("the answer is not an object")
    if status >= 400:
        _check_failure(shot, status, status_object)
    else:
        _check_success(shot, status_object)
    return status_object


def _check_headers(headers: Mapping[str, str]) -> None:
    for name, value in headers.items():
        if _BAD_IN_HEADERS.search(value):
            raise Wrong(f"the header {name} cannot be sent: {value!r}")
        if len(value) > _MAX_HEADER_BYTES:
            raise Wrong(f"the header {name} has {len(value)} characters")


def _check_failure(shot: Shot, status: int, status_object: dict[str, Any]) -> None:
    if (status_object.get("kind"), status_object.get("apiVersion"), status_object.get("status")) != (
        "Status",
        "v1",
        "Failure",
    ):
        raise Wrong(f"a failure that is no Status: {status_object}")
    if status_object.get("code") != status:
        raise Wrong(f"the Status says {status_object.get('code')}, HTTP says {status}")
    message = status_object.get("message")
    if not isinstance(message, str) or not message.strip():
        raise Wrong("a failure without a message")
    if not isinstance(status_object.get("details", {}), dict):
        raise Wrong("the details are no object")
    if not status_object.get("reason"):
        if status != 500 or not _may_lack_reason(shot, message):
            raise Wrong(f"a failure without a reason: {message}")
    elif status == 500:
        causes = status_object.get("details", {}).get("causes") or [{}]
        if not any(re.fullmatch(known, causes[0].get("message", "")) for known in DESIGNED_500S):
            raise Wrong(f"an internal error: {message}")


def _may_lack_reason(shot: Shot, message: str) -> bool:
    if shot.method in ("PUT", "PATCH") and _WRONG_VERSION.fullmatch(message):
        return True
    if shot.method == "POST":
        return (message == _VERSION_OF_NEW and "dryRun" not in shot.query) or shot.path.rstrip("/").endswith(
            _POSTS_WITH_500S
        )
    content_type = dict(shot.headers).get("content-type", "").strip().lower()
    return shot.method == "PATCH" and content_type.startswith(_PATCHES_WITH_500S)


def _check_success(shot: Shot, status_object: dict[str, Any]) -> None:
    if not shot.path.startswith(("/api/", "/apis/")) or shot.kind is None:
        return
    kind = status_object.get("kind")
    if not isinstance(kind, str) or not isinstance(status_object.get("apiVersion"), str):
        raise Wrong("an object without kind or apiVersion")
    if kind == shot.kind.kind and shot.kind.plural != "bindings" and not kind.endswith("Review"):
        metadata = status_object.get("metadata") or {}
        if not metadata.get("name") or not metadata.get("uid"):
            raise Wrong(f"an object without name or uid: {metadata}")
        if not metadata.get("resourceVersion") and "dryRun" not in shot.query:
            raise Wrong("an object without resourceVersion")
    if kind == f"{shot.kind.kind}List" and not isinstance(status_object.get("items"), list):
        raise Wrong("a list without items")


def check_event(line: bytes) -> dict[str, Any]:
    """That a line of a watch is an event; the result is the event."""
    try:
        event = msgspec.json.decode(line)
    except msgspec.DecodeError as error:
        raise Wrong(f"an event is not JSON: {error}") from None
    if (
        not isinstance(event, dict)
        or event.get("type") not in _EVENTS
        or not isinstance(event.get("object"), dict)
    ):
        raise Wrong(f"not an event: {line[:200]!r}")
    return event


def content_of(response: Response) -> bytes:
    """The body of an answer that is not a stream."""
    assert isinstance(response.body, bytes)
    return response.body


def check_store(server: EmbeddedServer) -> None:
    """That stored objects are whole and canonical, and that every index agrees with them."""
    resources = {one.storage: one for one in server.resources if one.conversion is None}
    for collection in server.store.collections():
        resource = resources.get(collection.name)
        for key, stored in collection.items.items():
            where = f"{collection.name} {key}"
            obj = stored.decoded()
            metadata = obj["metadata"]
            if stored.key != key or key != (metadata.get("namespace", ""), metadata.get("name")):
                raise Wrong(f"{where} is stored under another key")
            if not metadata.get("uid") or metadata.get("resourceVersion") != str(stored.version):
                raise Wrong(f"{where} lacks its uid or resourceVersion: {metadata}")
            if stored.version > server.store.revision:
                raise Wrong(f"{where} is from the future")
            if stored.labels != (metadata.get("labels") or {}) or stored.api_version != obj["apiVersion"]:
                raise Wrong(f"{where}: labels or apiVersion are not the object's")
            if stored.obj != obj:
                raise Wrong(f"{where}: the shared copy was changed")
            if collection.within(key[0]).get(key) is not stored:
                raise Wrong(f"{where} is not in its namespace")
            if resource is None:
                continue
            if stored.fields != FieldValues.of(resource.strategy.selectable(obj)):
                raise Wrong(f"{where}: its fields are not the object's")
            if not resource.is_custom:
                again, unknown = resource.schema.decode(obj)
                if unknown or again != obj:
                    raise Wrong(f"{where} is not canonical: {unknown} {_difference(obj, again)}")
        if collection.keys() != sorted(collection.items):
            raise Wrong(f"{collection.name}: the sorted keys are not the keys")
        count = sum(len(collection.within(namespace)) for namespace in {key[0] for key in collection.items})
        if count != len(collection.items):
            raise Wrong(f"{collection.name}: the namespaces hold {count} of {len(collection.items)}")


def _difference(one: Any, other: Any, path: str = "") -> str:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in one.keys() | other.keys():
            if one.get(key) != other.get(key):
                return _difference(one.get(key), other.get(key), f"{path}.{key}")
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (item, same) in enumerate(zip(one, other, strict=True)):
            if item != same:
                return _difference(item, same, f"{path}[{index}]")
    return f"{path}: {one!r} and {other!r}"
