"""Strategic merge patches: merge patches in which a kind's shape decides which lists merge and by what key.

Patches contain directives among their fields: `$patch`, `$retainKeys`, `$setElementOrder/FIELD` and
`$deleteFromPrimitiveList/FIELD`. Objects are merged here, lists in `strategic_lists`. Neither the object nor
the patch is changed; the result shares parts with both.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

from moorage.api.manifests import Manifest
from moorage.api.text import quoted
from moorage.apimachinery import errors
from moorage.apimachinery.errors import ApiError
from moorage.apimachinery.json_values import LIST_TYPE, MAP_TYPE, json_type
from moorage.apimachinery.schema.shape import ANYTHING, Form, Shape
from moorage_cluster.apiserver.patches import strategic_lists as lists
from moorage_cluster.apiserver.patches.depth import rejects_deep_nesting
from moorage_cluster.apiserver.patches.strategic_lists import DIRECTIVE, BadPatchError, unexpected_type

RETAIN_KEYS: Final = "$retainKeys"
ELEMENT_ORDER: Final = "$setElementOrder"
DELETE_FROM_LIST: Final = "$deleteFromPrimitiveList"

_GO_KINDS: Final = {Form.MAP: "map", Form.LIST: "slice", Form.OBJECT: "struct", Form.SCALAR: "string"}
_BAD_REQUESTS: Final = frozenset(
    {
        "invalid patch format of primitive list",
        "invalid patch format of retainKeys",
        "invalid patch format of setElementOrder list",
    }
)


@rejects_deep_nesting
def apply_strategic_patch(original: Manifest, patch: Any, shape: Shape) -> Manifest:
    """The object merged with a patch, guided by the shape of the object's kind."""
    if shape.form is Form.ANY:
        raise errors.bad_request("strategic merge patch format is not supported")
    if not isinstance(patch, dict):
        raise errors.bad_request(
            f"json: cannot unmarshal {json_type(patch)} into Go value of type {MAP_TYPE}"
        )
    try:
        return merged_object(original, patch, shape)
    except BadPatchError as problem:
        raise _refusal(str(problem)) from None


def _refusal(problem: str) -> ApiError:
    if problem in _BAD_REQUESTS:
        return errors.bad_request(problem)
    if problem == lists.LIST_OF_LISTS:
        message = "the server rejected our request due to an error in our request"
        return ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", message)
    return ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, "", problem)


def merged_object(original: Manifest, patch: Manifest, shape: Shape) -> Manifest:
    """An object merged with a patch of it."""
    if DIRECTIVE in patch:
        return _directed(patch)
    merged = original.copy()
    patch = _retain_keys(merged, patch)
    patch = _order_lists(merged, patch, shape)
    for key, change in patch.items():
        deletes = key.startswith(DELETE_FROM_LIST)
        name = _field_of(key, "primitive list") if deletes else key
        if change is None:
            merged.pop(name, None)
        elif deletes:
            if isinstance(change, list) and isinstance(merged.get(name), list):
                field = _field_shape(shape, name)
                merged[name] = lists.merged_list(merged[name], change, field, merged_object, deletes=True)
        else:
            _merge_field(merged, name, change, shape)
    return merged


def _merge_field(merged: Manifest, name: str, change: Any, shape: Shape) -> None:
    before = merged.get(name)
    if isinstance(change, dict) and isinstance(before, dict):
        merged[name] = merged_object(before, change, _field_shape(shape, name))
    elif isinstance(change, list) and isinstance(before, list):
        field = _field_shape(shape, name)
        merged[name] = lists.merged_list(before, change, field, merged_object)
    elif isinstance(change, dict) and DIRECTIVE in change:
        merged.pop(name, None)
    else:
        merged[name] = _cleaned(change)


def _directed(patch: Manifest) -> Manifest:
    directive = patch[DIRECTIVE]
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != DIRECTIVE}
    if directive == "delete":
        return {}
    raise lists.unknown_directive(directive, patch)


def _retain_keys(merged: Manifest, patch: Manifest) -> Manifest:
    """Drop the fields that `$retainKeys` does not list; returns the patch without it."""
    if RETAIN_KEYS not in patch:
        return patch
    retained = patch[RETAIN_KEYS]
    patch = {key: value for key, value in patch.items() if key != RETAIN_KEYS}
    changed = (
        key
        for key, value in patch.items()
        if value is not None and not key.startswith((DELETE_FROM_LIST, ELEMENT_ORDER))
    )
    names = {name for name in retained if isinstance(name, str)} if isinstance(retained, list) else set()
    if not isinstance(retained, list) or not all(key in names for key in changed):
        raise BadPatchError("invalid patch format of retainKeys")
    for key in merged.keys() - names:
        del merged[key]
    return patch


def _order_lists(merged: Manifest, patch: Manifest, shape: Shape) -> Manifest:
    """Merge the lists with a `$setElementOrder` in the patch; returns the patch without them."""
    if not any(key.startswith(ELEMENT_ORDER) for key in patch):
        return patch
    rest = patch.copy()
    for key, order in patch.items():
        if not key.startswith(ELEMENT_ORDER):
            continue
        del rest[key]
        if not isinstance(order, list):
            raise unexpected_type(LIST_TYPE, order)
        name = _field_of(key, "setElementOrder list")
        for side in (merged, rest):
            if name in side and not isinstance(side[name], list):
                raise unexpected_type(LIST_TYPE, side[name])
        field = _field_shape(shape, name)
        if field.form not in (Form.LIST, Form.ANY):
            raise BadPatchError(f"expected slice or array type, but got: {_GO_KINDS[shape.form]}")
        before: list[Any] | None = merged.get(name)
        change: list[Any] | None = rest.pop(name, None)
        lists.check_order(change or [], order, field.merge_key)
        if before is None and change is None:
            continue
        if change is None:
            both = before or []
        elif before is None:
            both = _without_directives(change)
        else:
            both = lists.merged_list(before, change, field, merged_object)
        lists.common_type(before or [], change or [])
        merged[name] = lists.ordered(both, order, before or [], field.merge_key)
    return rest


def _field_of(key: str, what: str) -> str:
    """The field that a directive such as `$setElementOrder/FIELD` is about."""
    directive, slash, name = key.partition("/")
    if not slash or directive not in (ELEMENT_ORDER, DELETE_FROM_LIST):
        raise BadPatchError(f"invalid patch format of {what}")
    return name


def _field_shape(shape: Shape, name: str) -> Shape:
    if shape.form is Form.ANY:
        return ANYTHING
    if shape.form is not Form.OBJECT:
        kind = _GO_KINDS[shape.form]
        raise BadPatchError(f"merging an object in json but data type is not struct, instead is: {kind}")
    field = shape.fields.get(name) or shape.items
    if field is None:
        raise BadPatchError(f"unable to find api field in struct for the json field {quoted(name)}")
    return field


def _cleaned(value: Any) -> Any:
    """A value with nothing to merge with: nulls and objects with directives in it are dropped."""
    if isinstance(value, dict):
        return {
            key: _cleaned(item) for key, item in value.items() if item is not None and not _is_directed(item)
        }
    if isinstance(value, list):
        return [_cleaned(item) for item in value if not _is_directed(item)]
    return value


def _without_directives(items: list[Any]) -> list[Any]:
    return [_cleaned(item) for item in items if not _is_directed(item)]


def _is_directed(value: Any) -> bool:
    return isinstance(value, dict) and DIRECTIVE in value
