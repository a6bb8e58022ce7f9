"""PersistentVolumes: existing storage."""

from __future__ import annotations

import posixpath
from typing import Final

from moorage.api.manifests import Manifest, Now, child, timestamp, utc_now
from moorage.api.quantity import parse_quantity
from moorage.apimachinery.fields import FieldError, forbidden, invalid, not_supported, required
from moorage.apimachinery.validation.checks import (
    check_driver_name,
    check_optional_word,
    check_positive_quantity,
    check_unchanged,
)
from moorage.apimachinery.validation.claim_specs import VOLUME_MODES, check_access_modes
from moorage.apimachinery.validation.names import check_subdomain
from moorage.apimachinery.validation.selectors import check_node_selector
from moorage.apimachinery.validation.volume_sources import check_host_path, check_local, check_nfs
from moorage_cluster.apiserver.kinds.base import StatusStrategy

SOURCES: Final = (
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
)
_RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")
_INLINE = "may not be specified in the context of inline volumes"


class PersistentVolumeStrategy(StatusStrategy):
    """A PersistentVolume."""

    empty_status = {"phase": "Pending"}

    def __init__(self, now: Now = utc_now) -> None:
        self._now = now

    def default(self, obj: Manifest) -> None:
        """The volume mode is Filesystem, and the volume is retained when its claim is deleted."""
        super().default(obj)
        spec = obj["spec"]
        if not spec.get("persistentVolumeReclaimPolicy"):
            spec["persistentVolumeReclaimPolicy"] = "Retain"
        spec.setdefault("volumeMode", "Filesystem")
        if "hostPath" in spec:
            spec["hostPath"].setdefault("type", "")

    def prepare_create(self, obj: Manifest) -> None:
        """Set the time of the phase, which is Pending until the controller has processed the volume."""
        super().prepare_create(obj)
        obj["status"]["lastPhaseTransitionTime"] = timestamp(self._now())

    def prepare_status(self, obj: Manifest, old: Manifest) -> None:
        """Record when the phase changed."""
        super().prepare_status(obj, old)
        status, before = child(obj, "status"), old.get("status") or {}
        moment, last = status.get("lastPhaseTransitionTime"), before.get("lastPhaseTransitionTime")
        if status.get("phase") == before.get("phase"):
            if moment is None and last is not None:
                status["lastPhaseTransitionTime"] = last
        elif moment is None or moment == last:
            status["lastPhaseTransitionTime"] = timestamp(self._now())

    def validate(self, obj: Manifest) -> list[FieldError]:
        """Validate the volume."""
        return check_volume_spec(obj.get("spec") or {}, "spec")

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """The volume source, the volume mode and the node affinity are immutable."""
        spec, before = obj["spec"], old.get("spec") or {}
        errors = self.validate(obj)
        if any(_comparable(spec, before, source) != before.get(source) for source in SOURCES):
            why = "spec.persistentvolumesource is immutable after creation"
            errors.append(forbidden("spec.persistentvolumesource", why))
        errors += check_unchanged(spec.get("volumeMode"), before.get("volumeMode"), "volumeMode")
        if "nodeAffinity" in before and spec.get("nodeAffinity") != before["nodeAffinity"]:
            why = "field is immutable, except for updating from beta label to GA"
            errors.append(invalid("nodeAffinity", spec.get("nodeAffinity"), why))
        if "volumeAttributesClassName" in before and "volumeAttributesClassName" not in spec:
            why = "update from non-nil value to nil is forbidden"
            errors.append(forbidden("spec.volumeAttributesClassName", why))
        return errors


def _comparable(spec: Manifest, before: Manifest, source: str) -> Manifest | None:
    """A source without the secret that may be added later."""
    value: Manifest | None = spec.get(source)
    if source != "csi" or value is None or "controllerExpandSecretRef" in (before.get("csi") or {}):
        return value
    return {key: part for key, part in value.items() if key != "controllerExpandSecretRef"}


def check_volume_spec(spec: Manifest, path: str, *, inline: bool = False) -> list[FieldError]:
    """Validation errors of a volume's spec; `inline` for one inside another object, which has no claim."""
    modes = spec.get("accessModes") or []
    errors = _check_inline(spec, path) if inline else []
    if not modes:
        errors.append(required(f"{path}.accessModes"))
    errors += check_access_modes(modes, f"{path}.accessModes")
    policy = spec.get("persistentVolumeReclaimPolicy", "")
    if not inline:
        errors += _check_capacity(spec.get("capacity") or {}, f"{path}.capacity")
        if policy:
            here = f"{path}.persistentVolumeReclaimPolicy"
            errors += check_optional_word(policy, _RECLAIM_POLICIES, here)
        if "nodeAffinity" in spec:
            errors += _check_affinity(spec["nodeAffinity"], f"{path}.nodeAffinity")
    errors += _check_sources(spec, path)
    if posixpath.normpath((spec.get("hostPath") or {}).get("path") or ".") == "/" and policy == "Recycle":
        why = "may not be 'recycle' for a hostPath mount of '/'"
        errors.append(forbidden(f"{path}.persistentVolumeReclaimPolicy", why))
    if spec.get("storageClassName") and not inline:
        errors += check_subdomain(spec["storageClassName"], f"{path}.storageClassName")
    if "volumeMode" in spec and not inline:
        errors += check_optional_word(spec["volumeMode"], VOLUME_MODES, f"{path}.volumeMode")
    if "volumeAttributesClassName" in spec:
        name, here = spec["volumeAttributesClassName"], f"{path}.volumeAttributesClassName"
        errors += check_subdomain(name, here) if name else [required(here, "an empty string is disallowed")]
        if "csi" not in spec:
            why = "has to be specified when using volumeAttributesClassName"
            errors.append(required(f"{path}.csi", why))
    return errors


def _check_inline(spec: Manifest, path: str) -> list[FieldError]:
    keys = ("claimRef", "capacity", "nodeAffinity", "storageClassName")
    errors = [forbidden(f"{path}.{key}", _INLINE) for key in keys if spec.get(key)]
    if "csi" not in spec:
        errors.append(required(f"{path}.csi", "has to be specified in the context of inline volumes"))
    if spec.get("persistentVolumeReclaimPolicy", "Retain") not in ("", "Retain"):
        why = "may only be Retain in the context of inline volumes"
        errors.append(forbidden(f"{path}.persistentVolumeReclaimPolicy", why))
    if spec.get("volumeMode", "Filesystem") != "Filesystem":
        why = "may not specify volumeMode other than Filesystem in the context of inline volumes"
        errors.append(forbidden(f"{path}.volumeMode", why))
    return errors


def _check_capacity(capacity: Manifest, path: str) -> list[FieldError]:
    errors = [] if capacity else [required(path)]
    if set(capacity) != {"storage"}:
        errors.append(not_supported(path, capacity or None, ("storage",)))
    for name, quantity in capacity.items():
        amount = parse_quantity(quantity).value
        if amount < 0:
            errors.append(invalid(f"{path}[{name}]", amount, "must be a valid resource quantity"))
        errors += check_positive_quantity(quantity, f"{path}[{name}]")
    return errors


def _check_affinity(affinity: Manifest, path: str) -> list[FieldError]:
    if "required" not in affinity:
        return [required(f"{path}.required", "must specify required node constraints")]
    return check_node_selector(affinity["required"], f"{path}.required")


def _check_sources(spec: Manifest, path: str) -> list[FieldError]:
    given = [source for source in SOURCES if source in spec]
    if not given:
        return [required(path, "must specify a volume type")]
    errors = _check_source(spec, given[0], f"{path}.{given[0]}")
    if given[0] == "local" and "nodeAffinity" not in spec:
        errors.append(required(f"{path}.nodeAffinity", "Local volume requires node affinity"))
    more = "may not specify more than 1 volume type"
    return errors + [forbidden(f"{path}.{source}", more) for source in given[1:]]


def _check_source(spec: Manifest, source: str, path: str) -> list[FieldError]:
    value = spec[source]
    if source == "csi":
        errors = check_driver_name(value.get("driver", ""), f"{path}.driver")
        return errors if value.get("volumeHandle") else [*errors, required(f"{path}.volumeHandle")]
    if source == "hostPath":
        return check_host_path(value, path)
    if source == "local":
        return check_local(value, path)
    return check_nfs(value, path) if source == "nfs" else []
