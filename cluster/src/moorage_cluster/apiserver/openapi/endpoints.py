"""The OpenAPI documents, built on first request and again when what is served changes."""

from __future__ import annotations

from collections.abc import Callable

from moorage.api.manifests import Manifest
from moorage.apimachinery import errors
from moorage.http.transport import Response
from moorage_cluster.apiserver.openapi.definitions import Custom
from moorage_cluster.apiserver.openapi.documents import (
    openapi_v2,
    openapi_v2_protobuf,
    openapi_v3,
    openapi_v3_index,
)
from moorage_cluster.apiserver.resources import Resources
from moorage_cluster.apiserver.store import encode

_V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""Clients send an @ before the version, but cannot parse it in answers: media types may not contain it."""
_V2_PROTOBUF_WORD = "proto-openapi.spec.v2"


class OpenApiDocuments:
    """Answers at `/openapi/v2` and `/openapi/v3`."""

    def __init__(self, resources: Resources, custom: Custom) -> None:
        self._resources = resources
        self._custom = custom
        self._generation = -1
        self._made: dict[str, bytes] = {}

    def v2(self, accept: str) -> Response:
        """The one document of version 2, as JSON or in the protobuf form that kubectl requests."""
        if _V2_PROTOBUF_WORD in accept:
            body = self._document("v2+protobuf", lambda: openapi_v2_protobuf(self._v2()))
            return Response(200, body, _V2_PROTOBUF)
        return Response(200, self._document("v2", lambda: encode(self._v2())))

    def _v2(self) -> Manifest:
        return openapi_v2(self._resources, self._custom, self._resources.types)

    def v3(self, path: str) -> Response:
        """The index at `/openapi/v3`, or the document of a group and version."""
        parts = path.strip("/").split("/")[2:]
        if not parts:
            types = self._resources.types
            index = self._document(
                "v3", lambda: encode(openapi_v3_index(self._resources, self._custom, types))
            )
            return Response(200, index)
        if parts[0] == "api" and len(parts) == 2:
            group, version = "", parts[1]
        elif parts[0] == "apis" and len(parts) == 3:
            group, version = parts[1:]
        else:
            raise errors.unknown_path()
        served = [one for one in self._resources if (one.group, one.version) == (group, version)]
        if not served:
            raise errors.unknown_path()
        types = self._resources.types
        body = self._document(path, lambda: encode(openapi_v3(group, version, served, self._custom, types)))
        return Response(200, body)

    def _document(self, name: str, make: Callable[[], bytes]) -> bytes:
        if self._generation != self._resources.generation:
            self._generation = self._resources.generation
            self._made.clear()
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]
