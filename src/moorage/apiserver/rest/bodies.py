"""From a request's bytes to an object of the right kind."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from moorage.api.manifests import Manifest
from moorage.apiserver import errors
from moorage.apiserver.resources import Resource
from moorage.apiserver.rest.context import Context
from moorage.apiserver.rest.yaml_bodies import load_yaml
from moorage.apiserver.schema import duplicate_fields, strict_decoding_error
from moorage.apiserver.schema.base import KindSchema
from moorage.apiserver.schema.protobuf import decode_protobuf
from moorage.apiserver.text import quoted

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
_decode_json = msgspec.json.Decoder().decode


@lru_cache(maxsize=256)
def media_type(content_type: str) -> str:
    """A content type without its parameters."""
    return content_type.partition(";")[0].strip().lower()


def parse_body(body: bytes, content_type: str) -> Any:
    """The value that a body says; ApiError if it cannot be read."""
    media = media_type(content_type)
    if media in ("", JSON):
        return parse_json(body)
    if media == YAML:
        return parse_yaml(body)
    if media == PROTOBUF:
        return decode_protobuf(body)
    raise errors.unsupported_media_type((JSON, YAML, PROTOBUF))


def parse_json(body: bytes) -> Any:
    """A JSON value."""
    try:
        return _decode_json(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise errors.bad_request(f"couldn't get version/kind; json parse error: {error}") from None


def parse_yaml(body: bytes) -> Any:
    """A YAML value that JSON could say too."""
    try:
        return _decode_json(body)  # Most clients send JSON, which is YAML too, and far sooner read.
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return load_yaml(body)


def decode_object(
    value: Any, resource: Resource, context: Context, body: bytes = b"", content_type: str = JSON
) -> Manifest:
    """A parsed body as an object of a resource, pruned and typed."""
    duplicates: list[str] = []
    # Finding a field that is there twice takes longer than all the rest: only for who asks for strictness.
    if context.options.field_validation == "Strict" and body and media_type(content_type) in ("", JSON):
        duplicates = duplicate_fields(body)
    return decode_as(value, resource.api_version, resource.kind, resource.schema, context, duplicates)


def decode_as(
    value: Any,
    api_version: str,
    kind: str,
    schema: KindSchema,
    context: Context,
    duplicates: list[str] | None = None,
) -> Manifest:
    """A parsed body as an object of a kind, pruned and typed; unknown fields are warned of or refused."""
    if not isinstance(value, dict):
        raise errors.bad_request("couldn't get version/kind; json parse error: the body is not an object")
    given_version, given_kind = value.get("apiVersion"), value.get("kind")
    if given_kind and given_kind != kind:
        raise errors.bad_request(
            f"{given_kind} in version {quoted(str(given_version or ''))} cannot be handled as a {kind}: "
            f"no kind {quoted(str(given_kind))} is registered here"
        )
    if given_version and given_version != api_version:
        raise errors.bad_request(
            f"the API version in the data ({given_version}) does not match "
            f"the expected API version ({api_version})"
        )
    obj, unknown = schema.decode(value)
    if unknown or duplicates:
        _report(unknown, duplicates or [], api_version, kind, context)
    obj["apiVersion"], obj["kind"] = api_version, kind
    if not isinstance(obj.get("metadata"), dict):
        obj["metadata"] = {}
    return obj


def _report(unknown: list[str], duplicates: list[str], api_version: str, kind: str, context: Context) -> None:
    validation = context.options.field_validation
    if validation == "Strict":
        version = api_version.rpartition("/")[2]
        raise strict_decoding_error(kind, version, unknown, duplicates)
    if validation == "Warn":
        context.warnings.extend(f"unknown field {quoted(path)}" for path in unknown)
        context.warnings.extend(f"duplicate field {quoted(path)}" for path in duplicates)
