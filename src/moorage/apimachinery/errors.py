"""All errors of requests; each becomes a Status with Kubernetes' code and reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import Any, Final

import msgspec

from moorage.api.text import qualified, quoted, shortened
from moorage.apimachinery.fields import FieldError
from moorage.http.api_error import MAX_CAUSES
from moorage.http.api_error import ApiError as ApiError  # Re-exported.
from moorage.http.api_error import too_large as too_large

_MAX_CAUSES_BYTES: Final = 48 * 1024
"""Maximum bytes of an object's errors: an answer contains them twice, as a message and as causes."""
_MAX_NAME_LENGTH: Final = 1024


def _of(group: str, resource: str, name: str, **more: Any) -> dict[str, Any]:
    details = {"name": name, "group": group, "kind": resource, **more}
    return {key: value for key, value in details.items() if value}


def not_found(group: str, resource: str, name: str) -> ApiError:
    """There is no such object."""
    message = f"{qualified(resource, group)} {quoted(name)} not found"
    return ApiError(HTTPStatus.NOT_FOUND, "NotFound", message, _of(group, resource, name))


def unknown_path() -> ApiError:
    """There is nothing at this path."""
    message = "the server could not find the requested resource"
    return ApiError(HTTPStatus.NOT_FOUND, "NotFound", message)


def already_exists(group: str, resource: str, name: str) -> ApiError:
    """An object of that name exists already."""
    message = f"{qualified(resource, group)} {quoted(name)} already exists"
    return ApiError(HTTPStatus.CONFLICT, "AlreadyExists", message, _of(group, resource, name))


def conflict(group: str, resource: str, name: str, why: str) -> ApiError:
    """The object has changed, or is in a state that does not allow this."""
    message = f"Operation cannot be fulfilled on {qualified(resource, group)} {quoted(name)}: {why}"
    return ApiError(HTTPStatus.CONFLICT, "Conflict", message, _of(group, resource, name))


def failed_precondition(
    group: str, resource: str, name: str, field: str, wanted: str, found: str
) -> ApiError:
    """The object is not the one, or not in the version, that the request is about."""
    why = f"Precondition failed: {field} in precondition: {wanted}, {field} in object meta: {found}"
    return conflict(group, resource, name, why)


def apply_conflict(message: str, causes: list[dict[str, str]]) -> ApiError:
    """A server-side apply conflicts with other field managers."""
    return ApiError(HTTPStatus.CONFLICT, "Conflict", message, {"causes": causes})


def invalid(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> ApiError:
    """The object is invalid; all errors are listed, unless there are too many."""
    causes = list(_causes(errors))
    said = list(dict.fromkeys(f"{cause['field']}: {cause['message']}" for cause in causes))
    if len(causes) < len(errors):
        said.append(f"too many errors: at least {len(errors) - len(causes)} more are not shown")
    text = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    name = shortened(name, _MAX_NAME_LENGTH)
    message = f"{qualified(kind, group)} {quoted(name)} is invalid: {text}"
    details = _of(group, kind, name, causes=causes)
    return ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", message, details)


def _causes(errors: Sequence[FieldError]) -> Iterator[dict[str, str]]:
    """The first errors for a Status, as many as fit into an answer, but at least one."""
    room = _MAX_CAUSES_BYTES
    for error in errors[:MAX_CAUSES]:
        cause = {"reason": error.problem.reason, "message": error.body, "field": error.field}
        room -= len(msgspec.json.encode(cause))
        if room < 0 and error is not errors[0]:
            return
        yield cause


def bad_request(message: str) -> ApiError:
    """The request is malformed."""
    return ApiError(HTTPStatus.BAD_REQUEST, "BadRequest", message)


def unauthorized() -> ApiError:
    """The request is not authenticated."""
    return ApiError(HTTPStatus.UNAUTHORIZED, "Unauthorized", "Unauthorized")


def forbidden(group: str, resource: str, name: str, why: str) -> ApiError:
    """The user is authenticated, but not authorized."""
    subject = qualified(resource, group)
    message = f"{subject} {quoted(name)} is forbidden: {why}" if name else f"{subject} is forbidden: {why}"
    return ApiError(HTTPStatus.FORBIDDEN, "Forbidden", message, _of(group, resource, name))


def not_allowed_here() -> ApiError:
    """The path does not support this method."""
    message = "the server does not allow this method on the requested resource"
    return ApiError(HTTPStatus.METHOD_NOT_ALLOWED, "MethodNotAllowed", message)


def not_acceptable(accepted: Sequence[str]) -> ApiError:
    """The client accepts no media type that is supported."""
    message = f"only the following media types are accepted: {', '.join(accepted)}"
    return ApiError(HTTPStatus.NOT_ACCEPTABLE, "NotAcceptable", message)


def unsupported_media_type(supported: Sequence[str]) -> ApiError:
    """The body's media type is not supported."""
    message = (
        "the body of the request was in an unknown format - "
        f"accepted media types include: {', '.join(supported)}"
    )
    return ApiError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)


def expired(message: str, token: str = "") -> ApiError:
    """The resource version is too old: list again, or continue with a token."""
    metadata = {"continue": token} if token else None
    return ApiError(HTTPStatus.GONE, "Expired", message, metadata=metadata)


def too_many_requests(message: str, causes: list[dict[str, str]], retry_after_seconds: int = 0) -> ApiError:
    """The server cannot handle the request now."""
    details: dict[str, Any] = {"causes": causes} if causes else {}
    headers = {}
    if retry_after_seconds:
        details["retryAfterSeconds"] = retry_after_seconds
        headers["Retry-After"] = str(retry_after_seconds)
    return ApiError(HTTPStatus.TOO_MANY_REQUESTS, "TooManyRequests", message, details, headers)


def timeout(
    message: str, causes: list[dict[str, str]] | None = None, retry_after_seconds: int = 0
) -> ApiError:
    """The request timed out."""
    details: dict[str, Any] = {"causes": causes} if causes else {}
    if retry_after_seconds:
        details["retryAfterSeconds"] = retry_after_seconds
    return ApiError(HTTPStatus.GATEWAY_TIMEOUT, "Timeout", f"Timeout: {message}", details)


def internal(message: str) -> ApiError:
    """An internal error, or an inconsistent state."""
    text = f"Internal error occurred: {message}"
    details = {"causes": [{"message": message}]}
    return ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, "InternalError", text, details)
