"""Subresources: the parts of an object that have a path of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import msgspec

from moorage.api.manifests import Manifest
from moorage.apimachinery import errors
from moorage.apimachinery.schema import schema_of
from moorage.apimachinery.schema.base import UNTYPED_SCHEMA
from moorage.http.transport import Request, Response, Stream
from moorage_cluster.apiserver.address import Address
from moorage_cluster.apiserver.auth.tokens import Authenticator
from moorage_cluster.apiserver.kinds.namespaces import prepare_finalize, validate_finalize
from moorage_cluster.apiserver.kinds.pods.binding import bind
from moorage_cluster.apiserver.kinds.pods.ephemeral import set_ephemeral_containers
from moorage_cluster.apiserver.kinds.pods.eviction import evict
from moorage_cluster.apiserver.kinds.pods.resize import resize
from moorage_cluster.apiserver.kinds.scale import check_scale
from moorage_cluster.apiserver.negotiation import negotiate
from moorage_cluster.apiserver.options import Query
from moorage_cluster.apiserver.resources import APIResource, Resources, Subresource
from moorage_cluster.apiserver.rest.bodies import (
    decode_as,
    decode_object,
    media_type,
    parse_body,
    read_object,
)
from moorage_cluster.apiserver.rest.context import Context
from moorage_cluster.apiserver.rest.deletes import Deleter, delete_options
from moorage_cluster.apiserver.rest.identity import keep_identity
from moorage_cluster.apiserver.rest.patching import APPLY_PATCH, Patcher, patched
from moorage_cluster.apiserver.rest.reads import transformed
from moorage_cluster.apiserver.rest.writes import Writer
from moorage_cluster.apiserver.store import Stored, decode, encode
from moorage_cluster.apiserver.tables.registry import printer_for

BINDINGS: Final = "/bindings"
"""The storage name of bindings, which are never stored: creating one binds its pod."""

_SCALE_PRINTER: Final = printer_for("autoscaling", "Scale")

Logs = Callable[[Manifest, Query], bytes | Stream]
"""The logs of a pod's container, optionally followed; ApiError if there are none."""


def no_logs(pod: Manifest, query: Query) -> bytes:
    """The logs of a pod without a kubelet."""
    name = pod["metadata"]["name"]
    container = query.get("container") or pod["spec"]["containers"][0]["name"]
    raise errors.bad_request(
        f'container "{container}" in pod "{name}" is waiting to start: ContainerCreating'
    )


class _Call(msgspec.Struct):
    """One request for a subresource, as handlers need it."""

    resource: APIResource
    sub: Subresource
    namespace: str
    name: str
    verb: str
    query: Query
    request: Request
    context: Context

    @property
    def api_version(self) -> str:
        """The group and version of this subresource's objects."""
        if not self.sub.version:
            return self.resource.api_version
        return f"{self.sub.group}/{self.sub.version}" if self.sub.group else self.sub.version

    def body(self) -> Manifest:
        """The request's body as the subresource's kind."""
        api_version = self.api_version
        group, _, version = api_version.rpartition("/")
        schema = schema_of(group, version, self.sub.kind, self.context.types) or UNTYPED_SCHEMA
        content_type = self.request.headers.get("content-type", "")
        value = parse_body(self.request.body, content_type, self.context)
        return decode_as(value, api_version, self.sub.kind, schema, self.context)


class Subresources:
    """Answers requests for subresources."""

    def __init__(
        self, resources: Resources, writer: Writer, authenticator: Authenticator, logs: Logs = no_logs
    ) -> None:
        self._resources = resources
        self._writer = writer
        self._deleter = Deleter(writer)
        self._patcher = Patcher(writer)
        self._authenticator = authenticator
        self.logs = logs
        self._handlers: dict[str, Callable[[_Call], Response]] = {
            "status": self._status,
            "approval": self._status,
            "scale": self._scale,
            "binding": self._binding,
            "eviction": self._eviction,
            "ephemeralcontainers": self._ephemeral_containers,
            "resize": self._resize,
            "finalize": self._finalize,
            "token": self._token,
        }

    def answer(
        self, resource: APIResource, namespace: str, address: Address, query: Query, request: Request,
        context: Context,
    ) -> Response:  # fmt: skip
        """The answer to a request for a subresource."""
        sub = resource.subresource(address.subresource)
        if sub is None:
            raise errors.unknown_path()
        if address.verb not in sub.verbs:
            raise errors.not_allowed_here()
        call = _Call(resource, sub, namespace, address.name, address.verb, query, request, context)
        printer = {"status": resource.printer, "scale": _SCALE_PRINTER}.get(sub.name)
        if sub.name == "log":
            return self._log(call)
        wanted = negotiate(request.headers.get("accept", ""), has_tables=printer is not None)
        response = self._handlers[sub.name](call)
        if wanted.transform and printer is not None and isinstance(response.body, bytes):
            response.body = transformed(response.body, printer, wanted, self._writer.now())
        return response

    # -- of many kinds

    def _status(self, call: _Call) -> Response:
        """The status, or the approval that is a part of it."""
        resource, namespace, name, sub = call.resource, call.namespace, call.name, call.sub.name
        if call.verb == "get":
            return Response(200, self._shown(call))
        if call.verb == "patch":
            content_type = call.request.headers.get("content-type", "")
            body = call.request.body
            code, raw = self._patcher.patch(resource, namespace, name, body, content_type, call.context, sub)
            return Response(code, raw)
        obj = read_object(call.request, resource, call.context)
        return Response(200, self._writer.update(resource, namespace, name, lambda _: obj, call.context, sub))

    def _scale(self, call: _Call) -> Response:
        scaling = call.resource.scaling
        if scaling is None:
            raise errors.unknown_path()
        resource = call.resource
        if call.verb == "get":
            return Response(200, encode(scaling.scale_of(self._opened(call))))
        scale_schema = schema_of("autoscaling", "v1", "Scale") or UNTYPED_SCHEMA

        def edit(current: Manifest) -> Manifest:
            if call.verb == "patch":
                media = media_type(call.request.headers.get("content-type", ""))
                if media == APPLY_PATCH:
                    raise errors.unsupported_media_type(("application/merge-patch+json",))
                patch = self._patcher.parse(media, call.request.body, resource)
                value = patched(scaling.scale_of(current), patch, media, scale_schema.shape)
                wanted = decode_as(value, "autoscaling/v1", "Scale", scale_schema, call.context)
            else:
                wanted = call.body()
            if problems := check_scale(wanted):
                raise errors.invalid("autoscaling", "Scale", call.name, problems)
            changed = scaling.with_scale(current, wanted)
            if version := wanted["metadata"].get("resourceVersion"):
                changed["metadata"]["resourceVersion"] = version
            return changed

        changed = self._writer.update(resource, call.namespace, call.name, edit, call.context, "scale")
        return Response(200, encode(scaling.scale_of(decode(changed))))

    # -- of pods

    def _binding(self, call: _Call) -> Response:
        return Response(201, self._bind(call.resource, call.namespace, call.name, call.body(), call.context))

    def bind_named(self, namespace: str, binding: Manifest, context: Context) -> bytes:
        """Bind the pod of a Binding; returns a Status, encoded."""
        pods = self._resources.of_kind("v1", "Pod")
        assert pods is not None
        return self._bind(pods, namespace, binding["metadata"].get("name", ""), binding, context)

    def _bind(
        self, resource: APIResource, namespace: str, name: str, binding: Manifest, context: Context
    ) -> bytes:
        stored = self._writer.stored(resource, namespace, name)
        binding["metadata"].setdefault("name", name)
        binding["metadata"].setdefault("namespace", namespace)
        self._writer.admit("CREATE", resource, "binding", namespace, name, binding, None, context)
        pod = self._writer.opened(resource, stored)
        self._writer.replace(resource, stored, pod, bind(pod, binding, self._writer.now()), context)
        return _BOUND

    def _eviction(self, call: _Call) -> Response:
        """Delete a pod if its disruption budget allows it."""
        eviction = call.body()
        stored = self._writer.stored(call.resource, call.namespace, call.name)
        options = delete_options(call.query, eviction.get("deleteOptions") or {})
        budgets = list(self._writer.store.all("policy/poddisruptionbudgets", call.namespace))
        decision = evict(stored.decoded(), budgets, eviction, self._writer.now())
        if options.dry_run or call.context.options.dry_run:
            return Response(201, _success(201))
        if decision.budget is not None:
            budget = self._resources.of_kind("policy/v1", "PodDisruptionBudget")
            assert budget is not None
            held = self._writer.stored(budget, call.namespace, decision.budget["metadata"]["name"])
            self._replace(budget, held, decision.budget, call.context)
        self._replace(call.resource, stored, decision.pod, call.context)
        how = replace(options, uid=None, resource_version=None)
        self._deleter.delete(call.resource, call.namespace, call.name, how, call.context)
        return Response(201, _success(201))

    def _ephemeral_containers(self, call: _Call) -> Response:
        return self._edited(call, set_ephemeral_containers)

    def _resize(self, call: _Call) -> Response:
        return self._edited(call, resize)

    def _edited(self, call: _Call, change: Callable[[Manifest, Manifest], Manifest]) -> Response:
        """Update one aspect of a pod through a subresource: `change(stored, wanted)` is the result."""
        if call.verb == "get":
            return Response(200, self._shown(call))
        stored = self._writer.stored(call.resource, call.namespace, call.name)
        if call.verb == "patch":
            media = media_type(call.request.headers.get("content-type", ""))
            patch = self._patcher.parse(media, call.request.body, call.resource)
            value = patched(stored.decoded(), patch, media, call.resource.schema.shape)
            wanted = decode_object(value, call.resource, call.context)
        else:
            wanted = call.body()
        call.resource.strategy.default(wanted)
        pod = change(self._writer.opened(call.resource, stored), wanted)
        return Response(200, self._replace(call.resource, stored, pod, call.context))

    def _log(self, call: _Call) -> Response:
        stored = self._writer.stored(call.resource, call.namespace, call.name)
        return Response(200, self.logs(stored.obj, call.query), "text/plain")

    # -- of others

    def _finalize(self, call: _Call) -> Response:
        """Change a namespace's finalizers; without any, a terminating namespace is deleted."""
        stored = self._writer.stored(call.resource, call.namespace, call.name)
        old, namespace = self._writer.opened(call.resource, stored), call.body()
        keep_identity(call.resource, call.namespace, call.name, namespace, old)
        call.resource.strategy.default(namespace)
        prepare_finalize(namespace, old)
        self._writer.refuse(call.resource, namespace, validate_finalize(namespace))
        if namespace["metadata"].get("deletionTimestamp") and not namespace["spec"].get("finalizers"):
            return Response(200, self._writer.remove(call.resource, stored, call.context))
        return Response(200, self._replace(call.resource, stored, namespace, call.context))

    def _token(self, call: _Call) -> Response:
        account = self._writer.stored(call.resource, call.namespace, call.name).obj
        return Response(201, encode(self._authenticator.issue(account, call.body())))

    # -- shared

    def _opened(self, call: _Call) -> Manifest:
        return self._writer.opened(
            call.resource, self._writer.stored(call.resource, call.namespace, call.name)
        )

    def _shown(self, call: _Call) -> bytes:
        return self._writer.shown(
            call.resource, self._writer.stored(call.resource, call.namespace, call.name)
        )

    def _replace(self, resource: APIResource, stored: Stored, obj: Manifest, context: Context) -> bytes:
        return self._writer.replace(resource, stored, self._writer.opened(resource, stored), obj, context)


def _success(code: int) -> bytes:
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code}
    return encode(status)


_BOUND: Final = _success(201)
