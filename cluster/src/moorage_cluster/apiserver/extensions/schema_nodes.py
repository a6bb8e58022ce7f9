"""The places in objects of a custom kind: pruning, defaulting, how patches merge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from moorage.api.manifests import Manifest, copy
from moorage.api.text import path_key
from moorage.apimachinery import errors
from moorage.apimachinery.fields import invalid
from moorage.apimachinery.schema.shape import ANYTHING, SCALAR, Form, Shape
from moorage_cluster.apiserver.extensions.metadata import META_FIELDS, METADATA_SHAPE, decode_metadata
from moorage_cluster.apiserver.extensions.numbers import MAX_INT64, MIN_INT64


class SchemaNode:
    """One place in objects of a kind."""

    __slots__ = (
        "additional",
        "default",
        "embedded",
        "has_additional",
        "has_defaults",
        "has_rules",
        "items",
        "list_keys",
        "list_type",
        "map_type",
        "nullable",
        "preserve",
        "properties",
        "type",
    )

    def __init__(self, schema: Mapping[str, Any], is_root: bool = False) -> None:
        self.type: str = schema.get("type") or ""
        self.preserve: bool = schema.get("x-kubernetes-preserve-unknown-fields") is True
        self.embedded: bool = is_root or schema.get("x-kubernetes-embedded-resource") is True
        self.nullable: bool = schema.get("nullable") is True
        self.default: Any = schema.get("default")
        self.list_type: str = schema.get("x-kubernetes-list-type") or ""
        self.list_keys: tuple[str, ...] = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        self.map_type: str = schema.get("x-kubernetes-map-type") or ""
        self.properties = {key: SchemaNode(part) for key, part in (schema.get("properties") or {}).items()}
        additional = schema.get("additionalProperties")
        self.has_additional: bool = additional is not None
        self.additional = SchemaNode(additional) if isinstance(additional, Mapping) else None
        items = schema.get("items")
        self.items = SchemaNode(items) if isinstance(items, Mapping) else None
        parts = list(self._parts())
        self.has_defaults: bool = any(part.default is not None or part.has_defaults for part in parts)
        """Whether there are defaults below."""
        self.has_rules: bool = (
            (self.embedded and not is_root)
            or self.list_type in ("set", "map")
            or any(part.has_rules for part in parts)
        )
        """Whether there are sets, maps or embedded resources, here or below."""

    def _parts(self) -> Iterator[SchemaNode]:
        yield from self.properties.values()
        if self.additional is not None:
            yield self.additional
        if self.items is not None:
            yield self.items

    def child(self, key: str) -> SchemaNode | None:
        """The place of a field."""
        return self.properties.get(key) or self.additional

    @property
    def drops_null(self) -> bool:
        """Whether a null is dropped here: it is neither a value nor replaced by the default."""
        return not self.nullable and self.default is None


class Unknown(NamedTuple):
    """Paths of unknown fields."""

    fields: list[str]
    metadata: list[str]
    """Those within the metadata of the object, or of objects inside it."""

    def in_order(self) -> list[str]:
        """All of them, in Kubernetes' order: the object's metadata, its fields, embedded objects."""
        own = [path for path in self.metadata if path.startswith("metadata.")]
        inside = [path for path in self.metadata if not path.startswith("metadata.")]
        return [*sorted(own), *sorted(self.fields), *sorted(inside)]


def pruned(value: Any, place: SchemaNode | None, path: str, unknown: Unknown) -> Any:
    """A copy without unknown fields; their paths are added to `unknown`."""
    if isinstance(value, dict):
        return _pruned_object(value, place, path, unknown)
    if isinstance(value, list):
        if place is not None and place.preserve and place.items is None:
            return _exact(value)
        items = place.items if place is not None else None
        return [pruned(item, items, f"{path}[{index}]", unknown) for index, item in enumerate(value)]
    return _exact(value)


def _pruned_object(value: Manifest, place: SchemaNode | None, path: str, unknown: Unknown) -> Manifest:
    kept: Manifest = {}
    for key, item in value.items():
        here = f"{path}.{path_key(key)}" if path else path_key(key)
        if place is None:
            unknown.fields.append(here)
            continue
        if place.embedded and key in META_FIELDS:
            if item is not None:
                kept[key] = _meta_field(key, item, here, unknown)
            continue
        child = place.child(key)
        if child is not None:
            if item is not None or not child.drops_null:
                kept[key] = pruned(item, child, here, unknown)
        elif place.has_additional:
            kept[key] = pruned(item, None, here, unknown)
        elif place.preserve:
            kept[key] = _exact(item)
        else:
            unknown.fields.append(here)
    return kept


def _meta_field(key: str, item: Any, path: str, unknown: Unknown) -> Any:
    if key == "metadata":
        return decode_metadata(item, path, unknown.metadata)
    if not isinstance(item, str):
        raise errors.bad_request(str(invalid(path, item, "must be a string")))
    return item


def _exact(value: Any) -> Any:
    """A copy in which integers have 64 bits: larger ones are floating point, as everywhere in Kubernetes."""
    if isinstance(value, dict):
        return {key: _exact(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_exact(item) for item in value]
    if type(value) is int and not MIN_INT64 <= value <= MAX_INT64:
        return float(value)
    return value


def fill_in(value: Any, place: SchemaNode | None) -> None:
    """Set defaults for missing fields, and for nulls that are not nullable."""
    if place is None or not place.has_defaults:
        return
    if isinstance(value, dict):
        for key, part in place.properties.items():
            if part.default is not None and (key not in value or (value[key] is None and not part.nullable)):
                value[key] = copy(part.default)
        for key, item in value.items():
            child = place.child(key)
            if item is None and child is not None and not child.nullable:
                item = value[key] = copy(child.default)
            fill_in(item, child)
    elif isinstance(value, list) and place.items is not None:
        for index, item in enumerate(value):
            if item is None and not place.items.nullable:
                item = value[index] = copy(place.items.default)
            fill_in(item, place.items)


def shape_of(place: SchemaNode, preserved: bool = False) -> Shape:
    """How patches merge at a place; what is below a place that preserves unknown fields does so, too."""
    preserved = preserved or place.preserve
    if place.list_type or place.items is not None:
        items = shape_of(place.items, preserved) if place.items is not None else ANYTHING
        if place.list_type == "map" and place.items is not None:
            defaults = {
                key: part.default
                for key in place.list_keys
                if (part := place.items.properties.get(key)) is not None and part.default is not None
            }
            return Shape(Form.LIST, items=items, keys=place.list_keys, key_defaults=defaults)
        if place.list_type == "set":
            return Shape(Form.LIST, items=items, is_set=True)
        return Shape(Form.LIST, items=items, atomic=True)
    atomic = place.map_type == "atomic"
    if place.has_additional:
        items = shape_of(place.additional, preserved) if place.additional is not None else ANYTHING
        return Shape(Form.MAP, items=items, atomic=atomic)
    if place.properties or place.embedded:
        fields = {key: shape_of(part, preserved) for key, part in place.properties.items()}
        if place.embedded:
            fields |= {"apiVersion": SCALAR, "kind": SCALAR, "metadata": METADATA_SHAPE}
        return Shape(Form.OBJECT, fields=fields, items=ANYTHING if preserved else None, atomic=atomic)
    if place.preserve or not place.type:
        return Shape(Form.ANY, atomic=atomic)
    if place.type == "object":
        return Shape(Form.MAP, items=ANYTHING, atomic=atomic)
    return SCALAR
