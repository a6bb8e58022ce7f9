"""The OpenAPI documents of what is served: `/openapi/v3`, a document per group version, and `/openapi/v2`.

kubectl reads them to explain kinds, to merge patches, and to learn which query parameters a write accepts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from moorage.apimachinery.schema.wire import WireFormat
from moorage_cluster.apiserver.openapi.definitions import (
    META,
    PATCH,
    Custom,
    custom_name,
    descriptions,
    name_of,
    reachable,
    references,
)
from moorage_cluster.apiserver.openapi.gnostic import encode_document
from moorage_cluster.apiserver.openapi.operations import paths_of
from moorage_cluster.apiserver.openapi.swagger import swagger_of

if TYPE_CHECKING:
    from moorage_cluster.apiserver.resources import APIResource

__all__ = ["openapi_v2", "openapi_v2_protobuf", "openapi_v3", "openapi_v3_index"]

_ALWAYS = frozenset(
    (f"{META}Status", f"{META}DeleteOptions", f"{META}WatchEvent", f"{META}APIResourceList", PATCH)
)


def openapi_v3_index(resources: Iterable[APIResource], custom: Custom, types: WireFormat) -> dict[str, Any]:
    """The index at `/openapi/v3`: a URL per group version, which changes when the document does."""
    by_version: dict[tuple[str, str], list[APIResource]] = {}
    for resource in resources:
        by_version.setdefault((resource.group, resource.version), []).append(resource)
    paths = {}
    for (group, version), members in sorted(by_version.items()):
        path = f"apis/{group}/{version}" if group else f"api/{version}"
        digest = _digest(members, custom, types)
        paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}
    return {"paths": paths}


def _digest(resources: list[APIResource], custom: Custom, types: WireFormat) -> str:
    """A hash of a document's inputs, which are much smaller than the document."""
    made_of = [
        [
            [
                resource.group,
                resource.version,
                resource.kind,
                resource.plural,
                resource.list_kind,
                resource.namespaced,
                resource.verbs,
                [(sub.name, sub.kind, sub.verbs, sub.group, sub.version) for sub in resource.subresources],
                custom.get((resource.group, resource.version, resource.kind)),
            ]
            for resource in resources
        ],
        types.text,
        descriptions(),
    ]
    return hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest().upper()


def openapi_v3(
    group: str, version: str, resources: Iterable[APIResource], custom: Custom, types: WireFormat
) -> dict[str, Any]:
    """The document of one group and version; resources of others are ignored."""
    served = [resource for resource in resources if (resource.group, resource.version) == (group, version)]
    return _document(served, custom, types)


def openapi_v2(resources: Iterable[APIResource], custom: Custom, types: WireFormat) -> dict[str, Any]:
    """The one document about everything at `/openapi/v2`."""
    document = swagger_of(_document(list(resources), custom, types))
    own = {custom_name(kind): schema.v2 for kind, schema in custom.items()}
    document["definitions"] |= {name: own[name] for name in document["definitions"].keys() & own.keys()}
    return document


def openapi_v2_protobuf(document: dict[str, Any]) -> bytes:
    """An OpenAPI v2 document in gnostic's protobuf form, as kubectl requests it."""
    return encode_document(document)


def _document(resources: list[APIResource], custom: Custom, types: WireFormat) -> dict[str, Any]:
    kinds = {(resource.group, resource.version, resource.kind) for resource in resources}
    paths = paths_of(resources, custom, types)
    roots = set(_ALWAYS) | set(references(paths))
    roots |= {name for kind in kinds if (name := name_of(kind, custom, types))}
    own = {custom_name(kind): schema.v3 for kind, schema in custom.items()}
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": types.version},
        "paths": paths,
        "components": {
            "schemas": reachable(roots, own, types),
            "securitySchemes": {"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"}},
        },
    }
