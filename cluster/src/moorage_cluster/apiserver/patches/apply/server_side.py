"""Server-side apply: a manager applies a configuration, and owns the fields in it.

Ownership is tracked from an object's first apply on; earlier fields belong to one manager,
`before-first-apply`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from moorage.api.manifests import Manifest, metadata
from moorage.apimachinery import errors
from moorage.apimachinery.errors import ApiError
from moorage.apimachinery.json_values import same
from moorage.apimachinery.schema.shape import Shape
from moorage_cluster.apiserver.patches.apply.conflicts import Conflict, conflict_error, find_conflicts
from moorage_cluster.apiserver.patches.apply.elements import MalformedError
from moorage_cluster.apiserver.patches.apply.fieldset import NOTHING, FieldSet
from moorage_cluster.apiserver.patches.apply.last_applied import KUBECTL, taken_over, with_annotation
from moorage_cluster.apiserver.patches.apply.managers import (
    BEFORE_FIRST_APPLY,
    FieldManager,
    Managers,
    OwnedFields,
    applier,
    capped,
    decode_managers,
    disowned,
    encode_managers,
    updater,
)
from moorage_cluster.apiserver.patches.apply.merging import merged, without
from moorage_cluster.apiserver.patches.apply.ownership import compare, fields_of, with_parents
from moorage_cluster.apiserver.patches.apply.shape_access import object_of
from moorage_cluster.apiserver.patches.apply.wellformed import check_applied, check_live
from moorage_cluster.apiserver.patches.depth import rejects_deep_nesting

UNOWNED_FIELDS: Final = FieldSet.of(
    "apiVersion",
    "kind",
    "metadata",
    "metadata.clusterName",
    "metadata.creationTimestamp",
    "metadata.deletionGracePeriodSeconds",
    "metadata.deletionTimestamp",
    "metadata.generation",
    "metadata.managedFields",
    "metadata.name",
    "metadata.namespace",
    "metadata.resourceVersion",
    "metadata.selfLink",
    "metadata.uid",
)
"""Fields that no manager owns."""


@rejects_deep_nesting
def apply(
    live: Manifest | None,
    applied: Manifest,
    shape: Shape,
    manager: str,
    force: bool,
    api_version: str,
    subresource: str,
    time: str,
    ignored: FieldSet = NOTHING,
) -> Manifest:
    """The object after an apply, with its `managedFields`; ApiError (409) on conflicts with other managers.

    Fields that the manager applied before and does not apply now are removed, if no other manager owns them.
    `ignored` fields and their descendants get no owner. Neither argument is changed, and the result
    shares parts with both.
    """
    _check_request(applied, api_version)
    before = _untracked(live or {})
    with _refusing("failed to create typed patch object", applied):
        check_applied(applied, shape)
    with _refusing("failed to create typed live object", before):
        check_live(before, shape)
    managers = _managers_before(live, before, shape, api_version, subresource, time)
    request = _Request(before, applied, shape, applier(manager, subresource), api_version, ignored)
    outcome = request.carried_out(managers)
    conflicts = outcome.conflicts
    if conflicts and manager == KUBECTL and not force:
        allowed = taken_over(before, shape, api_version)
        conflicts = [conflict for conflict in conflicts if conflict.path not in allowed]
    if conflicts and not force:
        raise conflict_error(conflicts)
    obj, managers = outcome.obj, outcome.managers
    if same(before, obj):
        obj = before
    elif request.manager in managers:
        managers[request.manager] = managers[request.manager]._replace(time=time)
    if manager == KUBECTL:
        obj = with_annotation(obj, applied)
    return _tracked(obj, managers)


@rejects_deep_nesting
def check_declared(applied: Any, shape: Shape) -> None:
    """Reject a body with unknown fields; it must not be pruned yet."""
    if isinstance(applied, dict):
        with _refusing("failed to create typed patch object", applied):
            check_applied(applied, shape)


@rejects_deep_nesting
def track_update(
    old: Manifest,
    new: Manifest,
    shape: Shape,
    manager: str,
    api_version: str,
    subresource: str,
    time: str,
    ignored: FieldSet = NOTHING,
) -> None:
    """Put into `new`, in place, the `managedFields` that an update of `old` to it gives.

    Clients may set `managedFields` themselves, but not through a subresource; an empty list ends tracking.
    An object that has never been applied is not tracked.
    """
    meta = metadata(new)
    kept, given = old["metadata"].get("managedFields"), meta.get("managedFields")
    if not kept and given is None:
        return
    meta.pop("managedFields", None)
    managers = _managers_of_update(kept, given, subresource)
    if not managers:
        return
    try:
        difference = compare(_untracked(old), new, shape).outside(ignored)
    except MalformedError:
        return
    changed = difference.added | difference.modified
    managers = disowned(managers, changed | difference.removed)
    if mine := changed - UNOWNED_FIELDS:
        me = updater(manager, api_version, subresource)
        fields = mine | managers[me].fields if me in managers else mine
        managers[me] = OwnedFields(fields, api_version, time)
    if managers:
        meta["managedFields"] = encode_managers(capped(managers))


class _Outcome(NamedTuple):
    """The result of an apply, disregarding conflicts, and the conflicts."""

    obj: Manifest
    managers: Managers
    conflicts: list[Conflict]


class _Request(NamedTuple):
    """An applied configuration."""

    live: Manifest
    applied: Manifest
    shape: Shape
    manager: FieldManager
    api_version: str
    ignored: FieldSet

    def carried_out(self, managers: Managers) -> _Outcome:
        last = managers.get(self.manager)
        fields = fields_of(self.applied, self.shape).outside(self.ignored)
        managers = {
            **managers,
            self.manager: OwnedFields(fields, self.api_version, last.time if last else ""),
        }
        obj = merged(self.live, self.applied, self.shape)
        if last and last.fields - fields:
            obj = self._pruned(obj, last.fields, managers)
        difference = compare(self.live, obj, self.shape).outside(self.ignored)
        changed = difference.added | difference.modified
        conflicts = find_conflicts(managers, changed, self.manager)
        managers = disowned(managers, changed | difference.removed, but=(self.manager,))
        if own := fields - UNOWNED_FIELDS:
            managers[self.manager] = managers[self.manager]._replace(fields=own)
        else:
            managers.pop(self.manager, None)
        return _Outcome(obj, managers, conflicts)

    def _pruned(self, obj: Manifest, last: FieldSet, managers: Managers) -> Any:
        """The merged object without what this manager applied last time, unless it is owned now."""
        last = with_parents(last, self.shape)
        there = self._places(obj)
        owned = with_parents(FieldSet.union([one.fields for one in managers.values()]), self.shape)
        # Removing a parent removes its content. So this takes three passes: to find what would be left,
        # to find what is left with the owned fields restored, and to remove this manager's other fields.
        left = self._places(without(obj, last, self.shape))
        left = self._places(without(obj, there - (left | owned), self.shape))
        return without(obj, (there - left) & last, self.shape)

    def _places(self, obj: Manifest) -> FieldSet:
        return with_parents(fields_of(obj, self.shape), self.shape)


def _check_request(applied: Manifest, api_version: str) -> None:
    if applied.get("apiVersion") != api_version:
        raise errors.bad_request(f"invalid object type: {_kind_text(applied)}")
    meta = applied.get("metadata")
    if isinstance(meta, dict) and isinstance(meta.get("managedFields"), list):
        raise errors.bad_request("metadata.managedFields must be nil")


def _managers_before(
    live: Manifest | None, before: Manifest, shape: Shape, api_version: str, subresource: str, time: str
) -> Managers:
    try:
        managers = decode_managers(object_of((live or {}).get("metadata")).get("managedFields"))
    except MalformedError as problem:
        raise _unknown_error(f"failed to decode managed fields: {problem}") from None
    if not managers and (fields := fields_of(before, shape) - UNOWNED_FIELDS):
        managers[updater(BEFORE_FIRST_APPLY, api_version, subresource)] = OwnedFields(
            fields, api_version, time
        )
    return managers


def _managers_of_update(kept: Any, given: Any, subresource: str) -> Managers:
    if not subresource:
        if given in ([], [{}]):
            return {}
        try:
            if managers := decode_managers(given):
                return managers
        except MalformedError:
            pass  # Clients that do not support managedFields must not destroy them.
    try:
        return decode_managers(kept)
    except MalformedError:
        return {}


def _untracked(obj: Manifest) -> Manifest:
    """The object without its `managedFields`."""
    meta = obj.get("metadata")
    if not isinstance(meta, dict) or "managedFields" not in meta:
        return obj
    return {**obj, "metadata": {name: value for name, value in meta.items() if name != "managedFields"}}


def _tracked(obj: Manifest, managers: Managers) -> Manifest:
    if not managers:
        return obj
    meta = {**object_of(obj.get("metadata")), "managedFields": encode_managers(managers)}
    return {**obj, "metadata": meta}


@contextmanager
def _refusing(what: str, obj: Manifest) -> Iterator[None]:
    """Convert MalformedError into an ApiError."""
    try:
        yield
    except MalformedError as problem:
        meta = obj.get("metadata")
        where = f"{_text(meta, 'namespace')}/{_text(meta, 'name')}; {_kind_text(obj)}"
        raise _unknown_error(f"{what} ({where}): {problem}") from None


def _kind_text(obj: Manifest) -> str:
    """An object's kind as Go prints it: `/v1, Kind=Pod`, `apps/v1, Kind=Deployment`."""
    api_version = _text(obj, "apiVersion")
    return f"{api_version if '/' in api_version else f'/{api_version}'}, Kind={_text(obj, 'kind')}"


def _text(obj: Any, name: str) -> str:
    value = obj.get(name) if isinstance(obj, dict) else None
    return value if isinstance(value, str) else ""


def _unknown_error(message: str) -> ApiError:
    return ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, "", message)
