"""Migration from `kubectl apply` to `kubectl apply --server-side`: the last-applied annotation.

It contains what kubectl applied last. When kubectl applies on the server, it takes over those fields without
a conflict, and the annotation is kept up to date, so that users can also go back.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from moorage.api.manifests import Manifest
from moorage.apimachinery.json_values import go_json
from moorage.apimachinery.schema.shape import Shape
from moorage_cluster.apiserver.patches.apply.elements import MalformedError
from moorage_cluster.apiserver.patches.apply.fieldset import NOTHING, FieldSet
from moorage_cluster.apiserver.patches.apply.ownership import compare, fields_of
from moorage_cluster.apiserver.patches.apply.shape_access import object_of
from moorage_cluster.apiserver.patches.apply.wellformed import check_applied

ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"
KUBECTL: Final = "kubectl"
"""kubectl's default field manager."""
MAX_ANNOTATION_BYTES: Final = 256 * 1024


def taken_over(live: Manifest, shape: Shape, api_version: str) -> FieldSet:
    """The fields with the values of the last client-side apply."""
    text = _annotations(live).get(ANNOTATION)
    if not isinstance(text, str):
        return NOTHING
    try:
        last = msgspec.json.decode(text)
        if not isinstance(last, dict) or last.get("apiVersion") != api_version:
            return NOTHING
        check_applied(last, shape)
        check_applied(live, shape)
        difference = compare(last, live, shape)
        return fields_of(last, shape) - difference.modified - difference.added - difference.removed
    except (msgspec.DecodeError, MalformedError):
        return NOTHING


def with_annotation(obj: Manifest, applied: Manifest) -> Manifest:
    """The object with its annotation, if it has one, set to what is applied now."""
    annotations = _annotations(obj)
    if not annotations.get(ANNOTATION):
        return obj
    config = applied
    if ANNOTATION in _annotations(applied):
        rest = {name: value for name, value in _annotations(applied).items() if name != ANNOTATION}
        config = {**applied, "metadata": {**applied["metadata"], "annotations": rest}}
    annotations = {**annotations, ANNOTATION: f"{go_json(config)}\n"}
    if sum(len(str(text).encode()) for pair in annotations.items() for text in pair) > MAX_ANNOTATION_BYTES:
        del annotations[ANNOTATION]
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def _annotations(obj: Manifest) -> dict[str, Any]:
    return object_of(object_of(obj.get("metadata")).get("annotations"))
