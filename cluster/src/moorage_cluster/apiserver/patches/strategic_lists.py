"""Lists in strategic merge patches: merged by key or by value, and put in order.

A merged list has the patch's items in the patch's order. An item that only the live list has goes before the
first item of the patch that came after it in the live list.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Final, TypeAlias

from moorage.api.manifests import Manifest
from moorage.apimachinery.json_values import MAP_TYPE, go_text, go_type, identity
from moorage.apimachinery.schema.shape import ANYTHING, Shape

DIRECTIVE: Final = "$patch"
LIST_OF_LISTS: Final = "lists of lists are not supported"

MergeObjects: TypeAlias = Callable[[Manifest, Manifest, Shape], Manifest]


class BadPatchError(Exception):
    """A patch that cannot be applied; its text is what users see."""


def unexpected_type(wanted: str, value: Any) -> BadPatchError:
    """A value of the wrong type."""
    return BadPatchError(f"expected a {wanted}, but received a {go_type(value)}")


def unknown_directive(directive: Any, patch: Manifest) -> BadPatchError:
    """A `$patch` with an unknown value."""
    text = directive if isinstance(directive, str) else f"%!s({go_type(directive)}={go_text(directive)})"
    return BadPatchError(f"unknown patch type: {text} in map: {go_text(patch)}")


def merged_list(
    original: list[Any], patch: list[Any], shape: Shape, merge_objects: MergeObjects, *, deletes: bool = False
) -> list[Any]:
    """A list merged with a patch of it, or without the patch's items if it `deletes` them."""
    if not shape.merges and not deletes:
        return patch
    if not original and not patch:
        return original
    if common_type(original, patch) is not dict:
        if deletes:
            gone = {identity(item) for item in patch}
            return [item for item in original if identity(item) not in gone]
        unique = {identity(item): item for item in (*original, *patch)}
        return ordered(list(unique.values()), patch, original, "")
    if not shape.merge_key:
        raise BadPatchError("cannot merge lists without merge key for struct")
    original, patch = _obeyed(original, patch, shape.merge_key)
    merged = _merged_objects(original, patch, shape, merge_objects)
    return ordered(merged, patch, original, shape.merge_key)


def common_type(*lists: list[Any]) -> type:
    """The one type that all items of some lists have."""
    types = {type(item) for items in lists for item in items}
    if list in types:
        raise BadPatchError(LIST_OF_LISTS)
    if not types:
        raise BadPatchError("no elements in any of the given slices")
    if len(types) > 1 or type(None) in types:
        raise BadPatchError(f"list element types are not identical: {go_text(list(lists))}")
    return types.pop()


def _obeyed(original: list[Any], patch: list[Any], key: str) -> tuple[list[Any], list[Any]]:
    """The list after the items of the patch that are directives, and the items that are not."""
    plain = []
    replaces = False
    gone = set()
    for item in patch:
        directive = item.get(DIRECTIVE)
        if DIRECTIVE not in item:
            plain.append(item)
        elif directive == "delete":
            gone.add(_key_of(item, key))
        elif directive == "replace":
            replaces = True
        elif directive == "merge":
            raise BadPatchError("merging lists cannot yet be specified in the patch")
        else:
            raise unknown_directive(directive, item)
    if gone:
        original = [kept for kept in original if identity(kept.get(key)) not in gone]
    return (plain, []) if replaces else (original, plain)


def _merged_objects(
    original: list[Any], patch: list[Any], shape: Shape, merge_objects: MergeObjects
) -> list[Any]:
    merged = original.copy()
    places: dict[Hashable, int] = {}
    for place, item in enumerate(merged):
        places.setdefault(identity(item.get(shape.merge_key)), place)
    for change in patch:
        key = _key_of(change, shape.merge_key)
        place = places.setdefault(key, len(merged))
        if place == len(merged):
            merged.append(change)
        else:
            merged[place] = merge_objects(merged[place], change, shape.items or ANYTHING)
    return merged


def check_order(patch: list[Any], order: list[Any], key: str) -> None:
    """Reject a patch with items in another order than its `$setElementOrder`."""
    if not patch or not order:
        return
    if key:
        for item in (*patch, *order):
            if not isinstance(item, dict):
                raise unexpected_type(MAP_TYPE, item)
    given = iter(order)
    for item in patch:
        if key and DIRECTIVE in item:
            continue
        wanted = _key_of(item, key)
        if not any(_key_of(other, key) == wanted for other in given):
            raise BadPatchError(
                f"The order in patch list:\n{go_text(patch)}\n"
                f" doesn't match $setElementOrder list:\n{go_text(order)}\n"
            )


def ordered(merged: list[Any], order: list[Any], live: list[Any], key: str) -> list[Any]:
    """A merged list in the order of the patch and, for what only the live list has, of the live list."""
    wanted = _places(order, key)
    before = _places(live, key)
    from_patch = [item for item in merged if _key_of(item, key) in wanted]
    live_only = [item for item in merged if _key_of(item, key) not in wanted]
    from_patch.sort(key=lambda item: wanted[_key_of(item, key)])
    live_only.sort(key=lambda item: before.get(_key_of(item, key), len(before)))
    result = []
    waiting = live_only[::-1]
    for item in from_patch:
        place = before.get(_key_of(item, key), -1)
        while waiting and before.get(_key_of(waiting[-1], key), place) < place:
            result.append(waiting.pop())
        result.append(item)
    return result + waiting[::-1]


def _places(items: Iterable[Any], key: str) -> dict[Hashable, int]:
    places: dict[Hashable, int] = {}
    for place, item in enumerate(items):
        places.setdefault(_key_of(item, key), place)
    return places


def _key_of(item: Any, key: str) -> Hashable:
    """What identifies an item: its merge key's value or, in a list without merge key, itself."""
    if not key:
        return identity(item)
    if not isinstance(item, dict):
        raise unexpected_type(MAP_TYPE, item)
    if key not in item:
        raise BadPatchError(f"map: {go_text(item)} does not contain declared merge key: {key}")
    return identity(item[key])
