"""The set of fields of an object, and the differences between two objects."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from moorage.apimachinery.json_values import same
from moorage.apimachinery.schema.shape import Shape
from moorage_cluster.apiserver.patches.apply.elements import item_element
from moorage_cluster.apiserver.patches.apply.fieldset import FieldSet
from moorage_cluster.apiserver.patches.apply.shape_access import (
    field_shape,
    is_declared,
    is_item_list,
    is_object,
    item_shape,
    list_of,
    object_of,
)

_MISSING: Final = object()


def fields_of(value: Any, shape: Shape) -> FieldSet:
    """The fields that are owned by applying this value: its leaves, its maps' keys and its lists' items.

    Fields of the kind itself that only contain others are left out.
    """
    result = FieldSet()
    if is_object(value, shape):
        if not shape.atomic:
            _add_object_fields(result, object_of(value), shape)
    elif is_item_list(shape):
        _add_items(result, list_of(value), shape)
    return result


def _add_object_fields(result: FieldSet, obj: dict[str, Any], shape: Shape) -> None:
    for name, value in obj.items():
        element = f"f:{name}"
        field = field_shape(shape, name)
        if below := fields_of(value, field):
            result.children[element] = below
        if value is None or value == {} or not is_declared(shape, name) or _is_whole(value, field):
            result.members.add(element)


def _add_items(result: FieldSet, items: list[Any], shape: Shape) -> None:
    elements = [item_element(item, shape) for item in items]
    for element, item in zip(elements, items, strict=True):
        # Items with the same key are owned as one.
        if element in result.members:
            result.children.pop(element, None)
        elif below := fields_of(item, item_shape(shape)):
            result.children[element] = below
        result.members.add(element)


def _is_whole(value: Any, shape: Shape) -> bool:
    """Whether a value is atomic."""
    return shape.atomic or not (is_object(value, shape) or is_item_list(shape))


def with_parents(fields: FieldSet, shape: Shape) -> FieldSet:
    """The set with the kind's own fields that only contain others, which `fields_of` leaves out."""
    result = FieldSet()
    result.members = fields.members.copy()
    for element, below in fields.children.items():
        name = element[2:]
        if element[0] == "f":
            if is_declared(shape, name):
                result.members.add(element)
            result.children[element] = with_parents(below, field_shape(shape, name))
        else:
            result.children[element] = with_parents(below, item_shape(shape))
    return result


class FieldDifference(NamedTuple):
    """The differences of a new object."""

    added: FieldSet
    modified: FieldSet
    removed: FieldSet

    def outside(self, ignored: FieldSet) -> FieldDifference:
        """The difference without what is ignored."""
        if not ignored:
            return self
        return FieldDifference(*(fields.outside(ignored) for fields in self))


def compare(old: Any, new: Any, shape: Shape) -> FieldDifference:
    """How a new value differs from an old one."""
    difference = FieldDifference(FieldSet(), FieldSet(), FieldSet())
    _Comparison(difference).compare(old, new, shape, ())
    return difference


class _Comparison:
    """A walk through two values at once."""

    def __init__(self, difference: FieldDifference) -> None:
        self._difference = difference

    def compare(self, old: Any, new: Any, shape: Shape, path: tuple[str, ...]) -> None:
        if old is new:
            return
        if old is _MISSING:
            _add_places(self._difference.added, new, shape, path)
        elif new is _MISSING:
            _add_places(self._difference.removed, old, shape, path)
        elif is_object(old, shape) != is_object(new, shape):
            self._difference.modified.add(path)
            self._compare_fields(object_of(old), object_of(new), shape, path)
        elif shape.atomic or not (old or new):
            self._compare_whole(old, new, path)
        elif is_object(new, shape):
            self._compare_fields(object_of(old), object_of(new), shape, path)
        elif is_item_list(shape):
            self._compare_items(list_of(old), list_of(new), shape, path)
        else:
            self._compare_whole(old, new, path)

    def _compare_whole(self, old: Any, new: Any, path: tuple[str, ...]) -> None:
        if not same(old, new):
            self._difference.modified.add(path)

    def _compare_fields(
        self, old: dict[str, Any], new: dict[str, Any], shape: Shape, path: tuple[str, ...]
    ) -> None:
        for name in old | new:
            before, after = old.get(name, _MISSING), new.get(name, _MISSING)
            self.compare(before, after, field_shape(shape, name), (*path, f"f:{name}"))

    def _compare_items(self, old: list[Any], new: list[Any], shape: Shape, path: tuple[str, ...]) -> None:
        before, after = _by_element(old, shape), _by_element(new, shape)
        for element in before | after:
            olds, news = before.get(element, []), after.get(element, [])
            place = (*path, element)
            one_old, one_new = (items[0] if items else _MISSING for items in (olds, news))
            if len(olds) <= 1 and len(news) <= 1:
                self.compare(one_old, one_new, item_shape(shape), place)
            elif len(olds) > 1 and len(news) > 1:
                self._compare_whole(olds, news, place)
            elif len(olds) > 1:
                self.compare(_MISSING, one_new, item_shape(shape), place)
                self._difference.removed.add(place)
            else:
                self.compare(one_old, _MISSING, item_shape(shape), place)
                self._difference.added.add(place)


def _by_element(items: list[Any], shape: Shape) -> dict[str, list[Any]]:
    grouped: dict[str, list[Any]] = {}
    for item in items:
        grouped.setdefault(item_element(item, shape), []).append(item)
    return grouped


def _add_places(fields: FieldSet, value: Any, shape: Shape, path: tuple[str, ...]) -> None:
    """Add every path in a value, including those that only contain others."""
    fields.add(path)
    if shape.atomic:
        return
    if is_object(value, shape):
        for name, item in object_of(value).items():
            _add_places(fields, item, field_shape(shape, name), (*path, f"f:{name}"))
    elif is_item_list(shape):
        for element, items in _by_element(list_of(value), shape).items():
            if len(items) > 1:
                fields.add((*path, element))
            else:
                _add_places(fields, items[0], item_shape(shape), (*path, element))
