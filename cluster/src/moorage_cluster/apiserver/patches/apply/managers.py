"""Field managers: `metadata.managedFields`, parsed and written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple, TypeAlias

from moorage.api.manifests import Manifest
from moorage.api.text import quoted
from moorage_cluster.apiserver.patches.apply.elements import MalformedError
from moorage_cluster.apiserver.patches.apply.fieldset import FieldSet

APPLY: Final = "Apply"
UPDATE: Final = "Update"
BEFORE_FIRST_APPLY: Final = "before-first-apply"
"""The manager of all fields that existed before the first apply."""
OLD_UPDATES: Final = "ancient-changes"
"""The manager that the oldest of too many updaters are merged into."""
MAX_UPDATERS: Final = 10


class FieldManager(NamedTuple):
    """A field manager and its operation: one name may apply and update, and update in several versions."""

    name: str
    operation: str
    api_version: str
    """Empty for apply: managers that apply do not differ by version."""
    subresource: str

    def __str__(self) -> str:
        text = quoted(self.name)
        if self.subresource:
            text += f" with subresource {quoted(self.subresource)}"
        return f"{text} using {self.api_version}" if self.operation == UPDATE else text


class OwnedFields(NamedTuple):
    """What a manager owns."""

    fields: FieldSet
    api_version: str
    time: str
    """The time of its last change; empty if there was none."""


Managers: TypeAlias = dict[FieldManager, OwnedFields]


def applier(name: str, subresource: str) -> FieldManager:
    """The manager of an apply."""
    return FieldManager(name, APPLY, "", subresource)


def updater(name: str, api_version: str, subresource: str) -> FieldManager:
    """The manager of a create, update or patch."""
    return FieldManager(name or "unknown", UPDATE, api_version, subresource)


def decode_managers(entries: Any) -> Managers:
    """The managers in an object's managedFields; MalformedError if they are invalid."""
    managers: Managers = {}
    if not isinstance(entries, list):
        return managers
    for index, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise MalformedError("managed fields entry is not a JSON object")
        operation, api_version = entry.get("operation"), _text(entry, "apiVersion")
        if operation not in (APPLY, UPDATE):
            raise MalformedError("operation must be `Apply` or `Update`")
        if not api_version:
            raise MalformedError("apiVersion must not be empty")
        form = _text(entry, "fieldsType")
        if not form:
            raise MalformedError(f"missing fieldsType in managed fields entry {index}")
        if form != "FieldsV1":
            raise MalformedError(f"invalid fieldsType {quoted(form)} in managed fields entry {index}")
        version = "" if operation == APPLY else api_version
        manager = FieldManager(_text(entry, "manager"), operation, version, _text(entry, "subresource"))
        fields = FieldSet.decode(entry.get("fieldsV1") or {})
        managers[manager] = OwnedFields(fields, api_version, _text(entry, "time"))
    return managers


def _text(entry: Manifest, name: str) -> str:
    value = entry.get(name)
    return value if isinstance(value, str) else ""


def encode_managers(managers: Managers) -> list[Manifest]:
    """The managers in the form of managedFields: appliers first, then the oldest first."""

    def order(item: tuple[FieldManager, OwnedFields]) -> tuple[str, ...]:
        manager, owned = item
        return manager.operation, owned.time, manager.name, owned.api_version, manager.subresource

    return [_entry(manager, owned) for manager, owned in sorted(managers.items(), key=order)]


def _entry(manager: FieldManager, owned: OwnedFields) -> Manifest:
    entry: Manifest = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": owned.api_version,
        "time": owned.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": owned.fields.encode(),
        "subresource": manager.subresource,
    }
    return {name: value for name, value in entry.items() if value or name == "fieldsV1"}


def disowned(managers: Managers, lost: FieldSet, but: Iterable[FieldManager] = ()) -> Managers:
    """The managers without some fields, except those of `but`; managers without fields are dropped."""
    kept: Managers = {}
    for manager, owned in managers.items():
        fields = owned.fields if manager in but else owned.fields - lost
        if fields:
            kept[manager] = owned._replace(fields=fields)
    return kept


def capped(managers: Managers) -> Managers:
    """The managers, with the oldest updaters merged into one per API version if there are too many."""
    updaters = [manager for manager in managers if manager.operation == UPDATE]
    surplus = len(updaters) - MAX_UPDATERS
    if surplus <= 0:
        return managers
    managers = managers.copy()
    first_of: dict[str, FieldManager] = {}
    gathered: dict[FieldManager, list[FieldSet]] = {}
    for manager in sorted(updaters, key=lambda one: (managers[one].time, one)):
        if surplus <= 0:
            break
        version = managers[manager].api_version
        if version not in first_of:
            first_of[version] = manager
            continue
        bucket = FieldManager(OLD_UPDATES, UPDATE, version, "")
        if bucket not in managers:
            managers[bucket] = managers.pop(first_of[version])
        if manager != bucket:
            gathered.setdefault(bucket, [managers[bucket].fields]).append(managers[manager].fields)
            managers[bucket] = managers.pop(manager)
        surplus -= 1
    for bucket, sets in gathered.items():
        managers[bucket] = managers[bucket]._replace(fields=FieldSet.union(sets))
    return managers
