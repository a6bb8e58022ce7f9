"""CSI drivers, their nodes, storage capacities and volume attachments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from moorage.api.manifests import Manifest, child
from moorage.apimachinery.fields import (
    IMMUTABLE,
    FieldError,
    duplicate,
    forbidden,
    invalid,
    required,
    too_long,
)
from moorage.apimachinery.validation.checks import (
    MAX_INT32,
    check_driver_name,
    check_not_negative,
    check_optional_word,
    check_quantity_not_negative,
    check_range,
    check_unchanged,
    repetitions,
)
from moorage.apimachinery.validation.names import check_qualified_name, check_subdomain
from moorage.apimachinery.validation.selectors import check_label_selector
from moorage.apimachinery.validation.volume_sources import check_token_seconds
from moorage_cluster.apiserver.kinds.base import StatusStrategy, keep_metadata
from moorage_cluster.apiserver.kinds.persistent_volumes import check_volume_spec
from moorage_cluster.apiserver.strategy import Strategy

_GROUP_POLICIES: Final = ("File", "None", "ReadWriteOnceWithFSType")
_LIFECYCLES: Final = ("Persistent", "Ephemeral")
_MIN_UPDATE_SECONDS: Final = 10
_MAX_NODE_ID_LENGTH: Final = 256
_MAX_METADATA_BYTES: Final = 256 * 1024
_MAX_ERROR_BYTES: Final = 1024
_ONE_SOURCE = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"


class CSIDriverStrategy(Strategy):
    """A CSIDriver."""

    allows_unconditional_update = False

    def default(self, obj: Manifest) -> None:
        """Volumes are attached; optional features are off."""
        spec = child(obj, "spec")
        spec.setdefault("attachRequired", True)
        for key in ("podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"):
            spec.setdefault(key, False)
        spec.setdefault("fsGroupPolicy", "ReadWriteOnceWithFSType")
        if not spec.get("volumeLifecycleModes"):
            spec["volumeLifecycleModes"] = ["Persistent"]

    def prepare_update(self, obj: Manifest, old: Manifest) -> None:
        """Count changes of the spec in the generation, which is not set before the first change."""
        super().prepare_update(obj, old)
        before = old["metadata"].get("generation", 0)
        if obj.get("spec") != old.get("spec"):
            obj["metadata"]["generation"] = before + 1

    def validate(self, obj: Manifest) -> list[FieldError]:
        """Validate the capabilities of the driver."""
        spec = obj.get("spec") or {}
        errors = check_optional_word(spec.get("fsGroupPolicy"), _GROUP_POLICIES, "spec.fsGroupPolicy")
        errors += _check_tokens(spec.get("tokenRequests") or (), "spec.tokenRequests")
        for mode in spec.get("volumeLifecycleModes") or ():
            errors += check_optional_word(mode, _LIFECYCLES, "spec.volumeLifecycleModes")
        seconds = spec.get("nodeAllocatableUpdatePeriodSeconds")
        if seconds is not None and seconds < _MIN_UPDATE_SECONDS:
            why = f"must be greater than or equal to {_MIN_UPDATE_SECONDS} seconds"
            errors.append(invalid("spec.nodeAllocatableUpdatePeriodSeconds", seconds, why))
        if "serviceAccountTokenInSecrets" in spec and not spec.get("tokenRequests"):
            why = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
            path = "spec.serviceAccountTokenInSecrets"
            errors.append(invalid(path, spec["serviceAccountTokenInSecrets"], why))
        return errors

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """The attach requirement and the volume lifecycle modes are immutable."""
        spec, before = obj["spec"], old.get("spec") or {}
        errors = self.validate(obj)
        attached = spec.get("attachRequired"), before.get("attachRequired")
        errors += check_unchanged(*attached, "spec.attachedRequired")
        modes = spec.get("volumeLifecycleModes"), before.get("volumeLifecycleModes")
        return errors + check_unchanged(*modes, "spec.volumeLifecycleModes")


def _check_tokens(requests: Sequence[Manifest], path: str) -> list[FieldError]:
    errors = []
    seen = set()
    for index, request in enumerate(requests):
        here, audience = f"{path}[{index}]", request.get("audience", "")
        if audience in seen:
            errors.append(duplicate(f"{here}.audience", audience))
            continue
        seen.add(audience)
        if "expirationSeconds" in request:
            errors += check_token_seconds(request["expirationSeconds"], f"{here}.expirationSeconds")
    return errors


class CSINodeStrategy(Strategy):
    """A CSINode: the drivers on a node."""

    allows_unconditional_update = False

    def default(self, obj: Manifest) -> None:
        """Add an empty list of drivers if it is missing."""
        child(obj, "spec").setdefault("drivers", [])

    def validate(self, obj: Manifest) -> list[FieldError]:
        """Each driver is listed once, with its ID of the node."""
        errors: list[FieldError] = []
        names = set()
        for index, driver in enumerate(obj["spec"].get("drivers") or ()):
            path, name = f"spec.drivers[{index}]", driver.get("name", "")
            errors += check_driver_name(name, f"{path}.name")
            errors += _check_node_id(driver.get("nodeID", ""), f"{path}.nodeID")
            errors += check_not_negative(driver.get("allocatable") or {}, ("count",), f"{path}.allocatable")
            if name in names:
                errors.append(duplicate(f"{path}.name", name))
            names.add(name)
            errors += _check_topology_keys(driver.get("topologyKeys") or (), path)
        return errors

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """Of a driver that remains, only the number of attachable volumes may change."""
        errors = self.validate(obj)
        drivers = {driver.get("name"): driver for driver in obj["spec"].get("drivers") or ()}
        for before in (old.get("spec") or {}).get("drivers") or ():
            driver = drivers.get(before.get("name"))
            if driver is not None and _without_count(driver) != _without_count(before):
                errors.append(invalid("spec.drivers", _without_count(driver), IMMUTABLE))
        return errors


def _check_node_id(name: str, path: str) -> list[FieldError]:
    if not name:
        return [required(path)]
    if len(name.encode()) > _MAX_NODE_ID_LENGTH:
        return [invalid(path, name, f"must be {_MAX_NODE_ID_LENGTH} characters or less")]
    return []


def _check_topology_keys(keys: Sequence[str], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    repeated = set(repetitions(keys))
    for index, key in enumerate(keys):
        if not key:
            errors.append(required(path))
        if index in repeated:
            errors.append(duplicate(path, key))
        errors += check_qualified_name(key, path)
    return errors


def _without_count(driver: Manifest) -> Manifest:
    return {key: value for key, value in driver.items() if key != "allocatable"}


class CSIStorageCapacityStrategy(Strategy):
    """A CSIStorageCapacity: the remaining capacity of a storage class in a topology segment."""

    allows_unconditional_update = False

    def validate(self, obj: Manifest) -> list[FieldError]:
        """The class is required, and the capacity is not negative."""
        errors = check_label_selector(obj.get("nodeTopology"), "nodeTopology")
        errors += check_subdomain(obj.get("storageClassName", ""), "storageClassName")
        if "capacity" in obj:
            errors += check_quantity_not_negative(obj["capacity"], "capacity")
        return errors

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """The topology and the storage class are immutable."""
        errors = self.validate(obj)
        for key in ("nodeTopology", "storageClassName"):
            errors += check_unchanged(obj.get(key), old.get(key), key)
        return errors


class VolumeAttachmentStrategy(StatusStrategy):
    """A VolumeAttachment: a volume that is to be attached to a node."""

    allows_unconditional_update = False
    empty_status = {"attached": False}

    def prepare_status(self, obj: Manifest, old: Manifest) -> None:
        """Status updates do not change the metadata."""
        super().prepare_status(obj, old)
        keep_metadata(obj, old)

    def validate(self, obj: Manifest) -> list[FieldError]:
        """The volume, the node and the attacher are required."""
        spec = obj.get("spec") or {}
        errors = check_driver_name(spec.get("attacher", ""), "spec.attacher")
        errors += _check_attached(spec.get("source") or {}, "spec.source")
        return errors + check_subdomain(spec.get("nodeName", ""), "spec.nodeName")

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """The spec is immutable."""
        return self.validate(obj) + check_unchanged(obj.get("spec"), old.get("spec"), "spec")

    def validate_status(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """The driver's metadata and messages have a limited length."""
        status = obj.get("status") or {}
        metadata = status.get("attachmentMetadata") or {}
        errors = []
        if sum(len(key) + len(value) for key, value in metadata.items()) > _MAX_METADATA_BYTES:
            errors.append(too_long("status.attachmentMetadata", _MAX_METADATA_BYTES))
        for part in ("attachError", "detachError"):
            failure = status.get(part) or {}
            if len(failure.get("message", "").encode()) > _MAX_ERROR_BYTES:
                errors.append(too_long(f"status.{part}.message", _MAX_METADATA_BYTES))
            errors += check_range(failure.get("errorCode", 0), 0, MAX_INT32, f"status.{part}.errorCode")
        return errors


def _check_attached(source: Manifest, path: str) -> list[FieldError]:
    name, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
    if name is None and inline is None:
        return [required(path, _ONE_SOURCE)]
    if name is not None and inline is not None:
        return [forbidden(path, _ONE_SOURCE)]
    if inline is not None:
        return check_volume_spec(inline, f"{path}.inlineVolumeSpec", inline=True)
    if not name:
        return [required(f"{path}.persistentVolumeName", "must specify non empty persistentVolumeName")]
    return check_subdomain(name, f"{path}.persistentVolumeName")
