"""Merging a configuration into an object, and removing fields."""

from __future__ import annotations

from typing import Any, Final

from moorage.apimachinery.schema.shape import Shape
from moorage_cluster.apiserver.patches.apply.elements import item_element
from moorage_cluster.apiserver.patches.apply.fieldset import FieldSet
from moorage_cluster.apiserver.patches.apply.shape_access import (
    field_shape,
    is_item_list,
    is_object,
    item_shape,
    list_of,
    object_of,
)

_AMBIGUOUS: Final = None
"""Marks live items with duplicate keys: nothing is merged with them."""


def merged(live: Any, applied: Any, shape: Shape) -> Any:
    """The live value with all that is applied; neither is changed, and the result shares parts with both."""
    if shape.atomic:
        return applied
    if is_object(applied, shape):
        before, config = object_of(live), object_of(applied)
        if not before and not config:
            return applied
        result = before.copy()
        for name, value in config.items():
            field = field_shape(shape, name)
            result[name] = merged(before[name], value, field) if name in before else value
        return result
    if is_item_list(shape):
        before_items, items = list_of(live), list_of(applied)
        return _merged_items(before_items, items, shape) if before_items or items else applied
    return applied


def _merged_items(live: list[Any], applied: list[Any], shape: Shape) -> list[Any]:
    """All items: the applied ones in their order, and those that only the live list has where they were."""
    live_elements = [item_element(item, shape) for item in live]
    by_element: dict[str, Any] = {}
    for element, item in zip(live_elements, live, strict=True):
        by_element[element] = _AMBIGUOUS if element in by_element else item
    elements = [item_element(item, shape) for item in applied]
    wanted = set(elements)
    shared = iter([element for element in elements if element in by_element])
    next_shared = next(shared, None)
    result = []
    place = 0
    for element, item in zip(elements, applied, strict=True):
        while place < len(live) and live_elements[place] != next_shared:
            if live_elements[place] not in wanted:
                result.append(live[place])
            place += 1
        before = by_element.get(element)
        result.append(item if before is None else merged(before, item, item_shape(shape)))
        if element == next_shared:
            place += 1
            next_shared = next(shared, None)
    rest = zip(live_elements[place:], live[place:], strict=True)
    return result + [item for element, item in rest if element not in wanted]


def without(value: Any, gone: FieldSet, shape: Shape) -> Any:
    """The value without some fields."""
    if shape.atomic:
        return value
    if is_object(value, shape):
        result = {}
        for name, item in object_of(value).items():
            element = f"f:{name}"
            if element in gone.members:
                continue
            if below := gone.below(element):
                item = without(item, below, field_shape(shape, name))
            result[name] = item
        return result
    if is_item_list(shape):
        elements = [item_element(item, shape) for item in list_of(value)]
        return [
            without(item, gone.below(element), item_shape(shape)) if gone.below(element) else item
            for element, item in zip(elements, list_of(value), strict=True)
            if element not in gone.members
        ]
    return value
