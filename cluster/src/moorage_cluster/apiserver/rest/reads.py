"""Get and list."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from moorage.api.manifests import Manifest
from moorage.api.text import quoted
from moorage.apimachinery import errors
from moorage_cluster.apiserver.negotiation import NegotiatedForm
from moorage_cluster.apiserver.options import ListOptions
from moorage_cluster.apiserver.resources import APIResource
from moorage_cluster.apiserver.rest.writes import Writer
from moorage_cluster.apiserver.selector_parsing import FieldSelector, matches_fields, matches_labels
from moorage_cluster.apiserver.store import Collection, Key, Stored, decode, encode
from moorage_cluster.apiserver.tables.base import Printer
from moorage_cluster.apiserver.tables.table import partial_metadata, partial_metadata_list, table

_METADATA_FIELDS = ("metadata.name", "metadata.namespace")
_NEWEST = -1
"""The version in a token for an inconsistent continuation of a list."""
_CONSISTENT_SECONDS = 300
"""Lifetime of a consistent list, in seconds: older versions are compacted in etcd."""
_INCONSISTENT = (
    "The provided continue parameter is too old to display a consistent list result. You can start a "
    "new list without the continue parameter, or use the continue token in this response to retrieve "
    "the remainder of the results. Continuing with the provided token results in an inconsistent list -"
    " objects that were created, modified, or deleted between the time the first chunk was returned and"
    " now may show up in the list."
)


class _Token(msgspec.Struct):
    """A continue token: the end of a page."""

    version: int
    namespace: str
    name: str
    begun: int = 0
    """When the first page was read, in Unix seconds."""


class ObjectReader:
    """Reads objects of any resource."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._store = writer.store

    def get(self, resource: APIResource, namespace: str, name: str, revision: int | None) -> bytes:
        """One object, encoded."""
        check_revision(self._store.revision, revision)
        return self._writer.shown(resource, self._writer.stored(resource, namespace, name))

    def listed(
        self,
        resource: APIResource,
        namespace: str | None,
        options: ListOptions,
        wanted: NegotiatedForm,
        include_object: str = "",
    ) -> bytes:
        """All matching objects, or a page of them, encoded."""
        found, metadata = self.page(resource, namespace, options)
        if wanted.transform == "Table":
            rows = (self._writer.opened(resource, stored) for stored in found)
            now, version = self._writer.now(), wanted.version
            return encode(table(resource.printer, rows, now, metadata, include_object, version=version))
        if wanted.transform == "PartialObjectMetadataList":
            rows = (self._writer.opened(resource, stored) for stored in found)
            return encode(partial_metadata_list(rows, metadata, wanted.version))
        return self.encoded_list(resource, found, metadata)

    def encoded_list(self, resource: APIResource, found: list[Stored], metadata: Manifest) -> bytes:
        """Stored objects as a list."""
        shown = self._writer.shown
        head = encode({"kind": resource.list_kind, "apiVersion": resource.api_version, "metadata": metadata})
        items = b",".join([shown(resource, stored) for stored in found])
        return b"".join((head[:-1], b',"items":[', items, b"]}"))

    def page(
        self, resource: APIResource, namespace: str | None, options: ListOptions
    ) -> tuple[list[Stored], Manifest]:
        """The matching stored objects, and the list's metadata."""
        collection = self._store.collection(resource.storage)
        after: Key = ("", "")
        version = self._store.revision
        begun = int(self._writer.now().timestamp())
        exact = options.match == "Exact" or (options.limit and options.revision and not options.match)
        if options.token:
            token = _read_token(options.token)
            after = (token.namespace, token.name)
            if token.version != _NEWEST:
                if begun - token.begun >= _CONSISTENT_SECONDS:
                    raise _inconsistent(after)
                version, begun = token.version, token.begun
        elif exact and options.revision is not None:
            version = options.revision
        else:
            check_revision(version, options.revision)
        items = _items_at(collection, version, self._store.revision, after if options.token else None)
        names = options.fields
        keys = _candidates(collection, items, namespace, names)
        found: list[Stored] = []
        metadata: dict[str, Any] = {"resourceVersion": str(version)}
        remaining = 0
        for key in keys:
            if key <= after and options.token:
                continue
            stored = items.get(key)
            if stored is None or not matches(stored, options):
                continue
            if options.limit and len(found) >= options.limit:
                remaining += 1
                if options.labels or options.fields:
                    break
                continue
            found.append(stored)
        if remaining:
            metadata["continue"] = _write_token(_Token(version, *found[-1].key, begun))
            if not (options.labels or options.fields):
                metadata["remainingItemCount"] = remaining
        return found, metadata


def matches(stored: Stored, options: ListOptions) -> bool:
    """Whether an object matches the list options."""
    if options.labels and not matches_labels(options.labels, stored.labels):
        return False
    return not options.fields or matches_fields(options.fields, stored.fields, *stored.key)


def _candidates(
    collection: Collection, items: dict[Key, Stored], namespace: str | None, fields: FieldSelector
) -> Iterable[Key]:
    """The candidate keys, in order."""
    name = next((term.value for term in fields if term.field == "metadata.name" and term.equals), None)
    if name is not None and namespace is not None:
        return [(namespace, name)]
    if items is not collection.items:
        return sorted(key for key in items if namespace is None or key[0] == namespace)
    if namespace is None:
        return collection.keys()
    return sorted(collection.within(namespace))


def _items_at(collection: Collection, version: int, current: int, after: Key | None) -> dict[Key, Stored]:
    """All objects at a revision; `after` is the end of the previous page."""
    if version > current:
        raise _too_large(version, current)
    items = collection.at(version)
    if items is not None:
        return items
    if after is None:
        raise errors.expired("The resourceVersion for the provided list is too old.")
    raise _inconsistent(after)


def _inconsistent(after: Key) -> errors.ApiError:
    return errors.expired(_INCONSISTENT, _write_token(_Token(_NEWEST, *after)))


def check_revision(current: int, wanted: int | None) -> None:
    """Check that the store has reached a requested revision; ApiError (504) if not."""
    if wanted is not None and wanted > current:
        raise _too_large(wanted, current)


def _too_large(wanted: int, current: int) -> errors.ApiError:
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    return errors.timeout(f"Too large resource version: {wanted}, current: {current}", causes, 1)


def check_fields(resource: APIResource, selector: FieldSelector) -> None:
    """Check that a kind supports the selected fields; ApiError (400) if not."""
    if not selector:
        return
    own = resource.strategy.selectable_names()
    is_cluster_wide = resource.is_custom and not resource.namespaced
    metadata = _METADATA_FIELDS[:1] if is_cluster_wide else _METADATA_FIELDS
    for term in selector:
        if term.field not in own and term.field not in metadata:
            raise errors.bad_request(_unknown_field(resource, term.field, has_own=bool(own)))


def _unknown_field(resource: APIResource, field: str, *, has_own: bool) -> str:
    """The error for an unsupported field; it differs for kinds with fields of their own."""
    if resource.kind == "Job" and not resource.is_custom:
        return f"field label {quoted(field)} not supported for Job"
    if resource.kind == "ResourceSlice" and not resource.is_custom:
        return f"field label not supported for {resource.api_version}, Kind={resource.kind}: {field}"
    if has_own or resource.is_custom:
        return f"field label not supported: {field}"
    known = ", ".join(map(quoted, _METADATA_FIELDS))
    return f"{quoted(field)} is not a known field selector: only {known}"


def transformed(
    raw: bytes,
    printer: Printer,
    wanted: NegotiatedForm,
    now: datetime,
    include_object: str = "",
    *,
    headers: bool = True,
) -> bytes:
    """One encoded object in the negotiated form."""
    if wanted.transform == "Table":
        obj = decode(raw)
        if obj.get("kind") == "Status":
            return raw
        metadata = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
        made = table(printer, [obj], now, metadata, include_object, headers=headers, version=wanted.version)
        return encode(made)
    if wanted.transform == "PartialObjectMetadata":
        return encode(partial_metadata(decode(raw), wanted.version))
    return raw


def _write_token(token: _Token) -> str:
    return base64.urlsafe_b64encode(encode(token)).decode().rstrip("=")


def _read_token(text: str) -> _Token:
    try:
        padded = text + "=" * (-len(text) % 4)
        return msgspec.json.decode(base64.urlsafe_b64decode(padded), type=_Token)
    except (ValueError, msgspec.MsgspecError):
        raise errors.bad_request("continue key is not valid: the token cannot be read") from None
