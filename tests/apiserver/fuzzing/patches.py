"""Patches of all four types."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.apiserver.fuzzing.mutations import copied, mutate, places
from tests.apiserver.fuzzing.values import chance, strange, text

TYPES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
_OPERATIONS = ("add", "add", "remove", "replace", "replace", "move", "copy", "test", "bogus")
_POINTERS = (
    "", "/", "a", "//", "/spec/containers/-", "/spec/containers/99", "/spec/containers/-1", "/~", "/~2",
    "/metadata/labels/a~1b", "/spec/containers/00", "/spec/containers/1e0", "/metadata", "/metadata/name",
    "/kind", "/spec", "/status", "/spec/containers/0/name/x", "/spec/containers/99999999999999999999",
    "/spec/containers/١",
)  # fmt: skip
_MANAGED: tuple[Any, ...] = (
    {"manager": "me", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
    "fieldsV1": {"f:spec": {}}},
    {"manager": "me", "operation": "Update", "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:a": {}}}}},
    {"fieldsV1": {"k:{\"name\":\"main\"}": {}}, "fieldsType": "FieldsV1", "operation": "Apply",
    "apiVersion": "v1"},
    {"fieldsV1": {"k:{": {}, "v:": 1, "i:x": {}, "q:": {}}, "fieldsType": "FieldsV1", "operation": "Update"},
    {"fieldsV1": [], "fieldsType": "x", "operation": "x", "time": "x"},
    {"manager": "x" * 200, "time": "9999-12-31T23:59:59Z", "operation": "Apply", "subresource": "status"},
    {},
)  # fmt: skip


def patch(kind: str, live: Any, random: Random, names: tuple[str, ...]) -> Any:
    """A patch of a type for an object."""
    if chance(random, 25):
        return strange(random)
    if kind == TYPES[0]:
        return _json_patch(live, random)
    part = _part(live, random)
    for _ in range(random.choice((0, 1, 1, 2))):
        part = mutate(part, random, names)
    if kind == TYPES[2]:
        _add_directives(part, random)
    if kind == TYPES[3] and isinstance(part, dict):
        part = _applied(part, live, random)
    return part


def _json_patch(live: Any, random: Random) -> Any:
    found = pointers(live)
    made: list[Any] = []
    for _ in range(random.choice((0, 1, 1, 2, 3, 8))):
        operation = {
            "op": random.choice(_OPERATIONS),
            "path": random.choice(found) if found and not chance(random, 4) else random.choice(_POINTERS),
        }
        if not chance(random, 8):
            operation["value"] = strange(random)
        if operation["op"] in ("move", "copy"):
            operation["from"] = (
                random.choice(found) if found and not chance(random, 4) else random.choice(_POINTERS)
            )
        if chance(random, 20):
            operation[random.choice(("path", "op", "from"))] = strange(random)
        made.append(operation)
    if chance(random, 40):
        made *= 3000
    return made


def pointers(value: Any, prefix: str = "", depth: int = 0) -> list[str]:
    """Where things are in a value."""
    found: list[str] = []
    if depth > 8:
        return found
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        here = f"{prefix}/{str(key).replace('~', '~0').replace('/', '~1')}"
        found.append(here)
        found += pointers(item, here, depth + 1)
    return found


def _part(live: Any, random: Random) -> Any:
    """Some of an object."""
    if not isinstance(live, dict):
        return {}
    part = {key: copied(value) for key, value in live.items() if chance(random, 2)}
    metadata = part.get("metadata")
    if isinstance(metadata, dict) and not chance(random, 6):
        for key in ("resourceVersion", "uid", "managedFields", "creationTimestamp"):
            metadata.pop(key, None)
    return part


def _add_directives(part: Any, random: Random) -> None:
    holders = [part, *(holder[key] for holder, key in places(part))]
    for holder in random.sample(holders, min(len(holders), random.choice((0, 1, 1, 2)))):
        if isinstance(holder, list):
            holder.append(
                random.choice(({"$patch": "replace"}, {"$patch": "delete", "name": "main"}, {"$patch": 5}))
            )
        elif isinstance(holder, dict):
            key = random.choice([*map(str, holder), "containers", "finalizers", "ports"])
            name = random.choice(("$patch", "$retainKeys", f"$setElementOrder/{key}",
            f"$deleteFromPrimitiveList/{key}", "$bogus"))  # fmt: skip
            good = {"$patch": random.choice(("replace", "delete", "merge", "bogus"))}.get(name)
            keys = [{"name": "main"}, {"name": text(random)}, "a", key]
            holder[name] = (
                good if good and not chance(random, 6) else random.sample(keys, random.randrange(4))
            )
            if chance(random, 8):
                holder[name] = strange(random)


def _applied(part: dict[str, Any], live: Any, random: Random) -> Any:
    if isinstance(live, dict) and not chance(random, 10):
        part["apiVersion"], part["kind"] = live.get("apiVersion"), live.get("kind")
        metadata = part.setdefault("metadata", {})
        if isinstance(metadata, dict) and not chance(random, 10):
            metadata.pop("managedFields", None)
            named = live.get("metadata")
            metadata["name"] = named.get("name") if isinstance(named, dict) else None
    metadata = part.get("metadata")
    if isinstance(metadata, dict) and chance(random, 8):
        metadata["managedFields"] = [copied(random.choice(_MANAGED)) for _ in range(random.randrange(4))]
    return part


def damaged_owners(random: Random) -> list[Any]:
    """Managed fields that may be nonsense."""
    return [copied(random.choice(_MANAGED)) for _ in range(random.randrange(4))]
