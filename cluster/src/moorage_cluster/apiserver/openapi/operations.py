"""The paths of resources with their operations, in OpenAPI v3."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from moorage.apimachinery.schema.wire import WireFormat
from moorage_cluster.apiserver.openapi.definitions import (
    META,
    PATCH,
    Custom,
    Kind,
    kind_extension,
    name_of,
    reference,
)

if TYPE_CHECKING:
    from moorage_cluster.apiserver.resources import APIResource

Document = dict[str, Any]

_ANSWERS: Final = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
_WATCH_ANSWERS: Final = (*_ANSWERS, "application/json;stream=watch")
_PATCHES: Final = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)
_LIST: Final = {
    "allowWatchBookmarks": "boolean",
    "continue": "string",
    "fieldSelector": "string",
    "labelSelector": "string",
    "limit": "integer",
    "resourceVersion": "string",
    "resourceVersionMatch": "string",
    "sendInitialEvents": "boolean",
    "timeoutSeconds": "integer",
    "watch": "boolean",
}
_WRITE: Final = {"dryRun": "string", "fieldManager": "string", "fieldValidation": "string"}
_DELETE: Final = {
    "dryRun": "string",
    "gracePeriodSeconds": "integer",
    "orphanDependents": "boolean",
    "propagationPolicy": "string",
}
_VERBS: Final = {
    # verb: method, action, begin of the operation's id, query parameters
    "get": ("get", "get", "read", {}),
    "list": ("get", "list", "list", _LIST),
    "create": ("post", "post", "create", _WRITE),
    "update": ("put", "put", "replace", _WRITE),
    "patch": ("patch", "patch", "patch", {**_WRITE, "force": "boolean"}),
    "delete": ("delete", "delete", "delete", _DELETE),
    "deletecollection": ("delete", "deletecollection", "deleteCollection", {**_LIST, **_DELETE}),
}
_OF_COLLECTION: Final = ("list", "create", "deletecollection")
_OF_OBJECT: Final = ("get", "update", "patch", "delete")


def paths_of(resources: Iterable[APIResource], custom: Custom, types: WireFormat) -> Document:
    """The paths of some resources, sorted."""
    found: Document = {}
    for resource in resources:
        found.update(_paths(resource, custom, types))
    return dict(sorted(found.items()))


def _paths(resource: APIResource, custom: Custom, types: WireFormat) -> Iterator[tuple[str, Document]]:
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    collection = f"{root}/{resource.plural}"
    writer = _Writer(resource, custom, types)
    if resource.namespaced:
        if "list" in resource.verbs:
            yield collection, writer.path(("list",), resource.verbs, scope="ForAllNamespaces")
        collection = f"{root}/namespaces/{{namespace}}/{resource.plural}"
    item = f"{collection}/{{name}}"
    if any(verb in resource.verbs for verb in _OF_COLLECTION):
        yield collection, writer.path(_OF_COLLECTION, resource.verbs)
    if any(verb in resource.verbs for verb in _OF_OBJECT):
        yield item, writer.path(_OF_OBJECT, resource.verbs, named=True)
    for sub in resource.subresources:
        kind = (sub.group, sub.version, sub.kind)
        if not sub.group and not sub.version:
            kind = (resource.group, resource.version, sub.kind)
        verbs = ("get", "create", "update", "patch", "delete")
        suffix = sub.name[:1].upper() + sub.name[1:]
        yield f"{item}/{sub.name}", writer.path(verbs, sub.verbs, named=True, kind=kind, suffix=suffix)


class _Writer:
    """Writes the operations of one resource."""

    def __init__(self, resource: APIResource, custom: Custom, types: WireFormat) -> None:
        self._resource = resource
        self._custom = custom
        self._types = types
        self._kind: Kind = (resource.group, resource.version, resource.kind)

    def path(
        self,
        possible: tuple[str, ...],
        verbs: tuple[str, ...],
        *,
        named: bool = False,
        kind: Kind | None = None,
        scope: str = "",
        suffix: str = "",
    ) -> Document:
        parameters = []
        if named:
            parameters.append(_parameter("name", "path", "string"))
        if self._resource.namespaced and not scope:
            parameters.append(_parameter("namespace", "path", "string"))
        parameters.append(_parameter("pretty", "query", "string"))
        found: Document = {"parameters": parameters}
        for verb in possible:
            if verb in verbs:
                found[_VERBS[verb][0]] = self._operation(verb, kind or self._kind, scope, suffix)
        return found

    def _operation(self, verb: str, kind: Kind, scope: str, suffix: str) -> Document:
        _, action, begin, queries = _VERBS[verb]
        resource = self._resource
        group = _words(resource.group) or "Core"
        where = "Namespaced" if resource.namespaced and not scope else ""
        version = resource.version.capitalize()
        middle = f"{group}{version}"
        if verb == "deletecollection":
            begin, middle = "delete", f"{middle}Collection"
        operation: Document = {
            "operationId": f"{begin}{middle}{where}{resource.kind}{suffix}{scope}",
            "tags": [f"{group[:1].lower()}{group[1:]}_{resource.version}"],
        }
        if queries:
            operation["parameters"] = [_parameter(name, "query", form) for name, form in queries.items()]
        name = name_of(kind, self._custom, self._types)
        body = {"create": name, "update": name, "delete": f"{META}DeleteOptions"}.get(verb)
        if verb == "patch":
            patches = _PATCHES[:-1] if self._kind in self._custom else _PATCHES
            operation["requestBody"] = {"content": _content(PATCH, patches), "required": True}
        elif verb == "deletecollection":
            operation["requestBody"] = {"content": _content(f"{META}DeleteOptions", ("*/*",))}
        elif body:
            operation["requestBody"] = {"content": _content(body, ("*/*",))}
            if verb != "delete":
                operation["requestBody"]["required"] = True
        operation["responses"] = self._responses(verb, kind, name)
        operation["x-kubernetes-action"] = action
        operation["x-kubernetes-group-version-kind"] = kind_extension(kind)
        return operation

    def _responses(self, verb: str, kind: Kind, name: str | None) -> Document:
        if verb == "list":
            name = name_of((kind[0], kind[1], self._resource.list_kind), self._custom, self._types)
        elif verb in ("delete", "deletecollection"):
            name = f"{META}Status"
        answer: Document = {"description": "OK"}
        if name:
            answer["content"] = _content(name, _WATCH_ANSWERS if verb == "list" else _ANSWERS)
        responses = {"200": answer}
        if verb in ("create", "update", "patch"):
            responses["201"] = {**answer, "description": "Created"}
        if verb in ("create", "delete"):
            responses["202"] = {**answer, "description": "Accepted"}
        return {**responses, "401": {"description": "Unauthorized"}}


def _parameter(name: str, where: str, form: str) -> Document:
    parameter: Document = {"name": name, "in": where, "schema": {"type": form, "uniqueItems": True}}
    if where == "path":
        parameter["required"] = True
    return parameter


def _content(name: str, media_types: tuple[str, ...]) -> Document:
    return {media: {"schema": reference(name)} for media in media_types}


def _words(group: str) -> str:
    """A group as part of an operation's id: `RbacAuthorization`."""
    return "".join(word[:1].upper() + word[1:] for word in re.split(r"[.-]", group.removesuffix(".k8s.io")))
