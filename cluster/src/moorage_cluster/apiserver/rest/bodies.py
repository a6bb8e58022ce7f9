"""Decoding of request bodies into objects of the right kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from moorage.api.manifests import Manifest
from moorage.api.text_cache import cached_by_text
from moorage.apimachinery import errors
from moorage.apimachinery.protobuf import decode_protobuf
from moorage.apimachinery.schema.base import KindSchema
from moorage.apimachinery.schema.decoding import cannot_be_handled, decode_kind
from moorage.apimachinery.schema.strictness import (
    NO_PROBLEMS,
    BodyProblems,
    duplicate_fields,
    json_problems,
)
from moorage.http.transport import Request
from moorage_cluster.apiserver.resources import APIResource
from moorage_cluster.apiserver.rest.context import Context
from moorage_cluster.apiserver.rest.yaml_bodies import parse_yaml_body, repeated_keys

Refusal = Callable[[str], errors.ApiError]

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
_decode_json = msgspec.json.Decoder().decode


@cached_by_text(count=256)
def media_type(content_type: str) -> str:
    """A content type without its parameters."""
    return content_type.partition(";")[0].strip().lower()


def parse_body(body: bytes, content_type: str, context: Context) -> Any:
    """The decoded value of a body; ApiError if it is invalid."""
    media = media_type(content_type)
    if media in ("", JSON):
        return parse_json(body)
    if media == YAML:
        return parse_yaml(body)
    if media == PROTOBUF:
        return decode_protobuf(body, context.types)
    raise errors.unsupported_media_type((JSON, YAML, PROTOBUF))


def parse_json(body: bytes) -> Any:
    """A JSON value."""
    try:
        return _decode_json(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise errors.bad_request(f"couldn't get version/kind; json parse error: {error}") from None


def parse_yaml(body: bytes) -> Any:
    """A YAML value that is valid as JSON."""
    try:
        return _decode_json(body)  # Most clients send JSON, which is valid YAML and parsed much faster.
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return parse_yaml_body(body)


def read_object(request: Request, resource: APIResource, context: Context) -> Manifest:
    """The object in a request, pruned and typed."""
    content_type, body = request.headers.get("content-type", ""), request.body
    value = parse_body(body, content_type, context)
    validation, media = context.options.field_validation, media_type(content_type)
    problems = NO_PROBLEMS
    if media in ("", JSON):
        problems = json_problems(body, value, validation, is_typed=not resource.is_custom)
    elif media == YAML and validation != "Ignore" and (lines := _yaml_lines(body)):
        problems = BodyProblems(yaml_lines=lines)
    return decode_object(value, resource, context, problems)


def parse_applied(body: bytes, context: Context) -> Any:
    """The value of an apply patch; ApiError (400) for duplicate keys with strict field validation."""
    value = parse_yaml(body)
    validation = context.options.field_validation
    lines = _yaml_lines(body) if validation != "Ignore" else []
    if lines and validation == "Strict":
        what = "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:"
        raise errors.bad_request("\n  ".join((what, *lines)))
    context.warnings.extend(lines)
    return value


def _yaml_lines(body: bytes) -> list[str]:
    """Messages about duplicate keys in a YAML body; JSON is parsed as JSON, which is much faster."""
    return repeated_keys(body) if not _is_json(body) or duplicate_fields(body) else []


def _is_json(body: bytes) -> bool:
    try:
        _decode_json(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def decode_object(
    value: Any,
    resource: APIResource,
    context: Context,
    problems: BodyProblems = NO_PROBLEMS,
    refusal: Refusal | None = None,
) -> Manifest:
    """A parsed body as an object of a resource, pruned and typed."""
    return decode_as(value, resource.api_version, resource.kind, resource.schema, context, problems, refusal)


def decode_as(
    value: Any,
    api_version: str,
    kind: str,
    schema: KindSchema,
    context: Context,
    problems: BodyProblems = NO_PROBLEMS,
    refusal: Refusal | None = None,
) -> Manifest:
    """A parsed body as an object of a kind, pruned and typed; unknown fields give warnings or errors.

    `refusal` makes the error of strict field validation from its reason.
    """
    obj, unknown = decode_kind(value, api_version, kind, schema)
    if unknown or problems is not NO_PROBLEMS:
        validation = context.options.field_validation
        if validation == "Strict":
            why = problems.strict_error(unknown)
            version = api_version.rpartition("/")[2]
            raise refusal(why) if refusal else cannot_be_handled(kind, version, why)
        if validation == "Warn":
            context.warnings.extend(problems.warnings(unknown))
    return obj
