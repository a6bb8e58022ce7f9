"""Rules of a schema beyond OpenAPI: lists that are sets or maps, and whole objects inside an object."""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.api.manifests import Manifest
from moorage.api.names import dns_1035_label_problems, dns_subdomain_problems
from moorage.api.text import path_key
from moorage.apimachinery.fields import FieldError, complaints, duplicate, invalid, required
from moorage_cluster.apiserver.extensions.schema_nodes import SchemaNode


def list_problems(value: Any, place: SchemaNode | None, path: str) -> list[FieldError]:
    """The items that are in a set twice, or in a map under the same keys."""
    if place is None or not place.has_rules:
        return []
    found: list[FieldError] = []
    if isinstance(value, dict):
        for key, item in value.items():
            named = key in place.properties
            here = _child(path, key) if named else f"{path}[{path_key(key)}]"
            found += list_problems(item, place.child(key), here)
    elif isinstance(value, list):
        if place.list_type == "set":
            found += [duplicate(f"{path}[{index}]", value[index]) for index in _second_times(value)]
        elif place.list_type == "map":
            found += _map_problems(value, place.list_keys, path)
        for index, item in enumerate(value):
            found += list_problems(item, place.items, f"{path}[{index}]")
    return found


def _map_problems(value: list[Any], names: tuple[str, ...], path: str) -> list[FieldError]:
    for index, item in enumerate(value):
        if item is not None and not isinstance(item, dict):
            return [invalid(f"{path}[{index}]", item, "must be an object for an array of list-type map")]
    keys = [{name: item[name] for name in names if name in item} if item else {} for item in value]
    return [duplicate(f"{path}[{index}]", keys[index]) for index in _second_times(keys)]


def _second_times(items: list[Any]) -> list[int]:
    """The indices of second occurrences; a third one is not reported."""
    times: dict[bytes, int] = {}
    places = []
    for index, item in enumerate(items):
        key = msgspec.json.encode(item, order="sorted")
        times[key] = times.get(key, 0) + 1
        if times[key] == 2:
            places.append(index)
    return places


def embedded_problems(value: Any, place: SchemaNode | None, path: str) -> list[FieldError]:
    """The errors of embedded objects; the outermost one is checked by the verbs."""
    if place is None or not place.has_rules:
        return []
    found: list[FieldError] = []
    if isinstance(value, dict):
        if place.embedded and path:
            found += _object_problems(value, path)
        for key, item in value.items():
            named = key in place.properties
            here = _child(path, key) if named else f"{path}[{path_key(key)}]"
            found += embedded_problems(item, place.child(key), here)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found += embedded_problems(item, place.items, f"{path}[{index}]")
    return found


def _object_problems(obj: Manifest, path: str) -> list[FieldError]:
    found = []
    for key in ("apiVersion", "kind"):
        text = obj.get(key)
        if key not in obj:
            found.append(required(f"{path}.{key}"))
        elif not isinstance(text, str):
            found.append(invalid(f"{path}.{key}", text, "must be a string"))
        elif not text:
            found.append(invalid(f"{path}.{key}", text, "must not be empty"))
        elif key == "apiVersion" and text.count("/") > 1:
            found.append(invalid(f"{path}.{key}", text, f"unexpected GroupVersion string: {text}"))
        elif key == "kind" and (problems := dns_1035_label_problems(text.lower())):
            detail = f"may have mixed case, but should otherwise match: {','.join(problems)}"
            found.append(invalid(f"{path}.{key}", text, detail))
    meta = obj.get("metadata")
    name = meta.get("name") if isinstance(meta, dict) else None
    if isinstance(name, str) and name:
        if name in (".", ".."):
            found.append(invalid(f"{path}.metadata.name", name, f"may not be '{name}'"))
        for letter in "/%":
            if letter in name:
                found.append(invalid(f"{path}.metadata.name", name, f"may not contain '{letter}'"))
    namespace = meta.get("namespace") if isinstance(meta, dict) else None
    if isinstance(namespace, str) and namespace:
        found += complaints(f"{path}.metadata.namespace", namespace, dns_subdomain_problems(namespace))
    return found


def _child(path: str, key: str) -> str:
    return f"{path}.{path_key(key)}" if path else path_key(key)
