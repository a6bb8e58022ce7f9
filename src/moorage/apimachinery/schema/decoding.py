"""Decoding of a JSON value as an object of a kind that is known from where it was sent."""

from __future__ import annotations

from typing import Any

from moorage.api.text import quoted
from moorage.apimachinery import errors
from moorage.apimachinery.schema.base import Decoded, KindSchema


def decode_kind(value: Any, api_version: str, kind: str, schema: KindSchema) -> Decoded:
    """A JSON value as an object of a kind; ApiError (400) if it says to be of another, or has wrong types."""
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
    decoded = schema.decode(value)
    obj = decoded.obj
    obj["apiVersion"], obj["kind"] = api_version, kind
    if not isinstance(obj.get("metadata"), dict):
        obj["metadata"] = {}
    return decoded


def cannot_be_handled(kind: str, version: str, why: str) -> errors.ApiError:
    """The body is not an object of its kind."""
    return errors.bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {why}')
