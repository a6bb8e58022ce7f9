"""Dispatch of requests to verbs, by resource and subresource, and the form of the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from typing import Final

from moorage.admission.users import User
from moorage.api.manifests import Manifest
from moorage.apimachinery import errors
from moorage.clock import Clock
from moorage.http.transport import Request, Response
from moorage_cluster.apiserver.address import Address
from moorage_cluster.apiserver.auth.attributes import RequestAttributes
from moorage_cluster.apiserver.auth.authorizers import Authorizer, require
from moorage_cluster.apiserver.negotiation import NegotiatedForm, negotiate
from moorage_cluster.apiserver.options import (
    ListOptions,
    Query,
    flag,
    list_options,
    number,
    revision,
    write_options,
)
from moorage_cluster.apiserver.resources import APIResource, Resources
from moorage_cluster.apiserver.rest.bodies import parse_body, read_object
from moorage_cluster.apiserver.rest.context import Context
from moorage_cluster.apiserver.rest.decoded_body_cache import DecodedBodyCache
from moorage_cluster.apiserver.rest.deletes import DeleteOptions, Deleter, delete_options
from moorage_cluster.apiserver.rest.identity import drop_version
from moorage_cluster.apiserver.rest.patching import Patcher
from moorage_cluster.apiserver.rest.reads import ObjectReader, check_fields, check_revision, transformed
from moorage_cluster.apiserver.rest.subresources import BINDINGS, Subresources
from moorage_cluster.apiserver.rest.virtual import made_now
from moorage_cluster.apiserver.rest.watches import Watch
from moorage_cluster.apiserver.rest.writes import Writer
from moorage_cluster.apiserver.store import encode
from moorage_cluster.apiserver.warning_header import warning_header

_MIN_WATCH_SECONDS: Final = 1800.0
"""Minimum duration of a watch without a timeout, in seconds; the maximum is twice as long."""

Answer = Callable[[Manifest, str, Context], Manifest]
"""Handles a created object that is never stored, such as a SubjectAccessReview: body, namespace, context."""


class Dispatcher:
    """Answers requests for resources."""

    def __init__(
        self,
        resources: Resources,
        writer: Writer,
        subresources: Subresources,
        answers: Mapping[str, Answer],
        authorizer: Authorizer,
        clock: Clock,
        random: Random,
    ) -> None:
        self._resources = resources
        self._writer = writer
        self._reader = ObjectReader(writer)
        self._deleter = Deleter(writer)
        self._patcher = Patcher(writer)
        self._subresources = subresources
        self._answers = answers
        self._authorizer = authorizer
        self._bodies = DecodedBodyCache()
        self._clock = clock
        self._random = random

    def answer(self, address: Address, query: Query, request: Request, user: User) -> Response:
        """The answer to a request for a resource."""
        resource = self._resources.get(address.group, address.version, address.resource)
        if resource is None:
            raise errors.unknown_path()
        namespace = address.namespace if resource.namespaced else ""
        _check_scope(resource, address)
        if resource.source is not None:
            now = self._writer.now()
            return Response(200, made_now(resource, resource.source, address, query, request, now))
        said = [resource.deprecation] if resource.deprecation else []
        context = Context(
            user, write_options(query), said, request.headers.get("user-agent", ""), self._resources.types
        )
        if address.subresource:
            response = self._subresources.answer(resource, namespace, address, query, request, context)
        elif address.verb not in resource.verbs:
            raise errors.not_allowed_here()
        else:
            response = self._verb(resource, namespace, address, query, request, context)
        if context.warnings and (warnings := warning_header(context.warnings)):
            response.headers["Warning"] = warnings
        return response

    def _verb(
        self,
        resource: APIResource,
        namespace: str,
        address: Address,
        query: Query,
        request: Request,
        context: Context,
    ) -> Response:
        wanted = negotiate(request.headers.get("accept", ""), has_tables=resource.has_tables)
        name = address.name
        if address.verb in ("list", "watch", "deletecollection"):
            within = namespace if address.namespace else None
            options = list_options(query, watching=address.verb == "watch")
            check_fields(resource, options.fields)
            if address.verb == "watch":
                return self._watch(resource, within, options, query, wanted)
            if address.verb == "list":
                included = query.get("includeObject", "")
                return Response(200, self._reader.listed(resource, within, options, wanted, included))
            return Response(200, self._delete_collection(resource, within, options, query, request, context))
        code = 200
        if address.verb in ("update", "patch"):
            creation = RequestAttributes(context.user, *address)._replace(verb="create")
            context.authorize_create = partial(require, self._authorizer, creation)
        if address.verb == "get":
            raw = self._reader.get(resource, namespace, name, revision(query))
        elif address.verb == "create":
            raw = self._create(resource, namespace, request, context)
            code = 201
        elif address.verb == "update":
            code, raw = self._update(resource, namespace, name, request, context)
        elif address.verb == "patch":
            content_type = request.headers.get("content-type", "")
            code, raw = self._patcher.patch(resource, namespace, name, request.body, content_type, context)
        else:
            raw = self._delete(resource, namespace, name, query, request, context)
        if wanted.transform:
            raw = transformed(
                raw, resource.printer, wanted, self._writer.now(), query.get("includeObject", "")
            )
        return Response(code, raw)

    def _create(self, resource: APIResource, namespace: str, request: Request, context: Context) -> bytes:
        obj = self._bodies.read(resource, request, context)
        answer = self._answers.get(resource.storage)
        if answer is not None:
            return encode(answer(obj, namespace, context))
        if resource.storage == BINDINGS:
            return self._subresources.bind_named(namespace, obj, context)
        return self._writer.create(resource, namespace, obj, context)

    def _update(
        self, resource: APIResource, namespace: str, name: str, request: Request, context: Context
    ) -> tuple[int, bytes]:
        obj = read_object(request, resource, context)
        is_there = self._writer.store.collection(resource.storage).get((namespace, name)) is not None
        if not is_there and resource.strategy.allows_create_on_update:
            obj["metadata"].setdefault("name", name)
            if obj["metadata"]["name"] != name:
                raise errors.bad_request("the name of the object does not match the name on the URL")
            drop_version(obj["metadata"])
            return 201, self._writer.create(resource, namespace, obj, context)
        return 200, self._writer.update(resource, namespace, name, lambda _: obj, context)

    def _delete(
        self,
        resource: APIResource,
        namespace: str,
        name: str,
        query: Query,
        request: Request,
        context: Context,
    ) -> bytes:
        options = _delete_options(query, request, context)
        if options.dry_run:
            context.options = write_options({**query, "dryRun": "All"})
        return self._deleter.delete(resource, namespace, name, options, context)

    def _delete_collection(
        self,
        resource: APIResource,
        namespace: str | None,
        options: ListOptions,
        query: Query,
        request: Request,
        context: Context,
    ) -> bytes:
        how = _delete_options(query, request, context)
        if how.dry_run:
            context.options = write_options({**query, "dryRun": "All"})
        found, metadata = self._reader.page(resource, namespace, options)
        for stored in found:
            if self._writer.store.collection(resource.storage).get(stored.key) is not None:
                self._deleter.delete(resource, *stored.key, how, context)
        return self._reader.encoded_list(resource, found, metadata)

    def _watch(
        self,
        resource: APIResource,
        namespace: str | None,
        options: ListOptions,
        query: Query,
        wanted: NegotiatedForm,
    ) -> Response:
        check_revision(self._writer.store.revision, options.revision)
        seconds = number(query, "timeoutSeconds")
        timeout = (
            float(seconds) if seconds and seconds > 0 else _MIN_WATCH_SECONDS * (1 + self._random.random())
        )
        included = query.get("includeObject", "")

        headers = iter((True,))

        def formed(raw: bytes) -> bytes:
            first = next(headers, False)
            return transformed(raw, resource.printer, wanted, self._writer.now(), included, headers=first)

        stream = Watch(
            self._writer.store,
            resource,
            namespace,
            options,
            partial(self._writer.shown, resource),
            formed if wanted.transform else None,
            self._clock,
            timeout_seconds=timeout,
            bookmarks=flag(query, "allowWatchBookmarks"),
            initial_events=flag(query, "sendInitialEvents") if "sendInitialEvents" in query else None,
        )
        return Response(200, stream)


def _delete_options(query: Query, request: Request, context: Context) -> DeleteOptions:
    content_type = request.headers.get("content-type", "")
    body = parse_body(request.body, content_type, context) if request.body else None
    return delete_options(query, body)


def _check_scope(resource: APIResource, address: Address) -> None:
    """Check that a namespace is given for namespaced resources, and only for them."""
    verb, name = address.verb, address.name
    if resource.namespaced and not address.namespace:
        if name:
            raise errors.unknown_path()
        if verb in ("create", "deletecollection"):
            raise errors.not_allowed_here()
    if not resource.namespaced and address.namespace and resource.plural != "namespaces":
        raise errors.unknown_path()
    if (verb in ("update", "patch") and not name) or (verb == "create" and name and not address.subresource):
        raise errors.not_allowed_here()
