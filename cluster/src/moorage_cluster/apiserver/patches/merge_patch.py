"""JSON merge patches (RFC 7386): objects are merged, all else is replaced, null removes."""

from __future__ import annotations

from typing import Any

from moorage.api.manifests import without_nulls
from moorage.apimachinery import errors
from moorage.apimachinery.json_values import MAP_TYPE, json_type
from moorage_cluster.apiserver.patches.depth import rejects_deep_nesting


@rejects_deep_nesting
def apply_merge_patch(document: Any, patch: Any) -> Any:
    """The document merged with a patch, which must be an object; the document itself stays as it is."""
    if patch is None:
        raise errors.bad_request("Invalid JSON Patch")
    if not isinstance(patch, dict):
        problem = f"json: cannot unmarshal {json_type(patch)} into Go value of type {MAP_TYPE}"
        raise errors.bad_request(f"error decoding patch: {problem}")
    return _merged(document, patch)


def _merged(value: Any, patch: Any) -> Any:
    if not isinstance(value, dict):
        # Nothing to merge with: nulls are dropped, except as items of lists.
        return without_nulls(patch)
    if not isinstance(patch, dict):
        return patch
    merged = value.copy()
    for key, change in patch.items():
        if change is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), change)
    return merged
