"""A cache of decoded bodies: clients that create many objects send one body with `generateName` repeatedly.

The key is the body's bytes. The value is the decoded object, encoded: reading that takes a fraction of the
time of checking every field again.
"""

from __future__ import annotations

from typing import Final

from moorage.api.manifests import Manifest
from moorage.http.transport import Request
from moorage_cluster.apiserver.resources import APIResource
from moorage_cluster.apiserver.rest.bodies import read_object
from moorage_cluster.apiserver.rest.context import Context
from moorage_cluster.apiserver.store import decode, encode

_MAX_ENTRIES: Final = 256
_MAX_BYTES: Final = 16_384

_Asked = tuple[APIResource, str, str, bytes]
"""All that a body's meaning depends on: resource, content type, how strictly it is read, and its bytes."""


class DecodedBodyCache:
    """Decodes the bodies of creates; those without a name are cached."""

    def __init__(self) -> None:
        self._known: dict[_Asked, bytes] = {}

    def read(self, resource: APIResource, request: Request, context: Context) -> Manifest:
        """The object in a request: a private copy, pruned and typed."""
        content_type, body = request.headers.get("content-type", ""), request.body
        asked = (resource, content_type, context.options.field_validation, body)
        known = self._known.get(asked)
        if known is not None:
            again: Manifest = decode(known)
            return again
        said = len(context.warnings)
        obj = read_object(request, resource, context)
        # An object with a name can be created only once, and warnings must be repeated each time.
        is_one_of_many = "generateName" in obj["metadata"] and "name" not in obj["metadata"]
        if is_one_of_many and len(body) <= _MAX_BYTES and len(context.warnings) == said:
            self._add(asked, obj)
        return obj

    def _add(self, asked: _Asked, obj: Manifest) -> None:
        self._known[asked] = encode(obj)
        if len(self._known) > _MAX_ENTRIES:
            del self._known[next(iter(self._known))]
