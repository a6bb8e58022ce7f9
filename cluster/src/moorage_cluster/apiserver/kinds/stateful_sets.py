"""StatefulSets, and ControllerRevisions with the history of sets."""

from __future__ import annotations

from typing import Any, Final

from moorage.admission.pods.defaults import default_pod_template
from moorage.api.manifests import Manifest, child
from moorage.api.names import dns_label_problems
from moorage.apimachinery.fields import NOT_NEGATIVE, FieldError, forbidden, invalid, required
from moorage.apimachinery.validation.checks import (
    amount_of,
    check_at_most_100_percent,
    check_int_or_percent,
    check_not_negative,
    check_optional_word,
    check_unchanged,
)
from moorage.apimachinery.validation.claim_specs import check_claim_spec
from moorage.apimachinery.validation.names import check_label
from moorage_cluster.apiserver.kinds.base import StatusStrategy
from moorage_cluster.apiserver.kinds.persistent_volume_claims import default_claim
from moorage_cluster.apiserver.kinds.pod_templates import check_lasting_template, check_match, check_selector
from moorage_cluster.apiserver.kinds.workloads import check_collisions, check_replica_counts
from moorage_cluster.apiserver.strategy import Strategy

_HISTORY_LIMIT: Final = 10
_RETENTION: Final = ("Retain", "Delete")
_CHANGEABLE: Final = frozenset(
    (
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    )
)
_FORBIDDEN_CHANGE: Final = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


class StatefulSetStrategy(StatusStrategy):
    """A StatefulSet."""

    has_generation = True
    empty_status = {"replicas": 0, "availableReplicas": 0}

    def name_problems(self, name: str) -> tuple[str, ...]:
        """Names are used in the host names of pods: a DNS label."""
        return dns_label_problems(name)

    def default(self, obj: Manifest) -> None:
        """One replica, created in order, with rolling updates; claims are retained."""
        super().default(obj)
        spec = obj["spec"]
        spec.setdefault("serviceName", "")
        if not spec.get("podManagementPolicy"):
            spec["podManagementPolicy"] = "OrderedReady"
        update = child(spec, "updateStrategy")
        if not update.get("type"):
            update["type"] = "RollingUpdate"
            update.setdefault("rollingUpdate", {})
        if update["type"] == "RollingUpdate" and "rollingUpdate" in update:
            update["rollingUpdate"].setdefault("partition", 0)
        retention = child(spec, "persistentVolumeClaimRetentionPolicy")
        for moment in ("whenDeleted", "whenScaled"):
            if not retention.get(moment):
                retention[moment] = "Retain"
        spec.setdefault("replicas", 1)
        spec.setdefault("revisionHistoryLimit", _HISTORY_LIMIT)
        default_pod_template(child(spec, "template"))
        for claim in spec.get("volumeClaimTemplates") or ():
            claim.setdefault("apiVersion", "v1")
            claim.setdefault("kind", "PersistentVolumeClaim")
            claim.setdefault("metadata", {})
            default_claim(claim)

    def validate(self, obj: Manifest) -> list[FieldError]:
        """Validate the spec."""
        spec = obj["spec"]
        errors = _check_spec(spec)
        if spec.get("serviceName"):
            errors += check_label(spec["serviceName"], "spec.serviceName")
        for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
            path = f"spec.volumeClaimTemplates[{index}].spec"
            errors += check_claim_spec(claim.get("spec") or {}, path)
        return errors

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """Most of the spec is immutable."""
        spec, before = obj["spec"], old.get("spec") or {}
        errors = _check_spec(spec)
        if any(spec.get(key) != before.get(key) for key in (spec.keys() | before.keys()) - _CHANGEABLE):
            errors.append(forbidden("spec", _FORBIDDEN_CHANGE))
        return errors

    def validate_status(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """The counters are consistent."""
        status = obj.get("status") or {}
        parts = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
        counts = ("replicas", *parts, "observedGeneration", "collisionCount")
        errors = check_not_negative(status, counts, "status")
        errors += check_replica_counts(status, parts, "status.readyReplicas")
        return errors + check_collisions(obj, old)

    def warnings(self, obj: Manifest, old: Manifest | None) -> list[str]:
        """Warn about an unlimited revision history."""
        if obj["spec"].get("revisionHistoryLimit", 0) >= 0:
            return []
        return [
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; "
            "a value >= 0 is recommended"
        ]


class ControllerRevisionStrategy(Strategy):
    """A ControllerRevision: the state of a set at some time."""

    def default(self, obj: Manifest) -> None:
        """Set the revision to 0 if it is missing."""
        obj.setdefault("revision", 0)

    def validate(self, obj: Manifest) -> list[FieldError]:
        """The data is required."""
        errors = _check_revision(obj)
        data: Any = obj.get("data")
        if data is None:
            errors.append(required("data", "data is mandatory"))
        elif not isinstance(data, dict):
            errors.append(required("data", "data must be a valid JSON object"))
        return errors

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """The data is immutable."""
        return _check_revision(obj) + check_unchanged(obj.get("data"), old.get("data"), "data")


def _check_revision(obj: Manifest) -> list[FieldError]:
    number = obj.get("revision", 0)
    return [] if number >= 0 else [invalid("revision", number, NOT_NEGATIVE)]


def _check_spec(spec: Manifest) -> list[FieldError]:
    errors = []
    policy = spec.get("podManagementPolicy", "")
    if policy not in ("OrderedReady", "Parallel"):
        errors.append(invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'"))
    errors += _check_update_strategy(spec.get("updateStrategy") or {})
    retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    for moment in ("whenDeleted", "whenScaled"):
        path = f"spec.persistentVolumeClaimRetentionPolicy.{moment}"
        errors += check_optional_word(retention.get(moment, ""), _RETENTION, path)
    errors += check_not_negative(spec, ("replicas", "minReadySeconds"), "spec")
    errors += check_not_negative(spec.get("ordinals") or {}, ("start",), "spec.ordinals")
    selector, template = spec.get("selector"), _as_made(spec)
    errors += check_selector(selector, "spec.selector", "statefulset")
    errors += check_match(selector, template, "spec.template")
    return errors + check_lasting_template(template, "spec.template", "StatefulSet")


def _as_made(spec: Manifest) -> Manifest:
    """The effective pod template: with volumes for the claims, without host names, which the set assigns."""
    template: Manifest = spec.get("template") or {}
    templates: list[Manifest] = spec.get("volumeClaimTemplates") or []
    claims = dict.fromkeys(claim.get("metadata", {}).get("name", "") for claim in templates)
    pod_spec: Manifest = template.get("spec") or {}
    if not claims and "hostname" not in pod_spec and "subdomain" not in pod_spec:
        return template
    volumes: list[Manifest] = [
        {"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims
    ]
    volumes += [volume for volume in pod_spec.get("volumes") or () if volume.get("name") not in claims]
    kept = {key: value for key, value in pod_spec.items() if key not in ("hostname", "subdomain", "volumes")}
    return {**template, "spec": {**kept, "volumes": volumes} if volumes else kept}


def _check_update_strategy(update: Manifest) -> list[FieldError]:
    path, kind, rolling = "spec.updateStrategy", update.get("type", ""), update.get("rollingUpdate")
    if kind == "OnDelete":
        if rolling is None:
            return []
        why = "only allowed for updateStrategy 'RollingUpdate'"
        return [invalid(f"{path}.rollingUpdate", rolling, why)]
    if kind != "RollingUpdate":
        return [invalid(path, update, "must be 'RollingUpdate' or 'OnDelete'")]
    here = f"{path}.rollingUpdate"
    errors = check_not_negative(rolling or {}, ("partition",), here)
    unavailable = (rolling or {}).get("maxUnavailable")
    if unavailable is not None:
        errors += check_int_or_percent(unavailable, f"{here}.maxUnavailable")
        if amount_of(unavailable) == 0:
            errors.append(invalid(f"{here}.maxUnavailable", unavailable, "cannot be 0"))
        errors += check_at_most_100_percent(unavailable, f"{here}.maxUnavailable")
    return errors
