"""Create and update: the path every write takes from a decoded object to the store.

Nothing here awaits, so what was read is still current when the write happens: there are no lost updates and
no retries.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from random import Random
from typing import Final

import msgspec

from moorage.admission.attributes import Attributes, Operation
from moorage.admission.chain import Chain
from moorage.api.manifests import Manifest, timestamp
from moorage.apimachinery import errors
from moorage.apimachinery.fields import FieldError
from moorage.apimachinery.schema.dropped_fields import keep_dropped_fields
from moorage.apimachinery.validation.metadata import (
    NOT_IN_NEW_OBJECTS,
    validate_metadata,
    validate_metadata_update,
)
from moorage_cluster.apiserver.patches.apply import NOTHING, FieldSet, track_update
from moorage_cluster.apiserver.resources import APIResource
from moorage_cluster.apiserver.rest.context import Context
from moorage_cluster.apiserver.rest.identity import drop_version_of_new, keep_identity, place_new
from moorage_cluster.apiserver.store import Collection, Store, Stored, encode

_NAME_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH: Final = 5
_GENERATED_BASE_LENGTH: Final = 63 - _SUFFIX_LENGTH
_GENERATE_ATTEMPTS: Final = 8

_encode_sorted: Final = msgspec.json.Encoder(order="sorted").encode
_UUID_FIXED_BITS: Final = 0xF << 76 | 0b11 << 62
_UUID_VERSION_4: Final = 4 << 76 | 0b10 << 62

Edit = Callable[[Manifest], Manifest]
"""Changes a private copy of the stored object to the wanted one."""


class Writer:
    """Creates and updates objects of any resource."""

    def __init__(self, store: Store, chain: Chain, now: Callable[[], datetime], random: Random) -> None:
        self.store = store
        self._chain = chain
        self.now = now
        self._random = random

    # -- reads for writes

    def stored(self, resource: APIResource, namespace: str, name: str) -> Stored:
        """A stored object, or ApiError (404)."""
        stored = self.store.collection(resource.storage).get((namespace, name))
        if stored is None:
            raise errors.not_found(resource.group, resource.plural, name)
        return stored

    def opened(self, resource: APIResource, stored: Stored) -> Manifest:
        """A private copy of a stored object in the resource's own form."""
        obj = stored.decoded()
        if stored.api_version == resource.api_version and stored.version > resource.converted_until:
            return obj
        if resource.conversion is not None:
            return resource.conversion.from_storage(obj)
        obj["apiVersion"] = resource.api_version
        return obj

    # -- create

    def create(
        self,
        resource: APIResource,
        namespace: str,
        obj: Manifest,
        context: Context,
        managed_fields: list[Manifest] | None = None,
    ) -> bytes:
        """Store a new object; returns its encoded form."""
        strategy = resource.strategy
        collection = self.store.collection(resource.storage)
        strategy.default(obj)
        self._stamp(resource, collection, namespace, obj)
        name = obj["metadata"]["name"]
        self.admit("CREATE", resource, "", namespace, name, obj, None, context)
        strategy.prepare_create(obj)
        problems = validate_metadata(obj["metadata"], name_problems=strategy.name_problems)
        problems += strategy.validate(obj)
        self.refuse(resource, obj, problems)
        if context.authorize_create is not None:
            context.authorize_create()
        context.warnings.extend(strategy.warnings(obj, None))
        if not context.options.dry_run:  # An object that is not stored needs no check of its version.
            drop_version_of_new(obj["metadata"])
        if collection.get((namespace, name)) is not None:
            raise errors.already_exists(resource.group, resource.plural, name)
        if managed_fields:
            obj["metadata"]["managedFields"] = managed_fields
        return self.write(resource, obj, context)

    def replace_unchecked(self, resource: APIResource, namespace: str, obj: Manifest) -> None:
        """Store an object of the server itself, which clients could not write, replacing an earlier one."""
        context, collection = Context(), self.store.collection(resource.storage)
        if (stored := collection.get((namespace, obj["metadata"]["name"]))) is not None:
            self.remove(resource, stored, context)
        self._stamp(resource, collection, namespace, obj)
        resource.strategy.prepare_create(obj)
        self.write(resource, obj, context)

    def _stamp(self, resource: APIResource, collection: Collection, namespace: str, obj: Manifest) -> None:
        """Set the metadata of a new object: name, namespace, uid, creation time."""
        meta: Manifest = obj["metadata"]
        place_new(resource, namespace, meta)
        for key in NOT_IN_NEW_OBJECTS:
            meta.pop(key, None)
        if not meta.get("name"):
            if not meta.get("generateName"):
                raise errors.invalid(
                    resource.group,
                    resource.kind,
                    "",
                    validate_metadata(meta, name_problems=resource.strategy.name_problems),
                )
            meta["name"] = self._generated_name(collection, namespace, meta["generateName"])
        meta["uid"] = _random_uid(self._random)
        meta["creationTimestamp"] = timestamp(self.now())

    def _generated_name(self, collection: Collection, namespace: str, base: str) -> str:
        name = ""
        for _ in range(_GENERATE_ATTEMPTS):
            suffix = "".join(self._random.choices(_NAME_ALPHABET, k=_SUFFIX_LENGTH))
            name = base[:_GENERATED_BASE_LENGTH] + suffix
            if collection.get((namespace, name)) is None:
                break
        return name

    # -- update

    def update(
        self,
        resource: APIResource,
        namespace: str,
        name: str,
        edit: Edit,
        context: Context,
        subresource: str = "",
        tracked: bool = False,
        is_patch: bool = False,
    ) -> bytes:
        """Replace an object by the result of `edit`; returns its new encoded form.

        `tracked`: `edit` has updated the managed fields itself; `is_patch`: it applies a patch.
        """
        stored = self.stored(resource, namespace, name)
        old = self.opened(resource, stored)
        obj = edit(self.opened(resource, stored))
        keep_identity(resource, namespace, name, obj, old, is_patch=is_patch)
        if self.store.is_durable:  # An earlier server may have had other feature gates.
            keep_dropped_fields(resource.schema, obj, old)
        strategy = resource.strategy_for(subresource)
        strategy.default(obj)
        self.admit("UPDATE", resource, subresource, namespace, name, obj, old, context)
        meta, old_meta = obj["metadata"], old["metadata"]
        if subresource == "status":
            strategy.prepare_status(obj, old)
            problems = strategy.validate_status(obj, old)
        else:
            strategy.prepare_update(obj, old)
            problems = strategy.validate_update(obj, old)
            context.warnings.extend(strategy.warnings(obj, old))
        self.refuse(resource, obj, validate_metadata_update(meta, old_meta) + problems)
        if not tracked:
            self._track(resource, old, obj, subresource, context)
        return self.replace(resource, stored, old, obj, context)

    def replace(
        self, resource: APIResource, stored: Stored, old: Manifest, obj: Manifest, context: Context
    ) -> bytes:
        """Write a validated object in place of `old`, unless it is unchanged."""
        meta = obj["metadata"]
        meta["resourceVersion"] = old["metadata"]["resourceVersion"]
        is_same = obj == old or _differ_in_times_only(obj, old)
        if is_same and stored.version > resource.converted_until:
            return self.shown(resource, stored)
        if meta.get("deletionTimestamp") and not finalizers_of(obj) and not _waits(obj):
            return self.remove(resource, stored, context)
        return self.write(resource, obj, context)

    def _track(
        self, resource: APIResource, old: Manifest, obj: Manifest, subresource: str, context: Context
    ) -> None:
        if not (old["metadata"].get("managedFields") or "managedFields" in obj["metadata"]):
            return
        track_update(
            old,
            obj,
            resource.schema.shape,
            context.manager or "unknown",
            resource.api_version,
            subresource,
            timestamp(self.now()),
            unowned(resource, subresource),
        )

    # -- common to all writes

    def admit(
        self,
        operation: Operation,
        resource: APIResource,
        subresource: str,
        namespace: str,
        name: str,
        obj: Manifest,
        old: Manifest | None,
        context: Context,
    ) -> None:
        """Run the admission plugins, which may change or reject a write."""
        attributes = Attributes(
            operation, resource, subresource, namespace, name, obj, old, context.user,
            context.options.dry_run, context.warnings,
        )  # fmt: skip
        self._chain.admit(attributes, self.store)

    def refuse(self, resource: APIResource, obj: Manifest, problems: list[FieldError]) -> None:
        """ApiError (422) if there are problems."""
        if problems:
            raise errors.invalid(resource.group, resource.kind, obj["metadata"].get("name", ""), problems)

    def write(self, resource: APIResource, obj: Manifest, context: Context) -> bytes:
        """Store a validated object, unless this is a dry run."""
        if context.options.dry_run:
            return encode(obj)
        collection = self.store.collection(resource.storage)
        kept = obj if resource.conversion is None else resource.conversion.to_storage(obj)
        stored = self.store.put(collection, kept, resource.strategy.selectable(kept))
        if kept is obj:
            return stored.raw
        if resource.is_custom:  # Fields that are unknown to its storage version are lost.
            return self.shown(resource, stored)
        obj["metadata"]["resourceVersion"] = kept["metadata"]["resourceVersion"]
        return encode(obj)

    def remove(self, resource: APIResource, stored: Stored, context: Context) -> bytes:
        """Delete an object from the store, unless this is a dry run; returns its last form."""
        if context.options.dry_run:
            return self.shown(resource, stored)
        last = None
        if resource.conversion is not None and stored.version <= resource.converted_until:
            last = resource.conversion.to_storage(self.opened(resource, stored))
        collection = self.store.collection(resource.storage)
        return self.shown(resource, self.store.delete(collection, stored.key, last))

    def shown(self, resource: APIResource, stored: Stored) -> bytes:
        """A stored object as clients of a resource see it."""
        if stored.api_version == resource.api_version and stored.version > resource.converted_until:
            return stored.raw
        return encode(self.opened(resource, stored))


_STATUS: Final = FieldSet.of("status")
_ALL_BUT_STATUS: Final = FieldSet.of("spec")
_PARTS_OF_STATUS: Final = ("status", "approval")
"""The subresources that write a status."""


def unowned(resource: APIResource, subresource: str) -> FieldSet:
    """The fields that a write does not affect, so that it cannot own them."""
    if not resource.strategy.has_status:
        return NOTHING
    return _ALL_BUT_STATUS if subresource in _PARTS_OF_STATUS else _STATUS


def _random_uid(random: Random) -> str:
    """A UUID of version 4, generated three times as fast as by `uuid`."""
    digits = f"{random.getrandbits(128) & ~_UUID_FIXED_BITS | _UUID_VERSION_4:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def finalizers_of(obj: Manifest) -> list[str]:
    """The finalizers of an object; namespaces have more of them in their spec."""
    finalizers: list[str] = obj["metadata"].get("finalizers") or []
    if not finalizers and obj["kind"] == "Namespace":
        finalizers = (obj.get("spec") or {}).get("finalizers") or []
    return finalizers


def _differ_in_times_only(obj: Manifest, old: Manifest) -> bool:
    """Whether two objects differ only in the times of managed fields: defaulting has undone a change."""
    fields, before = obj["metadata"].get("managedFields"), old["metadata"].get("managedFields")
    if not fields or not before or len(fields) != len(before):
        return False
    untimed, untimed_before = (
        {_encode_sorted({**each, "time": ""}) for each in entries} for entries in (fields, before)
    )
    return untimed <= untimed_before and _untracked(obj) == _untracked(old)


def _untracked(obj: Manifest) -> Manifest:
    return {**obj, "metadata": {**obj["metadata"], "managedFields": None}}


def _waits(obj: Manifest) -> bool:
    """Whether an object being deleted still has its grace period."""
    return bool(obj["metadata"].get("deletionGracePeriodSeconds"))
