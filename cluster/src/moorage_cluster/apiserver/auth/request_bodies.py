"""Reading the bodies of requests that are answered and never stored."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from moorage.api.manifests import Manifest
from moorage.apimachinery import errors

Body = TypeVar("Body", bound=msgspec.Struct)


def read_as(form: type[Body], body: Manifest, kind: str) -> Body:
    """A body as a struct of its fields, or ApiError when a value has the wrong type."""
    try:
        return msgspec.convert(body, form)
    except msgspec.ValidationError as error:
        raise errors.bad_request(f'{kind} in version "v1" cannot be handled as a {kind}: {error}') from error
