"""Patch: converts a patch of any of the four types into the edit of an update."""

from __future__ import annotations

from typing import Any, Final

from moorage.api.manifests import Manifest, timestamp
from moorage.apimachinery import errors, fields
from moorage.apimachinery.json_values import go_json, go_text
from moorage.apimachinery.schema.shape import Shape
from moorage.apimachinery.schema.strictness import json_patch_problems, json_problems
from moorage_cluster.apiserver.options import WriteOptions
from moorage_cluster.apiserver.patches.apply import apply, check_declared
from moorage_cluster.apiserver.patches.json_patch import apply_json_patch
from moorage_cluster.apiserver.patches.merge_patch import apply_merge_patch
from moorage_cluster.apiserver.patches.strategic import apply_strategic_patch
from moorage_cluster.apiserver.resources import APIResource
from moorage_cluster.apiserver.rest.bodies import decode_object, media_type, parse_applied, parse_json
from moorage_cluster.apiserver.rest.context import Context
from moorage_cluster.apiserver.rest.identity import drop_version
from moorage_cluster.apiserver.rest.writes import Writer, unowned

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
_UNCHECKED: Final = Context(options=WriteOptions(field_validation="Ignore"))
"""Decoding options of an applied object: unknown fields were rejected before."""
PATCH_TYPES: Final = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)


class Patcher:
    """Patches objects of any resource."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def patch(
        self,
        resource: APIResource,
        namespace: str,
        name: str,
        body: bytes,
        content_type: str,
        context: Context,
        subresource: str = "",
    ) -> tuple[int, bytes]:
        """Patch an object; returns the status code and the object's new encoded form."""
        media = media_type(content_type)
        if media == APPLY_PATCH:
            return self._apply(resource, namespace, name, body, context, subresource)
        patch = self.parse(media, body, resource)
        validation = context.options.field_validation
        problems = (
            json_patch_problems(body, patch, validation)
            if media == JSON_PATCH
            else json_problems(body, patch, validation, is_typed=False)
        )

        def edit(current: Manifest) -> Manifest:
            value = patched(current, patch, media, resource.schema.shape)

            def refusal(why: str) -> errors.ApiError:
                return _invalid_patch(go_text(patch) if media == STRATEGIC_PATCH else go_json(value), why)

            return decode_object(value, resource, context, problems, refusal)

        update = self._writer.update
        return 200, update(resource, namespace, name, edit, context, subresource, is_patch=True)

    def parse(self, media: str, body: bytes, resource: APIResource) -> Any:
        """A parsed patch other than apply; ApiError (415) for a type that the kind does not support."""
        known = [one for one in PATCH_TYPES if one != STRATEGIC_PATCH or not resource.is_custom]
        if media not in known:
            raise errors.unsupported_media_type(known)
        return parse_json(body)

    def _apply(
        self,
        resource: APIResource,
        namespace: str,
        name: str,
        body: bytes,
        context: Context,
        subresource: str,
    ) -> tuple[int, bytes]:
        if not context.options.field_manager:
            raise errors.bad_request(
                'PatchOptions.meta.k8s.io "" is invalid: '
                "fieldManager: Required value: is required for apply patch"
            )
        value = parse_applied(body, context)
        check_declared(value, resource.schema.shape)
        applied = decode_object(value, resource, _UNCHECKED)
        meta = applied["metadata"]
        if isinstance(value, dict) and not value.get("kind"):
            raise errors.bad_request("Object 'Kind' is missing in the applied configuration")
        if meta.get("name", name) != name:
            raise errors.bad_request(
                f"the name of the object ({meta['name']}) does not match the name on the URL ({name})"
            )
        meta["name"] = name
        if resource.namespaced:
            meta.setdefault("namespace", namespace)
        time = timestamp(self._writer.now())
        shape, options = resource.schema.shape, context.options

        def merged(live: Manifest | None) -> Manifest:
            manager, force, version = options.field_manager, options.force, resource.api_version
            ignored = unowned(resource, subresource)
            return apply(live, applied, shape, manager, force, version, subresource, time, ignored)

        if self._writer.store.collection(resource.storage).get((namespace, name)) is None:
            if subresource:
                raise errors.not_found(resource.group, resource.plural, name)
            fresh = merged(None)
            drop_version(fresh["metadata"])
            managed = fresh["metadata"].pop("managedFields", None)
            return 201, self._writer.create(resource, namespace, fresh, context, managed)

        update = self._writer.update
        return 200, update(
            resource, namespace, name, merged, context, subresource, tracked=True, is_patch=True
        )


def _invalid_patch(text: str, why: str) -> errors.ApiError:
    return errors.invalid("", "", "", [fields.invalid("patch", text, why)])


def patched(current: Manifest, patch: Any, media: str, shape: Shape) -> Any:
    """An object after a patch."""
    if media == JSON_PATCH:
        return apply_json_patch(current, patch)
    if media == MERGE_PATCH:
        return apply_merge_patch(current, patch)
    return apply_strategic_patch(current, patch, shape)
