"""JSON patches (RFC 6902), with Kubernetes' deviations.

- Replacing a missing field adds it, and copying one gives null: only list indices must exist.
- Negative indices count from a list's end.
- Text before a path's first slash is ignored.

A document is copied once and then changed in place, so that many operations on a large one stay cheap; values
that are added, from the patch or from elsewhere in it, are copied too, and no two places share anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final, TypeAlias

import msgspec

from moorage.api.manifests import copy
from moorage.apimachinery import errors
from moorage.apimachinery.errors import ApiError
from moorage.apimachinery.json_values import json_type, same
from moorage_cluster.apiserver.patches.depth import rejects_deep_nesting

MAX_OPERATIONS: Final = 10_000
MAX_COPIED_BYTES: Final = 3 * 1024 * 1024
"""Maximum bytes that `copy` operations may add, since each can double a document."""

_INDEX: Final = re.compile(r"[+-]?[0-9]{1,18}")
_TEXTS: Final = ("op", "path", "from")

Container: TypeAlias = dict[str, Any] | list[Any]
Edit: TypeAlias = Callable[[Container, str], None]
"""Changes a container at a key, in place."""


class _DoesNotApplyError(Exception):
    """The patch is well-formed but does not fit the document."""


@rejects_deep_nesting
def apply_json_patch(document: Any, operations: Any) -> Any:
    """The document after all operations in order; ApiError (400, 413, 422) if one fails."""
    _check(operations)
    document = copy(document)
    copied_bytes = 0
    try:
        for operation in operations or ():
            if operation is None:
                raise _DoesNotApplyError
            if operation.get("op") == "copy":
                value = _get(document, _text(operation, "from"))
                copied_bytes += len(msgspec.json.encode(value)) if value is not None else 0
                if copied_bytes > MAX_COPIED_BYTES:
                    raise _DoesNotApplyError
                document = _edited(document, _text(operation, "path"), _adding(copy(value)))
            else:
                document = _done(document, operation)
    except _DoesNotApplyError:
        raise _unprocessable() from None
    return document


def _check(operations: Any) -> None:
    if operations is None:
        return
    if not isinstance(operations, list):
        raise _malformed(f"{json_type(operations)} into Go value of type []handlers.jsonPatchOp")
    for operation in operations:
        if operation is None:
            continue
        if not isinstance(operation, dict):
            raise _malformed(f"{json_type(operation)} into Go value of type handlers.jsonPatchOp")
        for name in _TEXTS:
            text = operation.get(name)
            if text is not None and not isinstance(text, str):
                raise _malformed(f"{json_type(text)} into Go struct field jsonPatchOp.{name} of type string")
    if len(operations) > MAX_OPERATIONS:
        raise ApiError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            "RequestEntityTooLarge",
            "Request entity too large: The allowed maximum operations in a JSON patch is "
            f"{MAX_OPERATIONS}, got {len(operations)}",
        )


def _malformed(what: str) -> ApiError:
    return errors.bad_request(f"error decoding patch: json: cannot unmarshal {what}")


def _unprocessable() -> ApiError:
    message = "the server rejected our request due to an error in our request"
    return ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", message)


def _done(document: Any, operation: Mapping[str, Any]) -> Any:
    value = copy(operation.get("value"))
    path = _text(operation, "path")
    match operation.get("op"):
        case "add":
            return _edited(document, path, _adding(value))
        case "remove":
            return _edited(document, path, _remove)
        case "replace":
            if path:
                return _edited(document, path, _replacing(value))
            if isinstance(value, dict | list):
                return value
        case "move":
            source = _text(operation, "from")
            moved = _get(document, source)
            return _edited(_edited(document, source, _remove), path, _adding(moved))
        case "test":
            if same(_get(document, path) if path else document, value):
                return document
    raise _DoesNotApplyError


def _text(operation: Mapping[str, Any], name: str) -> str:
    text = operation.get(name)
    if not isinstance(text, str):
        raise _DoesNotApplyError
    return text


def _keys(path: str) -> list[str]:
    keys = [key.replace("~1", "/").replace("~0", "~") for key in path.split("/")[1:]]
    if not keys:
        raise _DoesNotApplyError
    return keys


def _get(document: Any, path: str) -> Any:
    """What is at a path; null where an object has no such field."""
    *way, last = _keys(path)
    for key in way:
        document = _child(document, key)
    return _child(document, last)


def _child(container: Any, key: str) -> Any:
    if isinstance(container, dict):
        return container.get(key)
    if isinstance(container, list):
        return container[_index(key, len(container))]
    raise _DoesNotApplyError


def _edited(document: Any, path: str, edit: Edit) -> Any:
    """The document, after an edit at a path."""
    *way, last = _keys(path)
    place = document
    for key in way:
        place = _child(place, key)
    if not isinstance(place, dict | list):
        raise _DoesNotApplyError
    edit(place, last)
    return document


def _index(key: str, length: int) -> int:
    if not _INDEX.fullmatch(key):
        raise _DoesNotApplyError
    index = int(key)
    if not -length <= index < length:
        raise _DoesNotApplyError
    return index % length


def _adding(value: Any) -> Edit:
    def add(container: Container, key: str) -> None:
        if isinstance(container, dict):
            container[key] = value
        elif key == "-":
            container.append(value)
        else:
            container.insert(_index(key, len(container) + 1), value)

    return add


def _replacing(value: Any) -> Edit:
    def replace(container: Container, key: str) -> None:
        if isinstance(container, dict):
            container[key] = value
        else:
            container[_index(key, len(container))] = value

    return replace


def _remove(container: Container, key: str) -> None:
    if isinstance(container, list):
        del container[_index(key, len(container))]
    elif key in container:
        del container[key]
    else:
        raise _DoesNotApplyError
