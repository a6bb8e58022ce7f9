"""Custom resources: a CustomResourceDefinition's kinds are served from the moment it is stored."""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus
from typing import Any

from moorage.admission.attributes import Attributes, Reader
from moorage.admission.plugin import ANY, Call, Plugin, refusal
from moorage.api.conditions import condition_status
from moorage.api.manifests import Manifest
from moorage.apimachinery.errors import ApiError
from moorage_cluster.apiserver.deferred_jobs import DeferredJobs
from moorage_cluster.apiserver.extensions.definition import (
    CLEANUP_FINALIZER,
    accepted,
    is_terminating,
    terminating,
)
from moorage_cluster.apiserver.extensions.openapi import published_schemas
from moorage_cluster.apiserver.extensions.resources import resources_of, stored_resource_of
from moorage_cluster.apiserver.extensions.scale import scale_of, with_scale
from moorage_cluster.apiserver.openapi.definitions import Kind, PublishedSchema
from moorage_cluster.apiserver.resources import APIResource, Resources
from moorage_cluster.apiserver.rest.context import Context
from moorage_cluster.apiserver.rest.deletes import DeleteOptions, Deleter
from moorage_cluster.apiserver.rest.writes import Writer
from moorage_cluster.apiserver.store import Change, Collection, Stored

DEFINITIONS = "apiextensions.k8s.io/customresourcedefinitions"


class CustomResources:
    """Follows definitions, and adds and removes what they define."""

    def __init__(self, resources: Resources, writer: Writer, deleter: Deleter, work: DeferredJobs) -> None:
        self._resources = resources
        self._writer = writer
        self._deleter = deleter
        self._work = work
        self._served: dict[str, list[APIResource]] = {}
        self._deleted_through: dict[str, APIResource] = {}
        """By definition: a resource of its objects, also if no version is served."""
        self._versions: dict[str, tuple[Any, int]] = {}
        """The versions of each definition, and the revision since which it has had them."""
        self._ending: dict[str, str] = {}
        """Definitions that wait for the deletion of their objects, by storage name."""
        self.openapi: dict[Kind, PublishedSchema] = {}
        """The OpenAPI schemas of each custom kind that is served, and of its lists."""

    def load(self) -> None:
        """Serve the definitions that are stored already."""
        for stored in list(self._writer.store.collection(DEFINITIONS).items.values()):
            self._store_definition(stored.key[1], stored)

    def reindex(self) -> None:
        """Update the selectable fields of objects that were loaded from the journal."""
        for served in self._served.values():
            self._reindex(served)

    def on_change(self, collection: Collection, change: Change) -> None:
        """Handle a change of a definition, or the deletion of a definition's last object."""
        name = change.stored.key[1]
        if collection.name != DEFINITIONS:
            definition = self._ending.get(collection.name)
            if definition is not None and change.type == "DELETED":
                self._work.soon(lambda: self._finish_deletion(definition))
        elif change.type == "DELETED":
            self._forget(name)
            self._versions.pop(name, None)
        else:
            self._store_definition(name, change.stored)

    def _store_definition(self, name: str, stored: Stored) -> None:
        """Serve a definition's versions, during its deletion until its objects are deleted."""
        definition = stored.obj
        if not is_terminating(definition) or name not in self._served:
            self._serve(name, definition, stored.version)
        if is_terminating(definition):
            if (resource := self._deleted_through.get(name)) is not None:
                self._ending[resource.storage] = name
            self._work.soon(lambda: self._finish_deletion(name))

    def _serve(self, name: str, definition: Manifest, revision: int) -> None:
        versions = definition["spec"]["versions"]
        if name not in self._versions or self._versions[name][0] != versions:
            self._versions[name] = versions, revision
        since = self._versions[name][1]
        others = [one for one in self._resources if one not in self._served.get(name, ())]
        status = accepted(definition, others, self._writer.now())
        self._forget(name)
        # By the names that are accepted here: a client may have written those in its status.
        named = {**definition, "status": status}
        if condition_status(named, "NamesAccepted") == "True":
            self._served[name] = [_served(resource, definition, since) for resource in resources_of(named)]
            self._deleted_through[name] = next(iter(self._served[name]), None) or _served(
                stored_resource_of(named), definition, since
            )
            for resource in self._served[name]:
                self._resources.add(resource)
                self.openapi |= published_schemas(definition, resource.version)
            if since == revision:
                self._reindex(self._served[name])
        if status != definition.get("status"):
            self._work.soon(lambda: self._write_status(name))

    def _reindex(self, served: list[APIResource]) -> None:
        """Recompute the selectable fields from the objects as each version shows them now."""

        def fields_of(stored: Stored) -> dict[str, str]:
            found: dict[str, str] = {}
            for resource in served:
                shown = resource.strategy.selectable(self._writer.opened(resource, stored))
                found |= {name: shown[name] for name in resource.strategy.selectable_names()}
            return found

        if served:
            self._writer.store.collection(served[0].storage).reindex(fields_of)

    def _write_status(self, name: str) -> None:
        resource = self._resources.of_kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
        stored = self._writer.store.collection(DEFINITIONS).get(("", name))
        if resource is None or stored is None:
            return
        old, definition = stored.decoded(), stored.decoded()
        others = [one for one in self._resources if one not in self._served.get(name, ())]
        definition["status"] = accepted(definition, others, self._writer.now())
        self._writer.replace(resource, stored, old, definition, Context())

    def _forget(self, name: str) -> None:
        for resource in self._served.pop(name, ()):
            self._resources.remove(resource)
            for kind in (resource.kind, resource.list_kind):
                self.openapi.pop((resource.group, resource.version, kind), None)
        if (instances := self._deleted_through.pop(name, None)) is not None:
            self._ending.pop(instances.storage, None)

    def _finish_deletion(self, name: str) -> None:
        """Delete a definition's objects, and the definition when none is left."""
        stored = self._writer.store.collection(DEFINITIONS).get(("", name))
        definition_resource = self._resources.of_kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
        if stored is None or definition_resource is None or not is_terminating(stored.obj):
            return
        if (resource := self._deleted_through.get(name)) is not None:
            collection = self._writer.store.collection(resource.storage)
            for custom in list(collection.items.values()):
                if not custom.is_being_deleted:
                    try:
                        self._deleter.delete(resource, *custom.key, DeleteOptions(), Context())
                    except ApiError as error:
                        if error.code >= HTTPStatus.INTERNAL_SERVER_ERROR:
                            raise  # The job is run again.
            if collection.items:
                self._write_terminating_status(definition_resource, stored)
                return
        old, definition = stored.decoded(), stored.decoded()
        meta = definition["metadata"]
        meta["finalizers"] = [one for one in meta.get("finalizers") or () if one != CLEANUP_FINALIZER]
        self._writer.replace(definition_resource, stored, old, definition, Context())

    def _write_terminating_status(self, resource: APIResource, stored: Stored) -> None:
        """Set the definition's Terminating condition to waiting for its objects."""
        old, definition = stored.decoded(), stored.decoded()
        definition["status"] = terminating(definition, self._writer.now())
        self._writer.replace(resource, stored, old, definition, Context())


def _admit_creation(attributes: Attributes, reader: Reader) -> None:
    """Reject new objects of a kind that is being deleted."""
    resource = attributes.resource
    if not resource.is_custom:
        return
    definition = reader.find(DEFINITIONS, "", f"{resource.plural}.{resource.group}")
    if definition is not None and is_terminating(definition):
        raise refusal(attributes, "create not allowed while custom resource definition is terminating")


TERMINATING = Plugin("CustomResourceDefinitionTerminating", _admit_creation, (Call("CREATE", ANY),))


class _CustomScaling:
    """Scales objects by the paths in their definition."""

    def __init__(self, definition: Manifest) -> None:
        self._definition = definition

    def scale_of(self, obj: Manifest) -> Manifest:
        """An object's Scale."""
        return scale_of(obj, self._definition)

    def with_scale(self, obj: Manifest, scale: Manifest) -> Manifest:
        """An object with the replicas of a Scale."""
        return with_scale(obj, scale, self._definition)


def _served(resource: APIResource, definition: Manifest, since: int) -> APIResource:
    return replace(resource, scaling=_CustomScaling(definition), is_custom=True, converted_until=since)
