"""Delete: grace periods, finalizers, propagation to dependents, preconditions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from moorage.api.manifests import Manifest, timestamp
from moorage.api.text import quoted
from moorage.apimachinery import errors
from moorage_cluster.apiserver.options import Query, dry_run, flag, number
from moorage_cluster.apiserver.resources import APIResource
from moorage_cluster.apiserver.rest.context import Context
from moorage_cluster.apiserver.rest.writes import Writer, finalizers_of
from moorage_cluster.apiserver.store import encode

ORPHAN: Final = "orphan"
FOREGROUND: Final = "foregroundDeletion"
_CENTURY_SECONDS: Final = 100 * 365 * 24 * 3600
_POLICIES: Final = {"Orphan": ORPHAN, "Foreground": FOREGROUND, "Background": ""}
_ANSWERED_WITH_OBJECT: Final = {
    "Pod", "Namespace", "Service", "ServiceAccount", "PersistentVolume", "PersistentVolumeClaim",
    "PodTemplate", "ResourceQuota",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """The options of a delete."""

    grace_seconds: int | None = None
    uid: str | None = None
    resource_version: str | None = None
    policy: str = ""
    dry_run: bool = False


def delete_options(query: Query, body: Any) -> DeleteOptions:
    """The options of a delete: those of the body, or else of the query."""
    if body is None:
        body = {
            "gracePeriodSeconds": number(query, "gracePeriodSeconds"),
            "propagationPolicy": query.get("propagationPolicy"),
            "orphanDependents": flag(query, "orphanDependents") if "orphanDependents" in query else None,
        }
    if not isinstance(body, dict):
        raise errors.bad_request("couldn't get version/kind; json parse error: the body is not an object")
    grace, policy, orphan = (
        body.get(key) for key in ("gracePeriodSeconds", "propagationPolicy", "orphanDependents")
    )
    preconditions = body.get("preconditions") or {}
    runs = body.get("dryRun") or query.get("dryRun") or ""
    runs = runs if isinstance(runs, list) else [runs]
    if (
        not isinstance(grace, int | None)
        or isinstance(grace, bool)
        or not isinstance(policy, str | None)
        or not isinstance(orphan, bool | None)
        or not isinstance(preconditions, dict)
        or not all(isinstance(preconditions.get(key), str | None) for key in ("uid", "resourceVersion"))
        or not all(isinstance(run, str) for run in runs)
    ):
        raise errors.bad_request("DeleteOptions: a field has a value of the wrong type")
    if policy and orphan is not None:
        raise _invalid_options(
            "propagationPolicy: Invalid value: "
            f"{quoted(policy)}: orphanDependents and deletionPropagation cannot be both set"
        )
    if policy and policy not in _POLICIES:
        known = ", ".join(quoted(name) for name in sorted(_POLICIES))
        raise _invalid_options(
            f'propagationPolicy: Unsupported value: {quoted(policy)}: supported values: {known}, "nil"'
        )
    if orphan is not None:
        policy = "Orphan" if orphan else "Background"
    return DeleteOptions(
        grace,
        preconditions.get("uid"),
        preconditions.get("resourceVersion"),
        policy or "",
        any(dry_run(run) for run in runs),
    )


def _invalid_options(problem: str) -> errors.ApiError:
    return errors.ApiError(422, "Invalid", f'DeleteOptions.meta.k8s.io "" is invalid: {problem}')


class Deleter:
    """Deletes objects of any resource."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def delete(
        self, resource: APIResource, namespace: str, name: str, options: DeleteOptions, context: Context
    ) -> bytes:
        """Delete an object, or start its deletion; returns the object or a Status, encoded."""
        stored = self._writer.stored(resource, namespace, name)
        obj = self._writer.opened(resource, stored)
        _check_preconditions(resource, obj, options)
        self._writer.admit("DELETE", resource, "", namespace, name, obj, obj, context)
        old = self._writer.opened(resource, stored)
        meta = obj["metadata"]
        if not meta.get("deletionTimestamp"):
            resource.strategy.prepare_delete(obj, self._writer.now())
        if not options.policy and resource.strategy.deletion_warning:
            context.warnings.append(resource.strategy.deletion_warning)
        _propagate(meta, options.policy or _default_policy(resource, meta))
        if self._keeps(resource, obj, options.grace_seconds, meta):
            return self._writer.replace(resource, stored, old, obj, context)
        raw = self._writer.remove(resource, stored, context)
        return raw if resource.kind in _ANSWERED_WITH_OBJECT else encode(_success(resource, obj))

    def _keeps(self, resource: APIResource, obj: Manifest, wanted: int | None, meta: Manifest) -> bool:
        """Mark an object as being deleted; returns whether a grace period or finalizer keeps it for now."""
        waits_for = finalizers_of(obj)
        if not meta.get("deletionTimestamp"):
            grace = resource.strategy.grace_seconds(obj, wanted)
            if not grace and not waits_for:
                return False
            _mark(meta, self._writer.now(), grace)
            if resource.strategy.has_generation or meta.get("generation"):
                meta["generation"] = meta.get("generation", 0) + 1
            return True
        before = meta.get("deletionGracePeriodSeconds") or 0
        if wanted is not None and (grace := 1 if wanted < 0 else wanted) < before:
            begun = datetime.fromisoformat(meta["deletionTimestamp"]) - _grace_period(before)
            _mark(meta, begun, grace)
        return bool(meta.get("deletionGracePeriodSeconds") or waits_for)


def _mark(meta: Manifest, begun: datetime, grace_seconds: int) -> None:
    meta["deletionTimestamp"] = timestamp(begun + _grace_period(grace_seconds))
    meta["deletionGracePeriodSeconds"] = grace_seconds


def _grace_period(seconds: int) -> timedelta:
    """A grace period, limited to a century."""
    return timedelta(seconds=min(seconds, _CENTURY_SECONDS))


def _check_preconditions(resource: APIResource, obj: Manifest, options: DeleteOptions) -> None:
    meta = obj["metadata"]
    if resource.strategy.is_marked_before_deletion:
        for name, wanted, found in (
            ("UID", options.uid, meta["uid"]),
            ("ResourceVersion", options.resource_version, meta["resourceVersion"]),
        ):
            if wanted is not None and wanted != found:
                raise errors.failed_precondition(
                    resource.group, resource.plural, meta["name"], name, wanted, found
                )
    why = ""
    if options.uid is not None and options.uid != meta["uid"]:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({meta['uid']}). "
            "The object might have been deleted and then recreated"
        )
    elif options.resource_version is not None and options.resource_version != meta["resourceVersion"]:
        why = (
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match the "
            f"ResourceVersion in record ({meta['resourceVersion']}). The object might have been modified"
        )
    if why:
        raise errors.conflict(resource.group, resource.kind, meta["name"], why)


def _default_policy(resource: APIResource, meta: Manifest) -> str:
    """The default propagation policy for an object's dependents."""
    decided = {ORPHAN, FOREGROUND}.intersection(meta.get("finalizers") or ())
    return "Orphan" if resource.strategy.orphans_dependents and not decided else ""


def _propagate(meta: Manifest, policy: str) -> None:
    """Set the object's finalizers for the propagation policy."""
    if not policy:
        return
    wanted = _POLICIES[policy]
    finalizers = [name for name in meta.get("finalizers") or [] if name not in (ORPHAN, FOREGROUND)]
    if wanted:
        finalizers.append(wanted)
    if finalizers:
        meta["finalizers"] = finalizers
    else:
        meta.pop("finalizers", None)


def _success(resource: APIResource, obj: Manifest) -> Manifest:
    meta = obj["metadata"]
    details = {"name": meta["name"], "group": resource.group, "kind": resource.plural, "uid": meta["uid"]}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {key: value for key, value in details.items() if value},
    }
